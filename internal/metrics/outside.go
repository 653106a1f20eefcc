package metrics

import (
	"context"
	"sync/atomic"
	"time"
)

// Outside is the time that a request spent where the server has no say in how long it
// takes: at webhooks of others, in a queue.
type Outside struct{ spent atomic.Int64 }

// Add adds to it.
func (o *Outside) Add(d time.Duration) { o.spent.Add(int64(d)) }

// Spent returns it.
func (o *Outside) Spent() time.Duration { return time.Duration(o.spent.Load()) }

type outsideKey struct{}

// WithOutside makes SpentOutside count for what has this context.
func WithOutside(ctx context.Context, o *Outside) context.Context {
	return context.WithValue(ctx, outsideKey{}, o)
}

// SpentOutside adds to the Outside of a context, if there is one.
func SpentOutside(ctx context.Context, d time.Duration) {
	if o, ok := ctx.Value(outsideKey{}).(*Outside); ok {
		o.Add(d)
	}
}
