package capacity

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/server/internal/fairqueue"
)

// Usage is what one request holds of a Limiter. The zero Usage holds nothing and has no bound.
// It belongs to the goroutine of the request; only Outside may be used concurrently.
type Usage struct {
	Outside metrics.Outside // time at webhooks and in queues
	Refused bool            // the request was refused to protect the server

	limiter  *Limiter
	action   auth.Attributes // that the flow was found by
	flow     fairqueue.Flow
	holder   fairqueue.Holder // zero until the user is known
	exempt   bool             // goes on if a pool is full
	mutating bool

	kind     Kind // of slot
	slot     fairqueue.Part
	width    int // seats that the request needs, if more than one
	seat     fairqueue.Seat
	inFlight prometheus.Gauge // counts the seat; nil without a seat
	builder  fairqueue.Seat
	body     fairqueue.Part
	answer   fairqueue.Part
}

// Begin binds the Usage to a Limiter.
func (u *Usage) Begin(l *Limiter) { u.limiter = l }

// Classify finds the flow of a request whose user is known and names it in the header of the
// response.
func (u *Usage) Classify(a auth.Attributes, h http.Header) {
	l := u.limiter
	u.action = a
	u.flow = l.seats.Classify(&u.action)
	u.exempt, u.holder, u.mutating = u.flow.Exempt(), holder(u.flow, a.User), mutates(a.Verb)
	values := []string{u.flow.SchemaUID(), u.flow.LevelUID()}
	h[l.headers[0]], h[l.headers[1]] = values[:1:1], values[1:]
}

func mutates(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection", "post", "put":
		return true
	}
	return false
}

// AcquireSlot takes a slot, in place of the slot that the request may hold. Slots bound how
// many requests of one caller wait: for their bodies, for seats, for the caller to read the
// answer. It returns a 429 if no slot is free.
func (u *Usage) AcquireSlot(k Kind) error {
	u.slot.Give()
	slot, ok := u.limiter.slots[k].Take(u.holder, 1)
	if u.kind = k; !ok && !u.exempt {
		return u.TooMany(full[k])
	}
	u.slot = slot
	return nil
}

// Kind returns the kind of the slot that AcquireSlot was last called for.
func (u *Usage) Kind() Kind { return u.kind }

// AcquireRefusal takes a slot for the answer to a request that got no slot. It reports whether
// one is free.
func (u *Usage) AcquireRefusal() (ok bool) {
	u.slot, ok = u.limiter.refusals.Take(u.holder, 1)
	return ok
}

// AcquireSeat waits until the server may work on the request. Worked releases the seat.
func (u *Usage) AcquireSeat(ctx context.Context) error {
	count := &u.limiter.reading
	if u.mutating {
		count = &u.limiter.mutating
	}
	count.inQueue.Inc()
	seat, err := u.limiter.seats.Acquire(ctx, u.flow, u.width)
	count.inQueue.Dec()
	u.Outside.Add(seat.Waited())
	if err != nil {
		return u.TooMany("too many requests at a time")
	}
	u.seat, u.inFlight = seat, count.inFlight
	count.inFlight.Inc()
	return nil
}

// SetObjects sets how many objects the request will look at. AcquireSeat takes more seats for
// more objects.
func (u *Usage) SetObjects(n int) {
	u.width = min((n+objectsPerSeat-1)/objectsPerSeat, fairqueue.MaxSeats)
}

// AcquireBuilder waits until the request may make an answer of many objects. Many such requests
// would otherwise occupy all processors. It must be called after AcquireSeat: a builder that
// waited for a seat of its own level would keep all levels from making answers. Worked releases
// it with the seat.
func (u *Usage) AcquireBuilder(ctx context.Context) error {
	if u.width <= 1 || u.exempt {
		return nil
	}
	builders := u.limiter.builders
	seat, err := builders.Acquire(ctx, builders.Classify(&u.action), 1)
	u.Outside.Add(seat.Waited())
	if err != nil {
		return u.TooMany("too many long answers at a time")
	}
	u.builder = seat
	return nil
}

// How long ReserveBody waits for bytes: for the first ones of a body, and for more, while the
// body holds bytes that others may wait for.
const (
	bodyWait   = 10 * time.Second
	growthWait = time.Second
)

// ReserveBody reserves size bytes for a large body, or grows its reservation to size. The first
// reservation waits until whole bytes would fit, but reserves only size, so that a body that
// never comes holds little. Worked releases the bytes: decoded, a body is many times as large.
// It returns a 429 if the bytes are not free in time.
func (u *Usage) ReserveBody(ctx context.Context, size, whole int64) (err error) {
	wait := bodyWait
	if u.exempt {
		if !u.body.Held() {
			u.body, _ = u.limiter.bodies.Take(u.holder, whole)
		}
		return nil
	}
	if u.body.Held() {
		wait = growthWait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if u.body.Held() {
		err = u.body.Grow(ctx, size)
	} else {
		u.body, err = u.limiter.bodies.Wait(ctx, u.holder, size, whole)
	}
	if err != nil {
		return u.TooMany("too many large bodies at a time")
	}
	return nil
}

// LongAnswer is the size in bytes from which on answers are counted.
const LongAnswer = 16 << 10

// ReserveAnswer reserves the bytes of a long answer until the caller has read it, in place of
// an earlier reservation. It returns an error if they are not free: a 429 to a read, and a 504
// to a write, because the write was carried out.
func (u *Usage) ReserveAnswer(size int) error {
	u.answer.Give()
	if size < LongAnswer || u.limiter == nil {
		return nil
	}
	answer, ok := u.limiter.answers.Take(u.holder, int64(size))
	switch {
	case ok:
		u.answer = answer
		return nil
	case u.exempt:
		return nil
	case u.mutating:
		return meta.Failure(http.StatusGatewayTimeout, meta.ReasonTimeout, "the request was carried out, but too many answers wait to be read")
	}
	return u.TooMany("too many answers wait to be read")
}

// ReserveCompressor returns a share of the compressors, for the caller to give back, and
// reports whether one is free.
func (u *Usage) ReserveCompressor() (fairqueue.Part, bool) {
	if u.limiter == nil {
		return fairqueue.Part{}, false
	}
	return u.limiter.zipping.Take(u.holder, 1)
}

// TooMany returns the 429 that refuses the request to keep capacity for others, and marks the
// request as refused. why is the first half of the message.
func (u *Usage) TooMany(why string) *meta.Status {
	u.Refused = true
	st := meta.Failure(http.StatusTooManyRequests, meta.ReasonTooManyRequests, "%s, please try again later", why)
	st.Details = &meta.StatusDetails{RetryAfterSeconds: 1}
	return st
}

// Worked releases what the request needs only while the server works on it: the answer is made.
func (u *Usage) Worked() {
	u.builder.Release()
	if u.seat.Release(); u.inFlight != nil {
		u.inFlight.Dec()
		u.inFlight = nil
	}
	u.body.Give()
}

// End releases everything that the request holds.
func (u *Usage) End() {
	u.Worked()
	u.answer.Give()
	u.slot.Give()
}
