package metrics

import (
	"context"
	"sync"
	"time"
)

// Outside measures the time that a request spends outside the control of the server, such as in
// calls to webhooks or in queues. Time that several parts of the request spend outside concurrently
// counts once, so the total never exceeds the time that passed. The zero value is ready to use,
// also concurrently.
type Outside struct {
	mu    sync.Mutex // guards the fields below
	parts int        // number of parts of the request that are outside
	since time.Time  // when parts last rose from 0
	spent time.Duration
}

// Add adds a duration during which no part of the request was outside.
func (o *Outside) Add(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spent += d
}

// Leave counts a part of the request as outside until back is called, which must happen exactly
// once.
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

// Spent returns the total time, without the parts that are still outside.
func (o *Outside) Spent() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.spent
}

type outsideKey struct{}

// WithOutside returns a context in which LeaveOutside counts in o.
func WithOutside(ctx context.Context, o *Outside) context.Context {
	return context.WithValue(ctx, outsideKey{}, o)
}

// LeaveOutside calls Leave on the Outside of ctx. If there is none, it does nothing.
func LeaveOutside(ctx context.Context) (back func()) {
	if o, ok := ctx.Value(outsideKey{}).(*Outside); ok {
		return o.Leave()
	}
	return func() {}
}
