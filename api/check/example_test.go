package check_test

import (
	"fmt"

	"orch.io/controlplane/api/check"
)

// The Validate hook of a kind that starts programs checks fields with the formats and messages of
// built-in kinds.
func ExampleViolations_Format() {
	type program struct {
		Env, Settings, Headers, Sysctls map[string]string
		Port, Dir, Output, Listen       string
	}
	before := program{Dir: "data"}
	p := program{
		Env: map[string]string{"A=B": "1"}, Settings: map[string]string{"log level": "debug"}, Headers: map[string]string{"X Y": "1"},
		Sysctls: map[string]string{"net..x": "1"}, Port: "this-is-too-long-a-name", Dir: "../data", Output: "..up", Listen: "localhost",
	}
	var f check.Violations
	spec := check.At("spec")
	keys := func(field string, m map[string]string, form func(string) []string) {
		for k := range m {
			f.Format(spec.Field(field).Key(k), k, form(k))
		}
	}
	keys("env", p.Env, check.EnvName)
	keys("settings", p.Settings, check.ConfigKey)
	keys("headers", p.Headers, check.HeaderName)
	keys("sysctls", p.Sysctls, check.SysctlName)
	f.Format(spec.Field("port"), p.Port, check.PortName(p.Port))
	f.Format(spec.Field("dir"), p.Dir, check.RelativePath(p.Dir))
	f.Format(spec.Field("dir"), p.Dir, check.InnerPath(p.Dir))
	f.Format(spec.Field("output"), p.Output, check.FilePath(p.Output))
	f.Format(spec.Field("listen"), p.Listen, check.IP(p.Listen))
	if !check.SemanticEqual(before.Dir, p.Dir) {
		f.Forbidden(spec.Field("dir"), "may not change")
	}
	for _, c := range f {
		fmt.Println(c.Field, c.Reason)
	}
	// Output:
	// spec.env[A=B] FieldValueInvalid
	// spec.settings[log level] FieldValueInvalid
	// spec.headers[X Y] FieldValueInvalid
	// spec.sysctls[net..x] FieldValueInvalid
	// spec.port FieldValueInvalid
	// spec.dir FieldValueInvalid
	// spec.dir FieldValueInvalid
	// spec.output FieldValueInvalid
	// spec.listen FieldValueInvalid
	// spec.dir FieldValueForbidden
}

// The violation of a large value shows only the reason.
func ExampleHidden() {
	var f check.Violations
	f.Invalid(check.At("spec"), check.Hidden{}, "replicas and autoscaling exclude each other")
	fmt.Println(f[0].Message)
	// Output:
	// Invalid value: replicas and autoscaling exclude each other
}
