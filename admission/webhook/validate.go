package webhook

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/metrics"
)

// atOnce is how many webhooks are asked about one request at a time.
const atOnce = 32

// question is one call of a validating webhook, and what came of it.
type question struct {
	hook   *hook
	view   *matcher.View
	index  int
	answer *answer
	err    error
	took   time.Duration
}

// validate asks the webhooks about a request at the same time.
func (w *webhooks) validate(ctx context.Context, ar *admission.Request) error {
	hooks := w.hooks()
	if len(hooks) == 0 || matcher.ExemptFromWebhooks(ar) {
		return nil
	}
	r := &request{Request: matcher.Request{Request: ar}, w: w}
	var list []*question
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
		list = append(list, &question{hook: h, view: v, index: i})
	}
	if len(list) > 0 {
		w.askAll(ctx, r, list)
	}
	var first error
	for _, q := range list {
		if q.answer != nil {
			w.hand(r, q.hook, q.answer)
		}
		place := "failed-open." + w.names.Wire(names.AuditValidation) + "round_0_index_" + strconv.Itoa(q.index)
		if err := w.settle(ctx, r, q.hook, q.err, q.took, place); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// askAll returns when every question is answered.
func (w *webhooks) askAll(ctx context.Context, r *request, list []*question) {
	defer metrics.LeaveOutside(ctx)()
	ask := func(q *question) {
		begun := time.Now()
		defer func() {
			q.took = time.Since(begun)
			if p := recover(); p != nil { // the request fails, not the process
				q.err = &callError{q.hook.name, fmt.Errorf("panic: %v", p)}
			}
		}()
		q.answer, q.err = w.ask(ctx, r, q.hook, q.view)
	}
	if len(list) == 1 {
		ask(list[0])
		return
	}
	room := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, q := range list {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			ask(q)
		})
	}
	all.Wait()
}
