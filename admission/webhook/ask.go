package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"orch.io/controlplane/admission/internal/selection"
	"orch.io/controlplane/api/meta"
)

// callError says that a webhook gave no answer.
type callError struct {
	webhook string
	err     error
}

// Error implements error.
func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.webhook, e.err)
}

// Unwrap returns why.
func (e *callError) Unwrap() error { return e.err }

// denial is the refusal of a webhook.
type denial struct{ *meta.Status }

// Unwrap returns the Status.
func (d *denial) Unwrap() error { return d.Status }

// ask sends a webhook the review of a view and returns its answer, which allows the
// request. The error is a *callError, a *denial, or a *meta.Status.
func (w *webhooks) ask(ctx context.Context, r *request, h *hook, v *selection.View) (*answer, error) {
	if r.DryRun && !h.dryRuns {
		return nil, meta.BadRequest("admission webhook %q does not support dry run", h.name)
	}
	if h.fault != nil {
		return nil, &callError{h.name, h.fault}
	}
	uid := uuid.NewString()
	body, err := h.remote.post(ctx, r.body(h, v, uid))
	var in response
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		return nil, &callError{h.name, fmt.Errorf("failed to call webhook: %w", err)}
	}
	a, err := in.read(w.review+"/"+h.review, uid, w.sort == mutating)
	if err != nil {
		return nil, &callError{h.name, fmt.Errorf("received invalid webhook response: %w", err)}
	}
	if !a.Allowed {
		return a, &denial{named(h, a.Denial)}
	}
	return a, nil
}

// named puts the name of the webhook before what it said.
func named(h *hook, d *meta.Status) *meta.Status {
	said := ": " + d.Message
	if d.Message == "" {
		said = " without explanation"
	}
	d.Message = fmt.Sprintf("admission webhook %q denied the request%s", h.name, said)
	return d
}

// Bounds of what webhooks add to the audit event of a request, all together, so that
// there is room for what the server says of them.
const (
	maxAnnotations = 64        // of answers
	maxAnnotated   = 128 << 10 // bytes of these and of patches
)

// room is what is left of these bounds.
type room struct{ annotations, bytes int }

// roomKey is that of the room in what a request keeps.
type roomKey struct{}

// record adds what a webhook says to the audit event, if there is room for it.
func (w *webhooks) record(r *request, h *hook, annotations int, key, value string) {
	left, ok := r.Kept[roomKey{}].(*room)
	if !ok {
		if left = (&room{maxAnnotations, maxAnnotated}); r.Kept == nil {
			r.Kept = map[any]any{}
		}
		r.Kept[roomKey{}] = left
	}
	if size := len(key) + len(value); left.annotations < annotations || left.bytes < size {
		w.log.Warn("an audit annotation of an admission webhook is left out", "webhook", h.name, "bytes", size)
		return
	}
	left.annotations -= annotations
	left.bytes -= len(key) + len(value)
	r.Annotate(key, value)
}

// hand gives the caller and the audit event what an answer has for them.
func (w *webhooks) hand(r *request, h *hook, a *answer) {
	for _, text := range a.Warnings {
		if text != "" {
			r.Warn(text)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a.Annotations)) {
		full := h.name + "/" + key
		if len(meta.CheckQualifiedName(full)) > 0 {
			w.log.Warn("an audit annotation of an admission webhook has no good key", "webhook", h.name)
			continue
		}
		w.record(r, h, 1, full, a.Annotations[key])
	}
}

// settle counts how a call of a webhook ended and returns what becomes of the request:
// nil lets it go on.
func (w *webhooks) settle(ctx context.Context, r *request, h *hook, err error, took time.Duration, failedOpen string) error {
	var (
		call    *callError
		refusal *denial
		o       = outcome{webhook: h.name, sort: w.sort, operation: string(r.Operation), took: took, code: http.StatusOK}
	)
	switch {
	case err == nil:
	case errors.As(err, &call):
		o.code, o.rejected, o.failure = http.StatusServiceUnavailable, !h.ignore, "calling_webhook_error"
		o.failedOpen = h.ignore
		if h.ignore {
			w.log.Warn("an admission webhook failed and was passed over", "configuration", h.configuration, "webhook", h.name, "error", call.err)
			r.Annotate(failedOpen, h.name)
			if err = nil; ctx.Err() != nil {
				err = meta.Timeout("request did not complete within requested timeout")
			}
			break
		}
		w.log.Warn("an admission webhook failed", "configuration", h.configuration, "webhook", h.name, "error", call.err)
		err = meta.Internal(err)
	case errors.As(err, &refusal):
		o.code, o.rejected, o.failure = refusal.Code, true, "no_error"
		if refusal.Code > 999 { // which an answer cannot have
			refusal.Code = http.StatusInternalServerError
		}
		err = refusal.Status
	default:
		o.code, o.rejected, o.failure = 0, true, "apiserver_internal_error"
	}
	w.metrics.observe(o)
	return err
}
