package policy

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/meta"
)

// call is one evaluation of a policy.
type call struct {
	policy    *policy
	binding   *binding
	version   meta.GroupVersion // in which the policy sees the objects
	params    *meta.Object      // nil: it has none
	namespace *meta.Object      // of the request; nil: it is in none
}

// mostCalls bounds how often policies are evaluated about one request: a binding that
// selects its parameters calls a policy once for each.
const mostCalls = 10_000

// calls returns the policies that a request concerns, once for each of their bindings and
// parameters, by their names. fail is told of those that cannot be called, of one that no
// binding could call without a binding; the error ends the request.
func (s *policies) calls(ctx context.Context, r *matcher.Request, fail func(*policy, *binding, error)) (list []call, err error) {
	s.index.Update()
	all := *s.bound.Load()
	if len(all) == 0 || matcher.ExemptFromPolicies(r.Request) {
		return nil, nil
	}
	for _, p := range all {
		version, ok, err := p.about.Match(ctx, r)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if p.params != nil && s.resource(*p.params) == nil {
			fail(p.policy, nil, fmt.Errorf("failed to configure policy: failed to find resource referenced by paramKind: '%s'", p.params))
			continue
		}
		var namespace *meta.Object // which a namespace itself has none of
		if r.Namespace != "" {
			if namespace, err = r.NamespaceObject(ctx); err != nil {
				return nil, err
			}
		}
		for _, b := range p.by {
			if b.narrows {
				if _, ok, err = b.about.Match(ctx, r); err != nil {
					return nil, err
				} else if !ok {
					continue
				}
			}
			if err := errors.Join(p.fault, b.fault); err != nil {
				fail(p.policy, b, err)
				continue
			}
			params, err := s.paramsOf(ctx, p.policy, b, r.Namespace)
			if err == nil && len(list)+len(params) > mostCalls {
				params, err = nil, fmt.Errorf("policies are evaluated at most %d times about one request", mostCalls)
			}
			if err != nil {
				fail(p.policy, b, fmt.Errorf("failed to configure binding: %w", err))
			}
			for _, param := range params {
				list = append(list, call{p.policy, b, version, param, namespace})
			}
		}
	}
	return list, nil
}
