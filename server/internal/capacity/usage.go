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

// Usage tracks the capacity of a Limiter that a request holds. The zero Usage holds nothing. It
// belongs to the goroutine of the request; only Outside may be used concurrently.
type Usage struct {
	Outside metrics.Outside // time in webhooks and queues
	Refused bool            // the request was refused to protect the server

	limiter  *Limiter
	action   auth.Attributes // for which the flow was determined
	flow     fairqueue.Flow
	holder   fairqueue.Holder // zero until the user is known
	exempt   bool             // continues if a pool is full
	mutating bool

	kind     Kind // of slot
	slot     fairqueue.Part
	width    int // seats that the request needs; 0 means 1
	seat     fairqueue.Seat
	inFlight prometheus.Gauge // counts the seat; nil without a seat
	builder  fairqueue.Seat
	body     fairqueue.Part
	answer   fairqueue.Part
}

// Begin binds the Usage to a Limiter.
func (u *Usage) Begin(l *Limiter) { u.limiter = l }

// Classify determines the flow of a request with a known user, and sets the flow headers of the
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

// AcquireSlot takes a slot, and gives back the slot that the request holds already. Slots bound the
// number of a user's requests that wait for their bodies, for seats, and for clients to read the
// responses. AcquireSlot returns a 429 if no slot is free.
func (u *Usage) AcquireSlot(k Kind) error {
	u.slot.Release()
	slot, ok := u.limiter.slots[k].Acquire(u.holder, 1)
	if u.kind = k; !ok && !u.exempt {
		return u.TooMany(full[k])
	}
	u.slot = slot
	return nil
}

// Kind returns the kind of the slot that AcquireSlot was last called for.
func (u *Usage) Kind() Kind { return u.kind }

// AcquireRefusal takes a slot for the response to a request that got no slot. It reports whether a
// slot was free.
func (u *Usage) AcquireRefusal() (ok bool) {
	u.slot, ok = u.limiter.refusals.Acquire(u.holder, 1)
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

// AcquireBuilder waits until the request may make a response of many objects. Without builders,
// many such requests could occupy all processors. Call it after AcquireSeat: a request that held a
// builder while it waits for a seat of its level would block requests of all levels. Worked
// releases the builder.
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

// The time that ReserveBody waits: for the first bytes of a body, and for more bytes. The second is
// short, because the body holds bytes that others wait for.
const (
	bodyWait   = 10 * time.Second
	growthWait = time.Second
)

// ReserveBody reserves size bytes for a large body, or grows its reservation to size. The first
// reservation waits until whole bytes are available, but reserves only size, so that a body that
// never arrives holds little. Worked releases the bytes, not the end of the read: the decoded body
// is many times as large. ReserveBody returns a 429 if the bytes do not become available in time.
func (u *Usage) ReserveBody(ctx context.Context, size, whole int64) (err error) {
	wait := bodyWait
	if u.exempt {
		if !u.body.Held() {
			u.body, _ = u.limiter.bodies.Acquire(u.holder, whole)
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

// LongAnswer is the size in bytes from which a response counts as long.
const LongAnswer = 16 << 10

// ReserveAnswer reserves the bytes of a long response until the client has read it, and gives back
// an earlier reservation. It returns an error if the bytes are not available: a 429 for a read, and
// a 504 for a write, because the write was carried out.
func (u *Usage) ReserveAnswer(size int) error {
	u.answer.Release()
	if size < LongAnswer || u.limiter == nil {
		return nil
	}
	answer, ok := u.limiter.answers.Acquire(u.holder, int64(size))
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

// ReserveCompressor reserves a compressor and reports whether one is free. The caller gives it
// back.
func (u *Usage) ReserveCompressor() (fairqueue.Part, bool) {
	if u.limiter == nil {
		return fairqueue.Part{}, false
	}
	return u.limiter.zipping.Acquire(u.holder, 1)
}

// TooMany returns a 429 that protects the capacity of others, and marks the request as refused. why
// is the first half of the message.
func (u *Usage) TooMany(why string) *meta.Status {
	u.Refused = true
	st := meta.Failure(http.StatusTooManyRequests, meta.ReasonTooManyRequests, "%s, please try again later", why)
	st.Details = &meta.StatusDetails{RetryAfterSeconds: 1}
	return st
}

// Worked releases the seat, the builder and the body, because the response is made.
func (u *Usage) Worked() {
	u.builder.Release()
	if u.seat.Release(); u.inFlight != nil {
		u.inFlight.Dec()
		u.inFlight = nil
	}
	u.body.Release()
}

// End releases everything that the request holds.
func (u *Usage) End() {
	u.Worked()
	u.answer.Release()
	u.slot.Release()
}
