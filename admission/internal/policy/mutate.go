package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/codec"
)

// changes is what the policies make of the object of one request.
type changes struct {
	matcher.Request
	counts   *counts
	failures []failure
	told     int // bytes of their messages
	most     int // bytes that the object may have
	*passes
}

// What policies may do to one request, in bytes: what they add to its object, and what they
// say when they refuse it.
const (
	mostAdded = 8 << 20
	mostTold  = 64 << 10
)

// failure is why a policy could not be evaluated.
type failure struct {
	message string
	reason  meta.Reason
}

// passes is what is known from one pass of admission to the next.
type passes struct {
	called []callKey        // that want to see later changes, and saw the last one
	again  map[callKey]bool // that did not see it
	output *meta.Object     // what the policies left
}

// callKey names a call.
type callKey struct {
	policy, binding string
	params          meta.Key
}

func (c *call) key() callKey {
	k := callKey{policy: c.policy.name, binding: c.binding.name}
	if c.params != nil {
		k.params = meta.Key{Namespace: c.params.Namespace(), Name: c.params.Name()}
	}
	return k
}

// changed says that the object is another one than those who were called saw.
func (p *passes) changed() {
	for _, k := range p.called {
		p.again[k] = true
	}
	p.called = nil
}

// mutate has the policies change the object of a request, one after the other. All that can
// be evaluated are, and then those that cannot refuse the request.
func (s *policies) mutate(ctx context.Context, ar *admission.Request) error {
	if ar.Operation == admission.Delete {
		return nil
	}
	r := &changes{Request: matcher.Request{Request: ar}, counts: s.counts, passes: &passes{again: map[callKey]bool{}}}
	if ar.Pass > 0 {
		before, ok := ar.Kept[s].(*passes)
		if !ok {
			return nil
		}
		if r.passes = before; !same(before.output, ar.Object) { // others changed it
			r.changed()
		}
	}
	list, err := s.calls(ctx, &r.Request, func(p *policy, b *binding, err error) { r.fail(p, b, err, meta.ReasonForbidden) })
	if err != nil {
		return err
	}
	if len(list) > 0 {
		r.most = apply.Size(ar.Object.Tree(), math.MaxInt) + mostAdded
	}
	if err := r.callAll(ctx, list); err != nil {
		return err
	}
	if ar.Pass == 0 && len(list) > 0 {
		if ar.Kept == nil {
			ar.Kept = map[any]any{}
		}
		ar.Kept[s] = r.passes
		if ar.Object != nil {
			r.output = ar.Object.Clone()
		}
	}
	return r.status()
}

func same(a, b *meta.Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return meta.Equal(a.Tree(), b.Tree())
}

// callAll makes the mutations of policies. Those that made one see the object once more if
// they want to see what others make of it, whether there is more to change or not.
func (r *changes) callAll(ctx context.Context, list []call) error {
	patched := false
	for _, c := range list {
		made, err := r.call(ctx, c)
		if err != nil {
			return err
		}
		patched = patched || made
	}
	if patched {
		r.changed()
		r.Again()
	}
	return nil
}

// call makes the mutations of one policy; patched reports whether there was one that could
// be made. The error ends the request.
func (r *changes) call(ctx context.Context, c call) (patched bool, err error) {
	p, key := c.policy, c.key()
	view, err := r.See(ctx, c.version)
	if err != nil {
		return false, err
	}
	left := int64(cel.ObjectCost)
	begun := time.Now()
	ok, err := p.conditions.True(ctx, r.Vars(ctx, p.env, view, c.namespace, c.params, &left))
	r.counts.matched(p, r.Operation, time.Since(begun), ok, err)
	if err != nil {
		r.fail(p, c.binding, err, meta.ReasonInvalid)
		return false, ctx.Err()
	} else if !ok || r.Pass > 0 && !r.again[key] {
		return false, nil
	}
	changed := false
	for _, m := range p.mutations {
		view, err := r.See(ctx, c.version)
		if err != nil {
			return false, err
		}
		if view.Object == nil {
			break
		}
		begun := time.Now()
		made, err := r.make(ctx, c, m, view)
		if ctx.Err() != nil { // whatever the failure policy is, it was not evaluated
			return false, ctx.Err()
		}
		r.counts.check(c, time.Since(begun), errorType(m.fault, err))
		if refused := (*meta.Status)(nil); errors.As(err, &refused) {
			return false, refused
		}
		if err != nil {
			r.fail(p, c.binding, err, meta.ReasonInvalid)
			continue
		}
		patched = true
		if made == nil || same(made, view.Object) {
			continue
		}
		if err := r.take(ctx, c, view.Object, made); err != nil {
			return false, err
		}
		changed = true
	}
	if changed {
		r.passes.changed()
	}
	if p.reinvoked {
		r.called = append(r.called, key)
	}
	return patched, nil
}

