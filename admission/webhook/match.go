package webhook

import (
	"context"
	"time"

	"orch.io/controlplane/api/meta"
)

// match reports whether a webhook is to be asked about a request, and the version in which.
// Without conditions that can be evaluated it is not asked if its failures are ignored; else
// the error ends the request.
func (h *hook) match(ctx context.Context, r *request) (version meta.GroupVersion, ok bool, err error) {
	version, ok, err = h.about.Match(ctx, &r.Request)
	if !ok || err != nil || h.conditions.Empty() {
		return version, ok, err
	}
	v, err := r.See(ctx, version)
	if err != nil {
		return version, false, err
	}
	begun := time.Now()
	ok, err = h.conditions.Match(ctx, &r.Request, v)
	r.w.counts.matched(h, r.Operation, time.Since(begun), ok, err)
	if err != nil && h.ignore {
		return version, false, nil
	}
	if err != nil {
		return version, false, meta.Forbidden(r.Resource.GroupResource(), r.Name, err.Error())
	}
	return version, ok, nil
}
