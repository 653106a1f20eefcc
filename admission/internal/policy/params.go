package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// errNoParams means that a binding with parameterNotFoundAction Deny found no parameters.
var errNoParams = errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")

// paramsOf returns the parameter objects of a binding, in the version of paramKind. If the policy or the binding does
// not use parameters, it returns a list with a nil. If no object exists and the binding allows this, the list is
// empty.
func (s *policies) paramsOf(ctx context.Context, p *policy, b *binding, namespace string) ([]*meta.Object, error) {
	if p.params == nil || b.params == nil {
		return []*meta.Object{nil}, nil
	}
	typ := s.resource(*p.params)
	if typ == nil {
		return nil, fmt.Errorf("paramKind kind `%s` not known", p.params)
	}
	namespaced, where := typ.Namespaced, b.params.String("namespace")
	switch {
	case !namespaced && where != "":
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case namespaced && where == "" && namespace == "":
		return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	case namespaced && where == "":
		where = namespace
	}
	found, err := s.find(ctx, typ.GroupResource(), where, b.params)
	for i := 0; i < len(found) && err == nil && s.env.Convert != nil; i++ {
		found[i], err = s.env.Convert(ctx, found[i], meta.GroupVersion{Group: p.params.Group, Version: p.params.Version})
	}
	if err == nil && len(found) == 0 && b.params.String("parameterNotFoundAction") == "Deny" {
		err = errNoParams
	}
	return found, err
}

func (s *policies) find(ctx context.Context, of meta.GroupResource, namespace string, ref *meta.Object) (found []*meta.Object, err error) {
	if name := ref.String("name"); name != "" {
		obj, err := s.env.Client.Get(ctx, of, meta.Key{Namespace: namespace, Name: name})
		if meta.IsNotFound(err) {
			return nil, nil
		}
		return []*meta.Object{obj}, err
	}
	tree := ref.Map("selector")
	if tree == nil {
		return nil, nil
	}
	selector, err := meta.LabelSelectorAsSelector(tree)
	if err != nil {
		return nil, err
	}
	list, err := s.env.Client.List(ctx, of, namespace)
	if err != nil {
		return nil, err
	}
	for _, obj := range list {
		labels := obj.Labels()
		if selector.Matches(func(key string) (string, bool) { value, ok := labels[key]; return value, ok }) {
			found = append(found, obj)
		}
	}
	return found, nil
}

// resource returns the type of a kind, or nil if it is not served.
func (s *policies) resource(k meta.GroupVersionKind) *registry.Type {
	for _, t := range s.env.Client.Types() {
		if t.Kind == k.Kind && slices.Contains(t.ServedVersions, meta.GroupVersion{Group: k.Group, Version: k.Version}) {
			return t
		}
	}
	return nil
}
