package plugins_test

import (
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
)

// The plugins of a server that brings one of its own: it sees what those before it made.
func ExampleTable() {
	table := plugins.Table(admission.Plugin{Name: "NoAttic"})
	fmt.Println(table[0].Name)
	fmt.Println(slices.ContainsFunc(table, func(p admission.Plugin) bool { return p.Name == "NoAttic" }))
	// Output:
	// AlwaysAdmit
	// true
}

// Plugins are chosen and configured by name; server.Builder.AdmissionOptions takes this.
func Example_configuration() {
	options := admission.Options{
		Enable: []string{"PodNodeSelector", "PodTolerationRestriction"},
		Config: map[string]any{
			"DefaultTolerationSeconds": plugins.TolerationSeconds{NotReady: 30, Unreachable: 60},
			"PodNodeSelector":          plugins.NodeSelectors{Selectors: map[string]string{"clusterDefaultNodeSelector": "pool=shared"}},
			"PodTolerationRestriction": plugins.Tolerations{Whitelist: []map[string]any{{"key": "team", "operator": "Exists"}}},
		},
	}
	_, err := admission.New(plugins.Table(), options, admission.Env{})
	fmt.Println(err)
	// Output: <nil>
}
