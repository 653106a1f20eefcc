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
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/metrics"
)

// The two sorts of webhooks, as metrics name them.
const (
	mutating   = "admit"
	validating = "validating"
)

// round is what is known after the first pass.
type round struct {
	called []*hook        // that want to see later changes, and saw the last one
	again  map[*hook]bool // that did not see it
	output *meta.Object   // what webhooks left
}

// changed says that a webhook changed the object: all that were called before it have not
// seen that.
func (s *round) changed() {
	for _, h := range s.called {
		s.again[h] = true
	}
	s.called = nil
}

// mutate asks the webhooks about a request one after the other.
func (w *webhooks) mutate(ctx context.Context, ar *admission.Request) error {
	hooks := w.hooks()
	if len(hooks) == 0 || matcher.ExemptFromWebhooks(ar) {
		return nil
	}
	r := &request{Request: matcher.Request{Request: ar}, w: w}
	state := &round{again: map[*hook]bool{}}
	if r.Pass > 0 {
		before, ok := r.Kept[w].(*round)
		if !ok {
			return nil
		}
		if state = before; !sameTree(state.output, r.Object) { // plugins changed it
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
			r.Again()
			state.changed()
		}
		if h.reinvoke {
			state.called = append(state.called, h)
		}
	}
	if r.Pass == 0 && len(state.called)+len(state.again) > 0 {
		if r.Kept == nil {
			ar.Kept = map[any]any{}
		}
		state.output = r.Object.Clone()
		r.Kept[w] = state
	}
	return nil
}

func sameTree(a, b *meta.Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return meta.Equal(a.Tree(), b.Tree())
}

// call asks one webhook and takes its patch. It reports whether that changed the object.
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
	r.Annotate(w.names.Wire(names.AuditMutation)+place, text(map[string]any{
		"configuration": h.configuration, "webhook": h.name, "mutated": changed,
	}))
	if a != nil { // after what the server says itself: the audit has room for so much
		w.hand(r, h, a)
	}
	return changed, w.settle(ctx, r, h, err, time.Since(begun), "failed-open."+w.names.Wire(names.AuditMutation)+place)
}

// patch takes the patch of a webhook.
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
	made, shown := meta.NewObject(tree), v.Object.Clone() // what is shown may be the object itself
	if r.Forms == nil {
		clear(r.Object.Tree())
		maps.Copy(r.Object.Tree(), tree)
	} else if _, err := r.Forms.Take(ctx, r.Request.Request, v.Object, made, version); err != nil {
		if refused := (*meta.Status)(nil); errors.As(err, &refused) {
			return false, refused
		}
		return false, meta.Internal(fmt.Errorf("the patch of the admission webhook %q: %w", h.name, err))
	}
	if !r.AnnotateExternal(w.names.Wire(names.AuditPatch)+place, text(map[string]any{
		"configuration": h.configuration, "webhook": h.name, "patchType": patchType, "patch": operations,
	})) {
		w.log.Warn("the audit event has no room for the patch of an admission webhook", "webhook", h.name, "bytes", len(patch))
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
		return nil, errors.New("it is no list of operations")
	}
	return operations, nil
}

// text is the value of an audit annotation.
func text(tree map[string]any) string { return string(codec.EncodeJSON(nil, tree)) }
