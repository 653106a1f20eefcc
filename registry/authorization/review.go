// Package authorization holds the kinds that ask what someone may do. Nothing
// of them is stored: a POST is answered with the filled-in object.
package authorization

import (
	"context"
	"reflect"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

const version = "v1"

// Act answers a review: it returns the object of the call with its status.
type Act func(ctx context.Context, call *registry.Call) (*meta.Object, error)

// Answers are the functions that answer reviews. A review reaches its function
// only if its spec is complete and without contradictions; a kind without a
// function is not there.
type Answers struct{ Subject, SelfSubject, LocalSubject, SelfSubjectRules Act }

// Kinds returns the kinds of the group that a knows to answer.
func Kinds(a Answers) []*registry.Kind {
	var kinds []*registry.Kind
	if a.Subject != nil {
		kinds = append(kinds, kind[SubjectAccessReview](registry.Cluster, checked(subjectFaults, a.Subject)))
	}
	if a.SelfSubject != nil {
		kinds = append(kinds, kind[SelfSubjectAccessReview](registry.Cluster, checked(selfFaults, a.SelfSubject)))
	}
	if a.LocalSubject != nil {
		kinds = append(kinds, kind[LocalSubjectAccessReview](registry.Namespaced, checked(localFaults, a.LocalSubject)))
	}
	if a.SelfSubjectRules != nil {
		kinds = append(kinds, kind[SelfSubjectRulesReview](registry.Cluster, checked(rulesFaults, a.SelfSubjectRules)))
	}
	return kinds
}

func kind[T any](scope registry.Scope, act Act) *registry.Kind {
	return registry.Of(registry.Definition[T]{
		Group: names.GroupAuthorization, Version: version, Source: source, Kind: reflect.TypeFor[T]().Name(), Scope: scope,
		Behavior: registry.Behavior{NoGeneration: true, SelfChecked: true, Act: act},
	})
}

// checked refuses a call whose object has faults before act sees it.
func checked(faults func(call *registry.Call) check.Faults, act Act) Act {
	return func(ctx context.Context, call *registry.Call) (*meta.Object, error) {
		if f := faults(call); len(f) > 0 {
			group := call.Names.Group(names.GroupAuthorization)
			return nil, meta.Invalid(meta.GroupKind{Group: group}, "", f)
		}
		return act(ctx, call)
	}
}

func subjectFaults(call *registry.Call) check.Faults {
	var f check.Faults
	attributeFaults(&f, call.Object)
	if call.Object.String("spec", "user") == "" && len(call.Object.List("spec", "groups")) == 0 {
		f.Invalid(check.At("spec", "user"), "", "at least one of user or group must be specified")
	}
	return f
}

func selfFaults(call *registry.Call) check.Faults {
	var f check.Faults
	attributeFaults(&f, call.Object)
	return f
}

func localFaults(call *registry.Call) check.Faults {
	f := subjectFaults(call)
	at := check.At("spec")
	if _, ok := call.Object.Get("spec", "nonResourceAttributes"); ok {
		f.Invalid(at.Field("nonResourceAttributes"), call.Object.Map("spec", "nonResourceAttributes"), "disallowed on this kind of request")
	}
	if _, ok := call.Object.Get("spec", "resourceAttributes"); ok {
		if ns := call.Object.String("spec", "resourceAttributes", "namespace"); ns != call.Key.Namespace {
			f.Invalid(at.Field("resourceAttributes").Field("namespace"), ns, "must match metadata.namespace")
		}
	}
	return f
}

func rulesFaults(call *registry.Call) check.Faults {
	var f check.Faults
	if call.Object.String("spec", "namespace") == "" {
		f.Invalid(check.At("spec", "namespace"), "", "a namespace is needed")
	}
	return f
}

// attributeFaults checks that a review asks about a resource or about a path.
func attributeFaults(f *check.Faults, o *meta.Object) {
	_, resource := o.Get("spec", "resourceAttributes")
	_, path := o.Get("spec", "nonResourceAttributes")
	switch {
	case resource && path:
		f.Invalid(check.At("spec", "nonResourceAttributes"), o.Map("spec", "nonResourceAttributes"), "cannot be specified in combination with resourceAttributes")
	case !resource && !path:
		f.Invalid(check.At("spec", "resourceAttributes"), nil, "exactly one of nonResourceAttributes or resourceAttributes must be specified")
	}
}
