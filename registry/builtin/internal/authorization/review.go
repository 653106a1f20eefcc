// Package authorization defines the review kinds of the authorization group. Objects of these kinds are
// not stored: the answer to a POST is the completed object.
package authorization

import (
	"context"
	"reflect"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

const version = "v1"

// Answers are the functions that complete reviews. They are called for valid reviews only. A kind whose
// function is nil is not served.
type Answers struct{ Subject, SelfSubject, LocalSubject, SelfSubjectRules registry.Act }

// Kinds returns the kinds that a has functions for.
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
		Group: wellknown.GroupAuthorization, Version: version, Kind: reflect.TypeFor[T]().Name(), Scope: scope,
		Versions: []registry.VersionOf[T]{first},
		Behavior: registry.Behavior{Act: act},
	})
}

// checked wraps act and answers 422 if faults finds violations.
func checked(faults func(call *registry.Call) check.Violations, act registry.Act) registry.Act {
	return func(ctx context.Context, call *registry.Call) (*meta.Object, error) {
		if f := faults(call); len(f) > 0 {
			group := call.Names.Group(wellknown.GroupAuthorization)
			return nil, meta.Invalid(meta.GroupKind{Group: group}, "", f)
		}
		return act(ctx, call)
	}
}

func subjectFaults(call *registry.Call) check.Violations {
	f := specFaults(call)
	metadataFaults(&f, call.Object, "must be empty")
	return f
}

// specFaults checks the spec of a review about a named user.
func specFaults(call *registry.Call) check.Violations {
	var f check.Violations
	attributeFaults(&f, call.Object)
	if call.Object.String("spec", "user") == "" && len(call.Object.List("spec", "groups")) == 0 {
		f.Invalid(check.At("spec", "user"), "", "at least one of user or group must be specified")
	}
	selectorFaults(&f, call.Object)
	return f
}

func selfFaults(call *registry.Call) check.Violations {
	var f check.Violations
	attributeFaults(&f, call.Object)
	selectorFaults(&f, call.Object)
	metadataFaults(&f, call.Object, "must be empty")
	return f
}

func localFaults(call *registry.Call) check.Violations {
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

// metadataFaults checks that the metadata is empty except for managedFields and the fields in allowed.
func metadataFaults(f *check.Violations, o *meta.Object, why string, allowed ...string) {
	for name, v := range o.Metadata() {
		if name != "managedFields" && !slices.Contains(allowed, name) && !empty(v) {
			f.Invalid(check.At("metadata"), o.Metadata(), why)
			return
		}
	}
}

// empty reports whether v is the zero value of its JSON type.
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

// selectorFaults checks that each selector is given either as text or as requirements.
func selectorFaults(f *check.Violations, o *meta.Object) {
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

// requirementFaults checks a requirement of a selector. Unknown operators pass, because newer clients
// may send them; they do not restrict the request that is reviewed.
func requirementFaults(f *check.Violations, at *check.Path, r *meta.Object, label bool) {
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

// attributeFaults checks that a review is about either a resource or a path.
func attributeFaults(f *check.Violations, o *meta.Object) {
	_, resource := o.Get("spec", "resourceAttributes")
	_, path := o.Get("spec", "nonResourceAttributes")
	if resource == path {
		f.Invalid(check.At("spec"), nil, "exactly one of nonResourceAttributes or resourceAttributes must be specified")
	}
}
