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

// mutator applies the policies to the object of a request. It is not safe for concurrent use.
type mutator struct {
	matcher.Request
	counts       *counts
	failures     []failure
	messageBytes int // total length of the messages of failures
	maxSize      int // maximum size of the object in bytes
	*reinvocation
}

// The limits for a request, in bytes: the growth of its object, and the messages of a refusal.
const (
	maxGrowth   = 8 << 20
	maxMessages = 64 << 10
)

// failure is a policy that could not be evaluated.
type failure struct {
	message string
	reason  meta.Reason
}

// reinvocation is the state that the first pass of the mutating phase leaves to the second pass, which reinvokes the
// policies that did not see the final object.
type reinvocation struct {
	called []callKey        // calls with reinvocationPolicy IfNeeded since the last change
	again  map[callKey]bool // calls with reinvocationPolicy IfNeeded before the last change: to reinvoke
	output *meta.Object     // the object after the last policy
}

// callKey identifies a call.
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

// changed records a change of the object, which the policies called before have not seen.
func (p *reinvocation) changed() {
	for _, k := range p.called {
		p.again[k] = true
	}
	p.called = nil
}

// mutate applies the policies to the object of a request in order. It evaluates all policies, and then refuses the
// request if a policy failed.
func (s *policies) mutate(ctx context.Context, ar *admission.Request) error {
	if ar.Operation == admission.Delete {
		return nil
	}
	r := &mutator{Request: matcher.Request{Request: ar}, counts: s.counts, reinvocation: &reinvocation{again: map[callKey]bool{}}}
	if ar.Pass > 0 {
		before, ok := ar.State[s].(*reinvocation)
		if !ok {
			return nil
		}
		if r.reinvocation = before; !same(before.output, ar.Object) { // changed by other plugins
			r.changed()
		}
	}
	list, err := s.calls(ctx, &r.Request, func(p *policy, b *binding, err error) { r.fail(p, b, err, meta.ReasonForbidden) })
	if err != nil {
		return err
	}
	if len(list) > 0 {
		r.maxSize = codec.EstimateSize(ar.Object.Tree(), math.MaxInt) + maxGrowth
	}
	if err := r.callAll(ctx, list); err != nil {
		return err
	}
	if ar.Pass == 0 && len(list) > 0 {
		if ar.State == nil {
			ar.State = map[any]any{}
		}
		ar.State[s] = r.reinvocation
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

// callAll evaluates the calls. If a mutation was applied, even without an effect, it requests reinvocation.
func (r *mutator) callAll(ctx context.Context, list []call) error {
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
		r.Reinvoke()
	}
	return nil
}

// call applies the mutations of a policy. patched reports whether a mutation was applied. The caller must end the
// request with a returned error.
func (r *mutator) call(ctx context.Context, c call) (patched bool, err error) {
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
		if ctx.Err() != nil { // the expression was interrupted: do not apply the failure policy
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
		if err := r.setObject(ctx, c, view.Object, made); err != nil {
			return false, err
		}
		changed = true
	}
	if changed {
		r.reinvocation.changed()
	}
	if p.reinvoked {
		r.called = append(r.called, key)
	}
	return patched, nil
}

// make evaluates a mutation and returns the changed object in the version of the view, or nil if it does not
// change.
func (r *mutator) make(ctx context.Context, c call, m mutation, view *matcher.View) (*meta.Object, error) {
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
	if err == nil && made != nil && codec.EstimateSize(made.Tree(), r.maxSize) > r.maxSize {
		return nil, fmt.Errorf("policies may add at most %d bytes to an object", maxGrowth)
	}
	return made, err
}

// change returns a copy of the object to which the value of a mutation is applied, or nil if a test operation of a
// JSON patch failed.
func (r *mutator) change(c call, m mutation, shown *meta.Object, value any) (*meta.Object, error) {
	if m.patch {
		patched, err := apply.JSONPatch(shown.Tree(), codec.EncodeValue(nil, value), apply.Limits{})
		switch {
		case errors.Is(err, apply.ErrTestFailed):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("JSON Patch: %v", err) // %v hides the Status in err, which is not for the caller
		}
		return meta.NewObject(patched), nil
	}
	fields, ok := value.(map[string]any)
	switch {
	case !ok:
		return nil, fmt.Errorf("unsupported return type from ApplyConfiguration expression: %T", value)
	case r.Representations == nil:
		return nil, errors.New("error applying patch: the schema of the object is unknown")
	}
	merged, err := r.Representations.Merge(shown, fields, c.version)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: %v", err)
	}
	return merged, nil
}

// setObject sets the object of the request to the changed one, and drops the cached views.
func (r *mutator) setObject(ctx context.Context, c call, shown, made *meta.Object) error {
	defer r.Changed()
	if r.Representations == nil {
		tree := made.Tree()
		clear(r.Object.Tree())
		maps.Copy(r.Object.Tree(), tree)
		return nil
	}
	dropped, err := r.Representations.Take(ctx, r.Request.Request, shown, made, c.version)
	if refused := (*meta.Status)(nil); errors.As(err, &refused) {
		return refused
	}
	if len(dropped) > 0 {
		err = fmt.Errorf("strict decoding error: unknown field %q", dropped[0])
	}
	if err == nil {
		return nil
	}
	return meta.Internal(fmt.Errorf("invalid object from MutatingAdmissionPolicy '%s' with binding '%s': %w", c.policy.name, c.binding.name, err))
}

// fail records that a policy could not be evaluated, unless its failure policy is Ignore.
func (r *mutator) fail(p *policy, b *binding, err error, reason meta.Reason) {
	if p.ignore || r.messageBytes >= maxMessages {
		return
	}
	subject := fmt.Sprintf("policy %q", p.name)
	if b != nil {
		subject = fmt.Sprintf("policy '%s' with binding '%s'", p.name, b.name)
	}
	message := clip(fmt.Sprintf("%s denied request: %v", subject, err), maxMessages-r.messageBytes)
	r.messageBytes += len(message)
	r.failures = append(r.failures, failure{message, reason})
}

// status returns the Status of a refused request, or nil if no policy failed.
func (r *mutator) status() error {
	if len(r.failures) == 0 {
		return nil
	}
	st := meta.Forbidden(r.Resource.GroupResource(), r.Name, r.failures[0].message)
	st.Message, st.Reason = r.failures[0].message, r.failures[0].reason
	for _, f := range r.failures {
		st.Details.Causes = append(st.Details.Causes, meta.StatusCause{Message: f.message})
	}
	return st
}
