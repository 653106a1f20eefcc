// Package authorization holds the kinds that ask what someone may do. Nothing
// of them is stored: a POST is answered with the filled-in object.
package authorization

import (
	"context"
	"reflect"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

const version = "v1"

// Answers are the functions that answer reviews. A review reaches its function
// only if its spec is complete and without contradictions; a kind without a
// function is not there.
type Answers struct{ Subject, SelfSubject, LocalSubject, SelfSubjectRules registry.Act }

// Kinds returns the kinds of the group that a knows to answer.
func Kinds(a Answers) []*registry.Kind {
	var kinds []*registry.Kind
	if a.Subject != nil {
		kinds = append(kinds, kind[SubjectAccessReview](registry.Cluster, checked(subjectFaults, a.Subject), subjectV1beta1()))
	}
	if a.SelfSubject != nil {
		kinds = append(kinds, kind[SelfSubjectAccessReview](registry.Cluster, checked(selfFaults, a.SelfSubject), same[SelfSubjectAccessReview]("1.4")))
	}
	if a.LocalSubject != nil {
		kinds = append(kinds, kind[LocalSubjectAccessReview](registry.Namespaced, checked(localFaults, a.LocalSubject), localV1beta1()))
	}
	if a.SelfSubjectRules != nil {
		kinds = append(kinds, kind[SelfSubjectRulesReview](registry.Cluster, a.SelfSubjectRules, same[SelfSubjectRulesReview]("1.8")))
	}
	return kinds
}

func kind[T any](scope registry.Scope, act registry.Act, first registry.VersionOf[T]) *registry.Kind {
	return registry.Of(registry.Definition[T]{
		Group: names.GroupAuthorization, Version: version, Kind: reflect.TypeFor[T]().Name(), Scope: scope,
		Versions: []registry.VersionOf[T]{first},
		Behavior: registry.Behavior{Act: act},
	})
}

// checked refuses a call whose object has faults before act sees it.
func checked(faults func(call *registry.Call) check.Faults, act registry.Act) registry.Act {
	return func(ctx context.Context, call *registry.Call) (*meta.Object, error) {
		if f := faults(call); len(f) > 0 {
			group := call.Names.Group(names.GroupAuthorization)
			return nil, meta.Invalid(meta.GroupKind{Group: group}, "", f)
		}
		return act(ctx, call)
	}
}

func subjectFaults(call *registry.Call) check.Faults {
	f := specFaults(call)
	metadataFaults(&f, call.Object, "must be empty")
	return f
}

// specFaults returns what is wrong with a question about a user.
func specFaults(call *registry.Call) check.Faults {
	var f check.Faults
	attributeFaults(&f, call.Object)
	if call.Object.String("spec", "user") == "" && len(call.Object.List("spec", "groups")) == 0 {
		f.Invalid(check.At("spec", "user"), "", "at least one of user or group must be specified")
	}
	selectorFaults(&f, call.Object)
	return f
}

func selfFaults(call *registry.Call) check.Faults {
	var f check.Faults
	attributeFaults(&f, call.Object)
	selectorFaults(&f, call.Object)
	metadataFaults(&f, call.Object, "must be empty")
	return f
}

func localFaults(call *registry.Call) check.Faults {
	f := specFaults(call)
	metadataFaults(&f, call.Object, "must be empty except for namespace", "namespace")
	at := check.At("spec")
	if _, ok := call.Object.Get("spec", "resourceAttributes"); ok {
		if ns := call.Object.String("spec", "resourceAttributes", "namespace"); ns != call.Key.Namespace {
			f.Invalid(at.Field("resourceAttributes").Field("namespace"), ns, "must match metadata.namespace")
		}
	}
	if _, ok := call.Object.Get("spec", "nonResourceAttributes"); ok {
		f.Invalid(at.Field("nonResourceAttributes"), call.Object.Map("spec", "nonResourceAttributes"), "disallowed on this kind of request")
	}
	return f
}

// metadataFaults checks that nothing but the named fields and the owners of
// fields stands in the metadata.
func metadataFaults(f *check.Faults, o *meta.Object, why string, may ...string) {
	for name, v := range o.Metadata() {
		if name != "managedFields" && !slices.Contains(may, name) && !empty(v) {
			f.Invalid(check.At("metadata"), o.Metadata(), why)
			return
		}
	}
}

// empty reports whether a field says no more than if it were not there.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// selectorFaults checks the selectors of a question about a resource.
func selectorFaults(f *check.Faults, o *meta.Object) {
	at := check.At("spec", "resourceAttributes")
	for _, name := range []string{"fieldSelector", "labelSelector"} {
		tree := o.Map("spec", "resourceAttributes", name)
		if tree == nil {
			continue
		}
		s, here := meta.NewObject(tree), at.Field(name)
		raw, parts := s.String("rawSelector"), s.List("requirements")
		switch {
		case raw != "" && len(parts) > 0:
			f.Invalid(here.Field("rawSelector"), raw, "may not be specified at the same time as requirements")
		case raw == "" && len(parts) == 0:
			f.Required(here.Field("requirements"), "one of requirements or rawSelector is required")
		}
		for i, part := range parts {
			tree, _ := part.(map[string]any)
			requirementFaults(f, here.Field("requirements").Index(i), meta.NewObject(tree), name == "labelSelector")
		}
	}
}

// requirementFaults checks one part of a selector. Operators that are not known
// pass: newer clients may know more.
func requirementFaults(f *check.Faults, at *check.Path, r *meta.Object, label bool) {
	key, values := r.String("key"), r.Strings("values")
	if !label && key == "" {
		f.Required(at.Field("key"), "must be specified")
	}
	f.SelectorValues(at, r.String("operator"), values)
	if label {
		f.Format(at.Field("key"), key, meta.CheckQualifiedName(key))
		for i, v := range values {
			f.Format(at.Field("values").Index(i), v, meta.CheckLabelValue(v))
		}
	}
}

// attributeFaults checks that a review asks about a resource or about a path.
func attributeFaults(f *check.Faults, o *meta.Object) {
	_, resource := o.Get("spec", "resourceAttributes")
	_, path := o.Get("spec", "nonResourceAttributes")
	if resource == path {
		f.Invalid(check.At("spec"), nil, "exactly one of nonResourceAttributes or resourceAttributes must be specified")
	}
}
