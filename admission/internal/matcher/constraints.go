package matcher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
)

// Constraints select requests by the rules and selectors of a webhook, policy or binding. They are immutable
// after OrAll.
type Constraints struct {
	rules, excluded []rule
	all             bool // no rules select everything, see OrAll
	equivalent      bool // matchPolicy is Equivalent
	namespaces      meta.Selector
	objects         meta.Selector
}

type rule struct {
	admission.Rule
	names []string // of objects; empty: all
}

// New compiles the constraints of a webhook or policy. rules and excluded are the names of the fields with its
// rules. If a selector is invalid, New returns an error and constraints in which the selector matches nothing.
func New(o *meta.Object, rules, excluded string) (Constraints, error) {
	c := Constraints{rules: rulesOf(o, rules), excluded: rulesOf(o, excluded), equivalent: o.String("matchPolicy") != "Exact"}
	var faults [2]error
	c.namespaces, faults[0] = selector(o, "namespaceSelector")
	c.objects, faults[1] = selector(o, "objectSelector")
	return c, errors.Join(faults[:]...)
}

func rulesOf(o *meta.Object, field string) []rule {
	list := o.Objects(field)
	out := make([]rule, len(list))
	for i, r := range list {
		out[i].Rule = admission.Rule{
			Groups: r.Strings("apiGroups"), Versions: r.Strings("apiVersions"), Resources: r.Strings("resources"),
			Scope: admission.Scope(r.String("scope")),
		}
		out[i].names = r.Strings("resourceNames")
		for _, op := range r.Strings("operations") {
			out[i].Operations = append(out[i].Operations, admission.Operation(op))
		}
	}
	return out
}

// selector compiles a selector. A missing selector selects everything.
func selector(o *meta.Object, field string) (meta.Selector, error) {
	tree := o.Map(field)
	if tree == nil {
		tree = map[string]any{}
	}
	s, err := meta.LabelSelectorAsSelector(tree)
	if err != nil {
		return s, fmt.Errorf("%s: %w", field, err)
	}
	return s, nil
}

// Match reports whether a request is selected, and the version in which the webhook or policy sees its objects: the
// version of the request if a rule covers it, else the first served version that a rule covers. The caller must end the
// request with a returned error.
func (c *Constraints) Match(ctx context.Context, r *Request) (version meta.GroupVersion, ok bool, err error) {
	if version, ok = c.covered(r, c.rules); !ok && !c.all || !c.selects(r) {
		return version, false, nil
	}
	if _, out := c.covered(r, c.excluded); out {
		return version, false, nil
	}
	if c.namespaces.Empty() {
		return version, true, nil
	}
	namespace, err := r.NamespaceObject(ctx)
	if err != nil || namespace == nil { // cluster-scoped objects are not subject to namespaceSelector
		return version, err == nil, err
	}
	return version, selects(c.namespaces, namespace), nil
}

// covered returns a version of the resource that a rule covers. It prefers the version of the request.
func (c *Constraints) covered(r *Request, rules []rule) (meta.GroupVersion, bool) {
	own := meta.GroupVersion{Group: r.RequestResource.Group, Version: r.RequestResource.Version}
	if covers(rules, r, own) {
		return own, true
	}
	if !c.equivalent || r.Type == nil {
		return own, false
	}
	for _, version := range r.Type.ServedVersions {
		if version != own && covers(rules, r, version) {
			return version, true
		}
	}
	return own, false
}

func covers(rules []rule, r *Request, version meta.GroupVersion) bool {
	probe := admission.Request{
		Operation: r.Operation, Subresource: r.Subresource, Namespace: r.Namespace,
		Resource: meta.GroupVersionResource{Group: version.Group, Version: version.Version, Resource: r.RequestResource.Resource},
	}
	for i := range rules {
		if rules[i].Matches(&probe) && (len(rules[i].names) == 0 || slices.Contains(rules[i].names, r.Name)) {
			return true
		}
	}
	return false
}

// selects reports whether the object selector matches the old or the new object.
func (c *Constraints) selects(r *Request) bool {
	return c.objects.Empty() || selects(c.objects, r.Object) || selects(c.objects, r.Old)
}

func selects(s meta.Selector, obj *meta.Object) bool {
	if obj == nil {
		return false
	}
	if _, ok := obj.Get("metadata"); !ok { // it cannot have labels
		return false
	}
	labels := obj.Map("metadata", "labels")
	return s.Matches(func(key string) (string, bool) {
		value, ok := labels[key].(string)
		return value, ok
	})
}

// OrAll makes constraints without rules select every resource. Call it before the first Match.
func (c *Constraints) OrAll() { c.all = len(c.rules) == 0 }
