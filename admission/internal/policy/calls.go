package policy

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/meta"
)

// call is an evaluation of a policy, for a binding and a parameter object.
type call struct {
	policy    *policy
	binding   *binding
	version   meta.GroupVersion // the version in which the policy sees the objects
	params    *meta.Object      // nil: no parameters
	namespace *meta.Object      // of the request; nil: not namespaced
}

// maxCalls is the maximum number of evaluations for a request. A binding that selects several parameter objects
// evaluates its policy for each of them.
const maxCalls = 10_000

// calls returns the evaluations for a request, sorted by policy and binding: an evaluation for each binding and
// parameter object of the policies that match. If a policy cannot be evaluated, it calls fail, with a nil binding if
// this applies to all bindings of the policy. The caller must end the request with a returned error.
func (s *policies) calls(ctx context.Context, r *matcher.Request, fail func(*policy, *binding, error)) (list []call, err error) {
	s.index.Update()
	all := *s.bound.Load()
	if len(all) == 0 || matcher.ExemptFromPolicies(r.Request) {
		return nil, nil
	}
	for _, p := range all {
		version, ok, err := p.constraints.Match(ctx, r)
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
		var namespace *meta.Object // nil for a namespace and other cluster-scoped objects
		if r.Namespace != "" {
			if namespace, err = r.NamespaceObject(ctx); err != nil {
				return nil, err
			}
		}
		for _, b := range p.by {
			if b.narrows {
				if _, ok, err = b.constraints.Match(ctx, r); err != nil {
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
			if err == nil && len(list)+len(params) > maxCalls {
				params, err = nil, fmt.Errorf("too many policy evaluations for one request: the maximum is %d", maxCalls)
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
