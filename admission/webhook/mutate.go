package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/wellknown"
)

// The types of webhooks in metrics.
const (
	mutating   = "admit"
	validating = "validating"
)

// reinvocation is the state that the first pass of the mutating phase leaves to the second pass, which reinvokes the
// webhooks with reinvocationPolicy IfNeeded that did not see the final object.
type reinvocation struct {
	called []*hook        // webhooks with reinvocationPolicy IfNeeded called since the last change
	again  map[*hook]bool // webhooks with reinvocationPolicy IfNeeded called before the last change: to reinvoke
	output *meta.Object   // the object after the last webhook
}

// changed records a change of the object, which the webhooks called before have not seen.
func (s *reinvocation) changed() {
	for _, h := range s.called {
		s.again[h] = true
	}
	s.called = nil
}

// mutate calls the webhooks that match a request sequentially.
func (w *webhooks) mutate(ctx context.Context, ar *admission.Request) error {
	hooks := w.hooks()
	if len(hooks) == 0 || matcher.ExemptFromWebhooks(ar) {
		return nil
	}
	r := &request{Request: matcher.Request{Request: ar}, w: w}
	state := &reinvocation{again: map[*hook]bool{}}
	if r.Pass > 0 {
		before, ok := r.State[w].(*reinvocation)
		if !ok {
			return nil
		}
		if state = before; !sameTree(state.output, r.Object) { // changed by other plugins
			state.changed()
		}
	}
	for i, h := range hooks {
		if r.Pass > 0 && !state.again[h] {
			continue
		}
		version, ok, err := h.match(ctx, r)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		changed, err := w.call(ctx, r, h, version, i)
		if err != nil {
			return err
		}
		if changed {
			r.changed()
			r.Reinvoke()
			state.changed()
		}
		if h.reinvoke {
			state.called = append(state.called, h)
		}
	}
	if r.Pass == 0 && len(state.called)+len(state.again) > 0 {
		if r.State == nil {
			ar.State = map[any]any{}
		}
		state.output = r.Object.Clone()
		r.State[w] = state
	}
	return nil
}

func sameTree(a, b *meta.Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return meta.Equal(a.Tree(), b.Tree())
}

// call calls a webhook and applies its patch. It reports whether the patch changed the object.
func (w *webhooks) call(ctx context.Context, r *request, h *hook, version meta.GroupVersion, index int) (changed bool, err error) {
	v, err := r.see(ctx, version)
	if err != nil {
		return false, err
	}
	place := "round_" + strconv.Itoa(r.Pass) + "_index_" + strconv.Itoa(index)
	begun := time.Now()
	back := metrics.LeaveOutside(ctx)
	a, err := w.ask(ctx, r, h, v)
	back()
	if err == nil && len(a.Patch) > 0 {
		changed, err = w.patch(ctx, r, h, v, version, a.Patch, place)
	}
	r.Annotate(w.names.Wire(wellknown.AuditMutation)+place, text(map[string]any{
		"configuration": h.configuration, "webhook": h.name, "mutated": changed,
	}))
	if a != nil { // after the server's own annotations, because the size of the audit event is limited
		w.passOn(r, h, a)
	}
	return changed, w.conclude(ctx, r, h, err, time.Since(begun), "failed-open."+w.names.Wire(wellknown.AuditMutation)+place)
}

// patch applies the patch of a webhook, and reports whether it changed the object.
func (w *webhooks) patch(ctx context.Context, r *request, h *hook, v *matcher.View, version meta.GroupVersion, patch []byte, place string) (bool, error) {
	operations, err := decodePatch(patch)
	if err != nil {
		return false, &callError{h.name, fmt.Errorf("received undecodable patch in webhook response: %w", err)}
	}
	if len(operations) == 0 {
		return false, nil
	}
	if v.Object == nil {
		return false, meta.Internal(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", h.name))
	}
	tree, err := apply.JSONPatch(v.Object.Tree(), patch, apply.Limits{})
	if err != nil {
		return false, meta.Internal(err)
	}
	made, shown := meta.NewObject(tree), v.Object.Clone() // v.Object may be r.Object itself
	if r.Representations == nil {
		clear(r.Object.Tree())
		maps.Copy(r.Object.Tree(), tree)
	} else if _, err := r.Representations.Take(ctx, r.Request.Request, v.Object, made, version); err != nil {
		if refused := (*meta.Status)(nil); errors.As(err, &refused) {
			return false, refused
		}
		return false, meta.Internal(fmt.Errorf("invalid patch of admission webhook %q: %w", h.name, err))
	}
	if !r.AnnotateExternal(w.names.Wire(wellknown.AuditPatch)+place, text(map[string]any{
		"configuration": h.configuration, "webhook": h.name, "patchType": patchType, "patch": operations,
	})) {
		w.log.Warn("dropped the patch of an admission webhook from the audit event: too large", "webhook", h.name, "bytes", len(patch))
	}
	return !sameTree(shown, made), nil
}

// decodePatch returns the operations of a JSON patch.
func decodePatch(patch []byte) ([]any, error) {
	tree, err := meta.ParseJSON(patch)
	if err != nil || tree == nil {
		return nil, err
	}
	operations, ok := tree.([]any)
	if !ok {
		return nil, errors.New("not a list of operations")
	}
	return operations, nil
}

// text returns a value of an audit annotation.
func text(tree map[string]any) string { return string(codec.EncodeJSON(nil, tree)) }
