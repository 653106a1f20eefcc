package server

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/suggest"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/health"
	"orch.io/controlplane/server/internal/manager"
)

// faults returns an error for each invalid field of the Builder, beginning with the path to the
// field. Kinds, flow control and admission are checked elsewhere.
func (b *Builder) faults() (faults []error) {
	if b.Authorizer == nil {
		faults = append(faults, errors.New("no Authorizer: choose one, or auth.AllowAll for a server without access control"))
	}
	for _, part := range []struct {
		field string
		value any
	}{{"Storage", b.Storage}, {"Authorizer", b.Authorizer}, {"Connector", b.Connector}, {"Audit", b.Audit}} {
		if part.value != nil && isNil(part.value) {
			faults = append(faults, fmt.Errorf("%s is a nil %T: set it, or leave the field empty", part.field, part.value))
		}
	}
	for i, a := range b.Authenticators {
		if isNil(a) {
			faults = append(faults, fmt.Errorf("%s[%d] is nil", "Authenticators", i))
		}
	}
	for i, prepare := range b.OnStart {
		if prepare == nil {
			faults = append(faults, fmt.Errorf("%s[%d] is nil", "OnStart", i))
		}
	}
	faults = append(faults, negativeFields("Limits", b.Limits)...)
	var err error
	if b.release, err = b.parseRelease(); err != nil {
		faults = append(faults, err)
	}
	if b.Serving.LivezGrace < 0 {
		faults = append(faults, fmt.Errorf("Serving.LivezGrace: %v is negative", b.Serving.LivezGrace))
	}
	return slices.Concat(faults, handlerFaults(b), b.checkFaults(), b.controllerFaults())
}

// isNil reports whether an interface is nil or holds a nil pointer or function. Nil slices and maps
// are not nil in this sense, because their methods may work.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func:
		return r.IsNil()
	}
	return false
}

// negativeFields returns an error for each negative number in a struct of numbers.
func negativeFields(field string, of any) (faults []error) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if f := v.Field(i); f.CanInt() && f.Int() < 0 {
			faults = append(faults, fmt.Errorf("%s.%s: %v is negative; zero is the default", field, v.Type().Field(i).Name, f.Interface()))
		}
	}
	return faults
}

// handlerFaults returns an error for each key of b.Handlers that no request can match, and for each
// nil handler.
func handlerFaults(b *Builder) (faults []error) {
	for _, at := range slices.Sorted(maps.Keys(b.Handlers)) {
		clean := path.Clean(at)
		if strings.HasSuffix(at, "/") && clean != "/" {
			clean += "/"
		}
		why := ""
		switch {
		case !strings.HasPrefix(at, "/"):
			why = "is not a path: it must begin with a slash"
		case clean != at:
			why = fmt.Sprintf("never matches a request; did you mean %q?", clean)
		case ownPath(at):
			why = "never matches a request: the server serves this path itself"
		case isNil(b.Handlers[at]):
			why = "is nil"
		default:
			continue
		}
		faults = append(faults, fmt.Errorf("%s[%q] %s", "Handlers", at, why))
	}
	return faults
}

// ownPath reports whether the server itself serves every path that a handler at this path could
// match.
func ownPath(at string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
	switch first {
	case "api", "apis", "openapi", "livez", "readyz", "healthz":
		return true
	}
	// A handler can serve the paths below these.
	return at == "/version" || at == "/metrics" || at == "/metrics/slis"
}

