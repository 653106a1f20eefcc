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

	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/meta"
)

// callError is a failed call: the webhook could not be reached, or returned an invalid response. It is
// subject to the failure policy.
type callError struct {
	webhook string
	err     error
}

// Error implements error.
func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.webhook, e.err)
}

// Unwrap returns the cause.
func (e *callError) Unwrap() error { return e.err }

// denial is the Status of a webhook that refused the request. It is not subject to the failure policy.
type denial struct{ *meta.Status }

// Unwrap returns the Status.
func (d *denial) Unwrap() error { return d.Status }

// ask sends the review of a view to a webhook. It returns the answer if the webhook allows the request. The
// error is a *callError, a *denial (with the answer), or a *meta.Status.
func (w *webhooks) ask(ctx context.Context, r *request, h *hook, v *matcher.View) (*answer, error) {
	if r.DryRun && !h.dryRuns {
		return nil, meta.BadRequest("admission webhook %q does not support dry run", h.name)
	}
	if h.fault != nil {
		return nil, &callError{h.name, h.fault}
	}
	uid := uuid.NewString()
	body, err := h.remote.Post(ctx, r.body(h, v, uid))
	var in response
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		return nil, &callError{h.name, fmt.Errorf("failed to call webhook: %w", err)}
	}
	a, err := in.read(w.review+"/"+h.review, uid, w.counts.sort == mutating)
	if err != nil {
		return nil, &callError{h.name, fmt.Errorf("received invalid webhook response: %w", err)}
	}
	if !a.Allowed {
		return a, &denial{named(h, a.Denial)}
	}
	return a, nil
}

// named prepends the name of the webhook to the message of its denial.
func named(h *hook, d *meta.Status) *meta.Status {
	explanation := ": " + d.Message
	if d.Message == "" {
		explanation = " without explanation"
	}
	d.Message = fmt.Sprintf("admission webhook %q denied the request%s", h.name, explanation)
	return d
}

// maxAnnotations bounds the audit annotations of an answer.
const maxAnnotations = 64

// passOn passes the warnings of an answer to the caller and its annotations to the audit event. Annotations
// with an invalid key, or beyond the limits, are dropped and logged.
func (w *webhooks) passOn(r *request, h *hook, a *answer) {
	for _, text := range a.Warnings {
		if text != "" {
			r.Warn(text)
		}
	}
	noRoom, badKeys := max(0, len(a.Annotations)-maxAnnotations), 0
	if noRoom > 0 {
		maps.DeleteFunc(a.Annotations, func(string, string) bool { return len(a.Annotations) > maxAnnotations })
	}
	for _, key := range slices.Sorted(maps.Keys(a.Annotations)) {
		full := h.name + "/" + key
		if len(meta.CheckQualifiedName(full)) > 0 {
			badKeys++
		} else if !r.AnnotateExternal(full, a.Annotations[key]) {
			noRoom++
		}
	}
	if noRoom+badKeys > 0 {
		w.log.Warn("dropped audit annotations of an admission webhook", "webhook", h.name, "noRoom", noRoom, "badKeys", badKeys)
	}
}

// conclude records the result of a call in metrics, log and audit event, and applies the failure policy. A
// nil result admits the request.
func (w *webhooks) conclude(ctx context.Context, r *request, h *hook, err error, took time.Duration, failedOpen string) error {
	var (
		call    *callError
		refusal *denial
		o       = outcome{webhook: h.name, operation: string(r.Operation), took: took, code: http.StatusOK}
	)
	switch {
	case err == nil:
	case errors.As(err, &call):
		o.code, o.rejected, o.failure = http.StatusServiceUnavailable, !h.ignore, "calling_webhook_error"
		o.failedOpen = h.ignore
		if h.ignore {
			w.log.Warn("admission webhook failed; ignored by its failure policy", "configuration", h.configuration, "webhook", h.name, "error", call.err)
			r.Annotate(failedOpen, h.name)
			if err = nil; ctx.Err() != nil {
				err = meta.Timeout("request did not complete within requested timeout")
			}
			break
		}
		w.log.Warn("admission webhook failed", "configuration", h.configuration, "webhook", h.name, "error", call.err)
		err = meta.Internal(err)
	case errors.As(err, &refusal):
		o.code, o.rejected, o.failure = refusal.Code, true, "no_error"
		if refusal.Code > 999 { // not a valid HTTP status code
			refusal.Code = http.StatusInternalServerError
		}
		err = refusal.Status
	default:
		o.code, o.rejected, o.failure = 0, true, "apiserver_internal_error"
	}
	w.counts.observe(o)
	return err
}
