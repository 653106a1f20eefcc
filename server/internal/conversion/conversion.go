// Package conversion converts objects of CustomResourceDefinitions between versions by conversion
// webhooks.
package conversion

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/internal/webhookclient"
	"orch.io/controlplane/internal/wellknown"
)

// Bounds of a review.
const (
	timeout     = 30 * time.Second
	maxResponse = 16 << 20 // bytes
	maxObjects  = 500
	maxBytes    = 4 << 20 // total size of the objects of a review with more than one object
)

// reviewVersions are the supported versions of ConversionReview, in the order of preference.
var reviewVersions = []string{"v1", "v1beta1"}

// Webhooks calls the conversion webhooks of a server. It is safe for concurrent use.
type Webhooks struct {
	group  string // the wire group of ConversionReview
	dialer webhookclient.Dialer
	counts *counts
	report Report
}

// Report logs a failure. The arguments are the failed part, the resource, the message, and
// attributes. Clients can make a webhook fail any number of times, so a Report may drop messages.
type Report func(what, of, message string, about ...any)

// New returns the Webhooks of a server.
func New(p names.Profile, services services.Resolver, set *metrics.Set, report Report) *Webhooks {
	return &Webhooks{
		group: p.Group(wellknown.GroupExtensions), counts: newCounts(set), report: report,
		dialer: webhookclient.Dialer{Services: services, Agent: p.Wire(wellknown.ServerManager)},
	}
}

// Webhook is the conversion webhook of a type, which is compiled from one state of a definition. It
// implements resource.Converter.
type Webhook struct {
	all           *Webhooks
	crd           string // name of the definition
	ended         bool   // guarded by counts.ending
	reviewVersion string // apiVersion of ConversionReview
	remote        *webhookclient.Remote
	fault         error // invalid configuration; returned by every call
}

// Webhook returns the webhook of a type, or nil if the type has none. If the webhook's
// configuration is invalid, its conversions fail.
func (w *Webhooks) Webhook(t *resource.Type) *Webhook {
	if t.Webhook == nil {
		return nil
	}
	spec, h := meta.NewObject(t.Webhook), &Webhook{all: w, crd: t.GroupResource().String()}
	known := spec.Strings("conversionReviewVersions")
	i := slices.IndexFunc(known, func(version string) bool { return slices.Contains(reviewVersions, version) })
	if i < 0 {
		h.fault = fmt.Errorf("the webhook supports no known ConversionReview version (%s)", strings.Join(reviewVersions, ", "))
		return h
	}
	h.reviewVersion = w.group + "/" + known[i]
	h.remote, h.fault = w.dialer.Remote(spec.Map("clientConfig"), webhookclient.Bounds{Time: timeout, Answer: maxResponse})
	return h
}

// Attach sets the Converter of a type that has a conversion webhook. Call it before the type is
// shared.
func (w *Webhooks) Attach(t *resource.Type) {
	if h := w.Webhook(t); h != nil {
		t.Converter = h
	}
}

// Detach closes the connections to the webhook of a type that is no longer served. Conversions in
// progress finish.
func Detach(t *resource.Type) {
	if h, ok := t.Converter.(*Webhook); ok {
		h.Close()
	}
}

// Close closes the connections to the webhook and removes the metrics of the definition. Conversions
// in progress finish.
func (h *Webhook) Close() {
	h.all.counts.end(h)
	if h.remote != nil {
		h.remote.Close()
	}
}

// Convert implements resource.Converter. It sends as few reviews as their bounds allow. If ctx ends
// during a call, Convert returns its error, which does not count as a failure of the webhook.
func (h *Webhook) Convert(ctx context.Context, objs []*meta.Object, to *resource.Version) ([]*meta.Object, error) {
	out := make([]*meta.Object, 0, len(objs))
	for len(out) < len(objs) {
		rest := objs[len(out):]
		texts := encodeBatch(rest)
		some := rest[:len(texts)]
		began := time.Now()
		converted, failed := h.review(ctx, some, texts, to)
		if failed != nil && failed.kind == callFailure && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h.all.counts.observe(h, to, meta.ParseAPIVersion(some[0].APIVersion()).Version, time.Since(began), failed)
		if failed != nil {
			kind := meta.ParseAPIVersion(some[0].APIVersion())
			text := fmt.Sprintf("conversion webhook for %s/%s, Kind=%s %v", kind.Group, kind.Version, to.Kind, failed.err)
			of := to.GroupResource().String()
			h.all.report("a conversion webhook", of, "conversion webhook failed", "resource", of, "to", to.Name, "error", failed.err)
			return nil, meta.Failure(http.StatusInternalServerError, "", "%s", text)
		}
		out = append(out, converted...)
	}
	return out, nil
}

// encodeBatch encodes the first objects, as many as fit into a review and at least one.
func encodeBatch(objs []*meta.Object) []any {
	texts, size := make([]any, 0, min(len(objs), maxObjects)), 0
	for _, obj := range objs[:min(len(objs), maxObjects)] {
		text := codec.EncodeJSON(nil, obj.Tree())
		if size += len(text); size > maxBytes && len(texts) > 0 {
			break
		}
		texts = append(texts, meta.RawJSON(text))
	}
	return texts
}

// failure is the error of a review, and its failure_type in metrics.
type failure struct {
	kind string
	err  error
}

// review sends a review and returns the converted objects.
func (h *Webhook) review(ctx context.Context, objs []*meta.Object, texts []any, to *resource.Version) ([]*meta.Object, *failure) {
	if h.fault != nil {
		return nil, &failure{callFailure, fmt.Errorf("failed: %w", h.fault)}
	}
	uid, desired := uuid.NewString(), to.GVK().APIVersion()
	body, err := h.remote.Post(ctx, codec.EncodeJSON(nil, map[string]any{
		"kind": kindReview, "apiVersion": h.reviewVersion,
		"request": map[string]any{"uid": uid, "desiredAPIVersion": desired, "objects": texts},
	}))
	if err != nil {
		return nil, &failure{callFailure, fmt.Errorf("failed: %w", err)}
	}
	return parseReview(body, request{reviewVersion: h.reviewVersion, uid: uid, desired: desired, objects: objs})
}