// checkName matches valid names of health checks, which are parts of paths.
var checkName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*(/[A-Za-z0-9])?)*$`)

// checkFaults returns an error for each health check with an invalid name or without a function.
func (b *Builder) checkFaults() (faults []error) {
	own := health.OwnNames()
	for _, name := range slices.Sorted(maps.Keys(b.Checks)) {
		why := ""
		switch {
		case !checkName.MatchString(name):
			why = "is not a valid name: use letters, digits, dots and dashes, and slashes between them"
		case slices.Contains(own, name):
			why = "is the name of a built-in check"
		case b.Checks[name] == nil:
			why = "is nil"
		default:
			continue
		}
		faults = append(faults, fmt.Errorf("%s[%q] %s", "Checks", name, why))
	}
	return faults
}

// controllerFaults returns an error for each controller without a unique name or without a
// function.
func (b *Builder) controllerFaults() (faults []error) {
	seen := map[string]int{}
	for i, c := range b.Controllers {
		at := fmt.Sprintf("Controllers[%d]", i)
		first, twice := seen[c.Name]
		switch {
		case c.Name == "":
			faults = append(faults, fmt.Errorf("%s.Name is empty", at))
		case twice:
			faults = append(faults, fmt.Errorf("%s.Name: duplicate name %q, which Controllers[%d] also has", at, c.Name, first))
		default:
			seen[c.Name] = i
		}
		if c.MapEvent == nil {
			faults = append(faults, fmt.Errorf("%s.MapEvent is nil", at))
		}
		if c.Reconcile == nil {
			faults = append(faults, fmt.Errorf("%s.Reconcile is nil", at))
		}
	}
	return faults
}

// servedFaults returns an error for each type of a controller that never causes an event.
func (b *Builder) servedFaults(types []*resource.Type) (faults []error) {
	resources := map[string]*resource.Type{}
	definitions := false
	for _, t := range types {
		definitions = definitions || t.GroupResource() == meta.GroupResource{Group: b.Names.Group(wellknown.GroupExtensions), Resource: "customresourcedefinitions"}
		for _, v := range t.Versions {
			resources[v.Resource().GroupResource().String()] = t
		}
	}
	known := manager.BuiltinNames() // the controllers of package access work without kinds that the program leaves out
	for i, c := range b.Controllers {
		if slices.Contains(known, c.Name) {
			continue
		}
		for j, r := range c.Types {
			if why := b.neverSeen(r, resources, definitions); why != "" {
				faults = append(faults, fmt.Errorf("Controllers[%d].Types[%d]: %s", i, j, why))
			}
		}
	}
	return faults
}

// neverSeen returns why a controller never sees objects of a resource, or "". resources are the
// types by wire name. If definitions is set, the server has CustomResourceDefinitions, and a
// resource that is unknown may be defined later.
func (b *Builder) neverSeen(r meta.GroupResource, resources map[string]*resource.Type, definitions bool) string {
	wire := meta.GroupResource{Group: b.Names.Group(r.Group), Resource: r.Resource}
	t := resources[r.String()]
	switch {
	case t != nil && t.Virtual:
		return fmt.Sprintf("%s are not stored and cause no events", r)
	case t != nil:
		return ""
	case resources[wire.String()] != nil:
		return fmt.Sprintf("no kind serves %s; did you mean %q? Types uses the names on the wire", r, wire)
	case definitions && strings.Contains(r.Group, "."):
		return ""
	}
	return fmt.Sprintf("no kind serves %s%s", r, suggest.Near(r.String(), slices.Sorted(maps.Keys(resources))...))
}

// checkSelection returns an error if RunControllers names a controller that the server cannot have.
func (b *Builder) checkSelection() error {
	var others []string
	for _, c := range b.Controllers {
		others = append(others, c.Name)
	}
	for _, p := range b.plugins {
		others = append(others, p.Controller.Name)
	}
	return manager.Selection(b.RunControllers).Check(others...)
}

// pluginFaults returns an error for each invalid plugin in b.Admission.
func (b *Builder) pluginFaults() (faults []error) {
	builtin := map[string]bool{}
	for _, p := range plugins.Table() {
		builtin[p.Name] = true
	}
	seen := map[string]int{}
	for i, p := range b.Admission {
		at := fmt.Sprintf("Admission[%d]", i)
		first, twice := seen[p.Name]
		switch {
		case p.Name == "":
			faults = append(faults, fmt.Errorf("%s.Name is empty", at))
		case builtin[p.Name]:
			faults = append(faults, fmt.Errorf("%s.Name: %q is the name of a built-in plugin", at, p.Name))
		case twice:
			faults = append(faults, fmt.Errorf("%s.Name: duplicate name %q, which Admission[%d] also has", at, p.Name, first))
		default:
			seen[p.Name] = i
		}
		if p.Mutate == nil && p.Validate == nil && p.Setup == nil {
			faults = append(faults, fmt.Errorf("%s (%s) has no effect: set Mutate, Validate, or a Setup that sets them", at, p.Name))
		}
	}
	return faults
}
