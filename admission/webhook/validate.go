package webhook

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/wellknown"
)

// maxConcurrentCalls is the maximum number of concurrent calls for a request.
const maxConcurrentCalls = 32

// call is a call of a validating webhook and its result.
type call struct {
	hook   *hook
	view   *matcher.View
	index  int
	answer *answer
	err    error
	took   time.Duration
}

// validate calls the webhooks that match a request concurrently.
func (w *webhooks) validate(ctx context.Context, ar *admission.Request) error {
	hooks := w.hooks()
	if len(hooks) == 0 || matcher.ExemptFromWebhooks(ar) {
		return nil
	}
	r := &request{Request: matcher.Request{Request: ar}, w: w}
	var list []*call
	for i, h := range hooks {
		version, ok, err := h.match(ctx, r)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		v, err := r.see(ctx, version)
		if err != nil {
			return err
		}
		list = append(list, &call{hook: h, view: v, index: i})
	}
	if len(list) > 0 {
		w.askAll(ctx, r, list)
	}
	var first error
	for _, c := range list {
		if c.answer != nil {
			w.passOn(r, c.hook, c.answer)
		}
		place := "failed-open." + w.names.Wire(wellknown.AuditValidation) + "round_0_index_" + strconv.Itoa(c.index)
		if err := w.conclude(ctx, r, c.hook, c.err, c.took, place); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// askAll makes the calls and returns when all have completed.
func (w *webhooks) askAll(ctx context.Context, r *request, list []*call) {
	defer metrics.LeaveOutside(ctx)()
	ask := func(c *call) {
		begun := time.Now()
		defer func() {
			c.took = time.Since(begun)
			if p := recover(); p != nil { // the request fails, not the process
				c.err = &callError{c.hook.name, fmt.Errorf("panic: %v", p)}
			}
		}()
		c.answer, c.err = w.ask(ctx, r, c.hook, c.view)
	}
	if len(list) == 1 {
		ask(list[0])
		return
	}
	room := make(chan struct{}, maxConcurrentCalls)
	var all sync.WaitGroup
	for _, c := range list {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			ask(c)
		})
	}
	all.Wait()
}