// make evaluates a mutation and returns what it makes of the object as a version shows it,
// nil if it leaves it as it is.
func (r *changes) make(ctx context.Context, c call, m mutation, view *matcher.View) (*meta.Object, error) {
	if m.fault != nil {
		return nil, m.fault
	}
	left := int64(cel.ObjectCost)
	value, err := m.made.Make(ctx, r.Vars(ctx, c.policy.env, view, c.namespace, c.params, &left), &left)
	if err != nil {
		return nil, fmt.Errorf("expression '%s' resulted in error: %w", m.text, err)
	}
	tree, err := value.Tree()
	if err != nil {
		return nil, err
	}
	made, err := r.change(c, m, view.Object, tree)
	if err == nil && made != nil && apply.Size(made.Tree(), r.most) > r.most {
		return nil, fmt.Errorf("policies may add %d bytes to an object at most", mostAdded)
	}
	return made, err
}

// change returns an object as the value of a mutation changes it.
func (r *changes) change(c call, m mutation, shown *meta.Object, value any) (*meta.Object, error) {
	if m.patch {
		patched, err := apply.JSONPatch(shown.Tree(), codec.EncodeValue(nil, value), apply.Limits{})
		switch {
		case errors.Is(err, apply.ErrTest):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("JSON Patch: %v", err) // which is no status of the caller's
		}
		return meta.NewObject(patched), nil
	}
	fields, ok := value.(map[string]any)
	switch {
	case !ok:
		return nil, fmt.Errorf("unsupported return type from ApplyConfiguration expression: %T", value)
	case r.Forms == nil:
		return nil, errors.New("error applying patch: nobody knows the fields of the object")
	}
	merged, err := r.Forms.Merge(shown, fields, c.version)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: %v", err)
	}
	return merged, nil
}

// take makes the object what a policy made of it.
func (r *changes) take(ctx context.Context, c call, shown, made *meta.Object) error {
	defer r.Changed()
	if r.Forms == nil {
		tree := made.Tree()
		clear(r.Object.Tree())
		maps.Copy(r.Object.Tree(), tree)
		return nil
	}
	dropped, err := r.Forms.Take(ctx, r.Request.Request, shown, made, c.version)
	if refused := (*meta.Status)(nil); errors.As(err, &refused) {
		return refused
	}
	if len(dropped) > 0 {
		err = fmt.Errorf("strict decoding error: unknown field %q", dropped[0])
	}
	if err == nil {
		return nil
	}
	return meta.Internal(fmt.Errorf("what MutatingAdmissionPolicy '%s' with binding '%s' made: %w", c.policy.name, c.binding.name, err))
}

// fail notes that a policy could not be evaluated.
func (r *changes) fail(p *policy, b *binding, err error, reason meta.Reason) {
	if p.ignore || r.told >= mostTold {
		return
	}
	who := fmt.Sprintf("policy %q", p.name)
	if b != nil {
		who = fmt.Sprintf("policy '%s' with binding '%s'", p.name, b.name)
	}
	message := clip(fmt.Sprintf("%s denied request: %v", who, err), mostTold-r.told)
	r.told += len(message)
	r.failures = append(r.failures, failure{message, reason})
}

// status is the answer to a request that is refused, nil if it is not.
func (r *changes) status() error {
	if len(r.failures) == 0 {
		return nil
	}
	st := meta.Forbidden(r.Resource.GroupResource(), r.Name, r.failures[0].message)
	st.Message, st.Reason = r.failures[0].message, r.failures[0].reason
	for _, f := range r.failures {
		st.Details.Causes = append(st.Details.Causes, meta.Cause{Message: f.message})
	}
	return st
}
