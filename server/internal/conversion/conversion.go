// Package conversion asks the webhooks that definitions name to convert objects.
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

// Bounds of one review.
const (
	timeout    = 30 * time.Second
	maxAnswer  = 16 << 20 // bytes
	maxObjects = 500
	maxBytes   = 4 << 20 // of the objects that are sent, unless it is one
)

// reviewVersions are those of ConversionReview that can be sent.
var reviewVersions = []string{"v1", "v1beta1"}

// Webhooks are those of one server.
type Webhooks struct {
	group  string // the wire group of ConversionReview
	dialer webhookclient.Dialer
	counts *counts
	report Report
}

// Report logs a failure: what failed, of which resource, and more about it. Callers can make
// a webhook fail without end: it leaves out what is too much.
type Report func(what, of, message string, about ...any)

// New returns the webhooks of a server.
func New(p names.Profile, services services.Resolver, set *metrics.Set, report Report) *Webhooks {
	return &Webhooks{
		group: p.Group(wellknown.GroupExtensions), counts: newCounts(set), report: report,
		dialer: webhookclient.Dialer{Services: services, Agent: p.Wire(wellknown.ServerManager)},
	}
}

// Webhook converts the objects of one state of a definition: it is the
// resource.Converter of their type.
type Webhook struct {
	of     *Webhooks
	crd    string // the name of the definition
	ended  bool   // under the lock of counts
	review string // its apiVersion
	remote *webhookclient.Remote
	fault  error // why it cannot be asked
}

// Webhook makes the one that a definition names, and nil if it names none. What cannot
// be asked fails the requests that need it.
func (w *Webhooks) Webhook(t *resource.Type) *Webhook {
	if t.Webhook == nil {
		return nil
	}
	spec, h := meta.NewObject(t.Webhook), &Webhook{of: w, crd: t.GroupResource().String()}
	known := spec.Strings("conversionReviewVersions")
	i := slices.IndexFunc(known, func(version string) bool { return slices.Contains(reviewVersions, version) })
	if i < 0 {
		h.fault = fmt.Errorf("it does not accept known ConversionReview versions (%s)", strings.Join(reviewVersions, ", "))
		return h
	}
	h.review = w.group + "/" + known[i]
	h.remote, h.fault = w.dialer.Remote(spec.Map("clientConfig"), webhookclient.Bounds{Time: timeout, Answer: maxAnswer})
	return h
}

// Attach lets a type convert its objects by the webhook that its definition names, if it names one.
func (w *Webhooks) Attach(t *resource.Type) {
	if h := w.Webhook(t); h != nil {
		t.Converter = h
	}
}

// Detach closes the connections of a type that is no longer served to its webhook. Conversions
// that are under way finish.
func Detach(t *resource.Type) {
	if h, ok := t.Converter.(*Webhook); ok {
		h.End()
	}
}

// End lets the connections go, and what metrics tell of the definition. Conversions that are
// under way come to their end.
func (h *Webhook) End() {
	h.of.counts.end(h)
	if h.remote != nil {
		h.remote.End()
	}
}

// Convert implements resource.Converter, by as few reviews as their bounds allow. A caller
// who goes away while the webhook is called gets the error of ctx: that is no failure of it.
func (h *Webhook) Convert(ctx context.Context, objs []*meta.Object, to *resource.Version) ([]*meta.Object, error) {
	out := make([]*meta.Object, 0, len(objs))
	for len(out) < len(objs) {
		rest := objs[len(out):]
		texts := sent(rest)
		some := rest[:len(texts)]
		began := time.Now()
		converted, failed := h.ask(ctx, some, texts, to)
		if failed != nil && failed.sort == callFailure && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h.of.counts.observe(h, to, meta.ParseAPIVersion(some[0].APIVersion()).Version, time.Since(began), failed)
		if failed != nil {
			kind := meta.ParseAPIVersion(some[0].APIVersion())
			text := fmt.Sprintf("conversion webhook for %s/%s, Kind=%s %v", kind.Group, kind.Version, to.Kind, failed.err)
			of := to.GroupResource().String()
			h.of.report("a conversion webhook", of, "a conversion webhook failed", "resource", of, "to", to.Name, "error", failed.err)
			return nil, meta.Failure(http.StatusInternalServerError, "", "%s", text)
		}
		out = append(out, converted...)
	}
	return out, nil
}

// sent returns the texts of the first objects, as many as one review takes.
func sent(objs []*meta.Object) []any {
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

// failure is why a review came to nothing, and which sort of failure that is in metrics.
type failure struct {
	sort string
	err  error
}

// ask sends one review.
func (h *Webhook) ask(ctx context.Context, objs []*meta.Object, texts []any, to *resource.Version) ([]*meta.Object, *failure) {
	if h.fault != nil {
		return nil, &failure{callFailure, fmt.Errorf("failed: %w", h.fault)}
	}
	uid, desired := uuid.NewString(), to.GVK().APIVersion()
	body, err := h.remote.Post(ctx, codec.EncodeJSON(nil, map[string]any{
		"kind": kindReview, "apiVersion": h.review,
		"request": map[string]any{"uid": uid, "desiredAPIVersion": desired, "objects": texts},
	}))
	if err != nil {
		return nil, &failure{callFailure, fmt.Errorf("failed: %w", err)}
	}
	return read(body, question{review: h.review, uid: uid, desired: desired, objects: objs})
}
