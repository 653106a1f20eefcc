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

// faults returns what is wrong with the fields of the Builder, each with the path to it.
// What kinds, flow control and admission are made of tells its own.
func (b *Builder) faults() (faults []error) {
	if b.Authorizer == nil {
		faults = append(faults, errors.New("no Authorizer: choose one, or auth.AllowAll for a server without access control"))
	}
	for _, part := range []struct {
		field string
		value any
	}{{"Storage", b.Storage}, {"Authorizer", b.Authorizer}, {"Connector", b.Connector}, {"Audit", b.Audit}} {
		if part.value != nil && isNil(part.value) {
			faults = append(faults, fmt.Errorf("%s is a %T that is nil: leave the field empty, or set it", part.field, part.value))
		}
	}
	for i, a := range b.Authenticators {
		if isNil(a) {
			faults = append(faults, fmt.Errorf("%s[%d] is nil", "Authenticators", i))
		}
	}
	for i, prepare := range b.OnStart {
		if prepare == nil {
			faults = append(faults, fmt.Errorf("%s[%d] is nil", "Prepare", i))
		}
	}
	faults = append(faults, negative("Limits", b.Limits)...)
	if _, err := b.release(); err != nil {
		faults = append(faults, err)
	}
	if b.Serving.LivezGrace < 0 {
		faults = append(faults, fmt.Errorf("Serving.LivezGrace: %v is negative", b.Serving.LivezGrace))
	}
	return slices.Concat(faults, handlerFaults(b), b.checkFaults(), b.controllerFaults())
}

// isNil reports whether an interface holds nothing, or a pointer or a function that is
// nil. A slice or a map may be empty: its methods work.
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

// negative returns a fault for each field of a struct of numbers that is below zero.
func negative(field string, of any) (faults []error) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if f := v.Field(i); f.CanInt() && f.Int() < 0 {
			faults = append(faults, fmt.Errorf("%s.%s: %v is negative; zero is the default", field, v.Type().Field(i).Name, f.Interface()))
		}
	}
	return faults
}

func handlerFaults(b *Builder) (faults []error) {
	for _, at := range slices.Sorted(maps.Keys(b.Handlers)) {
		clean := path.Clean(at)
		if strings.HasSuffix(at, "/") && clean != "/" {
			clean += "/"
		}
		why := ""
		switch {
		case !strings.HasPrefix(at, "/"):
			why = "is no path: it must begin with a slash"
		case clean != at:
			why = fmt.Sprintf("is never asked for: no request has this path; did you mean %q?", clean)
		case ownPath(at):
			why = "is never asked: the server serves this path itself"
		case isNil(b.Handlers[at]):
			why = "is nil"
		default:
			continue
		}
		faults = append(faults, fmt.Errorf("%s[%q] %s", "Handlers", at, why))
	}
	return faults
}

// ownPath reports whether all that a handler at a path could get is the server's own.
func ownPath(at string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
	switch first {
	case "api", "apis", "openapi", "livez", "readyz", "healthz":
		return true
	}
	// What is below these is not the server's.
	return at == "/version" || at == "/metrics" || at == "/metrics/slis"
}

// checkName is what names of health checks look like, which are paths.
var checkName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*(/[A-Za-z0-9])?)*$`)

func (b *Builder) checkFaults() (faults []error) {
	own := health.OwnNames()
	for _, name := range slices.Sorted(maps.Keys(b.Checks)) {
		why := ""
		switch {
		case !checkName.MatchString(name):
			why = "has no name that can stand in a path: letters, digits, dots, dashes, and slashes between them"
		case slices.Contains(own, name):
			why = "has the name of a check of the server's own"
		case b.Checks[name] == nil:
			why = "is nil"
		default:
			continue
		}
		faults = append(faults, fmt.Errorf("%s[%q] %s", "Checks", name, why))
	}
	return faults
}

func (b *Builder) controllerFaults() (faults []error) {
	seen := map[string]int{}
	for i, c := range b.Controllers {
		at := fmt.Sprintf("Controllers[%d]", i)
		first, twice := seen[c.Name]
		switch {
		case c.Name == "":
			faults = append(faults, fmt.Errorf("%s.Name is empty", at))
		case twice:
			faults = append(faults, fmt.Errorf("%s.Name: %q is the name of Controllers[%d], too", at, c.Name, first))
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

// servedFaults returns what controllers of the Builder see that no kind is of.
func (b *Builder) servedFaults(types []*resource.Type) (faults []error) {
	resources := map[string]*resource.Type{}
	definitions := false
	for _, t := range types {
		definitions = definitions || t.GroupResource() == meta.GroupResource{Group: b.Names.Group(wellknown.GroupExtensions), Resource: "customresourcedefinitions"}
		for _, v := range t.Versions {
			resources[v.Resource().GroupResource().String()] = t
		}
	}
	known := manager.BuiltinNames() // what package access adds goes without kinds that a program leaves out
	for i, c := range b.Controllers {
		if slices.Contains(known, c.Name) {
			continue
		}
		for j, r := range c.Types {
			if why := b.unseen(r, resources, definitions); why != "" {
				faults = append(faults, fmt.Errorf("Controllers[%d].Types[%d]: %s", i, j, why))
			}
		}
	}
	return faults
}

// unseen returns why a controller never sees objects of a type. What definitions may
// define while the server runs is not known yet.
func (b *Builder) unseen(r meta.GroupResource, resources map[string]*resource.Type, definitions bool) string {
	wire := meta.GroupResource{Group: b.Names.Group(r.Group), Resource: r.Resource}
	t := resources[r.String()]
	switch {
	case t != nil && t.Virtual:
		return fmt.Sprintf("%s are not stored, so that nothing ever changes", r)
	case t != nil:
		return ""
	case resources[wire.String()] != nil:
		return fmt.Sprintf("no kind serves %s; did you mean %q? Types have the names that are on the wire", r, wire)
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

// pluginFaults returns what is wrong with the plugins of the Builder by themselves.
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
			faults = append(faults, fmt.Errorf("%s.Name: %q is the name of a plugin that every server has", at, p.Name))
		case twice:
			faults = append(faults, fmt.Errorf("%s.Name: %q is the name of Admission[%d], too", at, p.Name, first))
		default:
			seen[p.Name] = i
		}
		if p.Mutate == nil && p.Validate == nil && p.Setup == nil {
			faults = append(faults, fmt.Errorf("%s (%s) does nothing: it has neither Mutate nor Validate, nor a Setup that makes them", at, p.Name))
		}
	}
	return faults
}
