package webhook

import (
	"context"
	"time"

	"orch.io/controlplane/api/meta"
)

// match reports whether a webhook is called for a request, and returns the version in which it sees the
// object. If a match condition cannot be evaluated, a webhook with failure policy Ignore is not called;
// otherwise the error refuses the request.
func (h *hook) match(ctx context.Context, r *request) (version meta.GroupVersion, ok bool, err error) {
	version, ok, err = h.constraints.Match(ctx, &r.Request)
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
