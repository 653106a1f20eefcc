package metrics

import (
	"context"
	"sync"
	"time"
)

// Outside is the time that a request spent where the server has no say in how long it
// takes: at webhooks of others, in a queue. Time that several parts of a request spend there
// at once counts once: it is never more than has passed. The zero Outside is no time.
type Outside struct {
	mu    sync.Mutex
	parts int       // of the request, that are there
	since time.Time // when the first of them went
	spent time.Duration
}

// Add adds what a request spent while no part of it was outside.
func (o *Outside) Add(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spent += d
}

// Leave counts a part of the request as outside until back is called.
func (o *Outside) Leave() (back func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts++; o.parts == 1 {
		o.since = time.Now()
	}
	return o.back
}

func (o *Outside) back() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts--; o.parts == 0 {
		o.spent += time.Since(o.since)
	}
}

// Spent returns the time of all that came back.
func (o *Outside) Spent() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.spent
}

type outsideKey struct{}

// WithOutside makes LeaveOutside count for what has this context.
func WithOutside(ctx context.Context, o *Outside) context.Context {
	return context.WithValue(ctx, outsideKey{}, o)
}

// LeaveOutside is Leave of the Outside of a context, if there is one.
func LeaveOutside(ctx context.Context) (back func()) {
	if o, ok := ctx.Value(outsideKey{}).(*Outside); ok {
		return o.Leave()
	}
	return func() {}
}
