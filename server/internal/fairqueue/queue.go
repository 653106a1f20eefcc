package fairqueue

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"orch.io/controlplane/server/flowcontrol"
)

// level is the state of a priority level. The controller's lock guards it.
type level struct {
	config flowcontrol.PriorityLevel

	nominal  int // seats that the level owns
	kept     int // owned seats that the level does not lend
	maxInUse int // maximum of inUse, including borrowed seats
	maxWidth int // maximum seats of a request

	inUse   int     // seats
	waiting int     // requests in the queues
	queues  []queue // empty if requests do not wait
	virtual float64 // virtual time at which the newest request got its seats
}

// queue holds waiting requests. Its virtual time is the total work of its requests, in seats times
// seconds. The queue with the least virtual time is served next, so that all queues receive the
// same work over time, however much a request costs.
type queue struct {
	waiting []*waiter
	virtual float64
}

// estimate is the assumed duration of a request until the actual duration is known, in seconds.
const estimate = 0.003

// waiter is a request in a queue.
type waiter struct {
	flow    Flow
	number  int // in the order of arrival
	queue   *queue
	seats   int
	arrived time.Time
	decided chan struct{} // closed when the request has its seats, or err is set
	err     error
}

// enqueue adds a request to the shortest of the queues in its flow's hand. It reports whether there
// is room.
func (l *level) enqueue(w *waiter) bool {
	w.queue = nil
	for _, i := range shuffleShard(hash(w.flow.key()), len(l.queues), l.config.Queuing.HandSize) {
		q := &l.queues[i]
		if w.queue == nil || len(q.waiting) < len(w.queue.waiting) || len(q.waiting) == len(w.queue.waiting) && q.virtual < w.queue.virtual {
			w.queue = q
		}
	}
	q := w.queue
	if len(q.waiting) >= l.config.Queuing.QueueLength {
		return false
	}
	if len(q.waiting) == 0 {
		q.virtual = max(q.virtual, l.virtual) // idle time earns no credit
	}
	q.waiting = append(q.waiting, w)
	l.waiting++
	return true
}

// leave removes a request from its queue.
func (l *level) leave(w *waiter) {
	i := slices.Index(w.queue.waiting, w)
	w.queue.waiting = slices.Delete(w.queue.waiting, i, i+1)
	l.waiting--
}

// next returns the request to serve next, or nil if none waits.
func (l *level) next() *waiter {
	if l.waiting == 0 {
		return nil
	}
	var first *queue
	for i := range l.queues {
		q := &l.queues[i]
		if len(q.waiting) > 0 && (first == nil || q.virtual < first.virtual) {
			first = q
		}
	}
	return first.waiting[0]
}

// charge adds the estimated work of a request that got its seats to its queue.
func (l *level) charge(w *waiter) {
	l.virtual = max(l.virtual, w.queue.virtual)
	w.queue.virtual += float64(w.seats) * estimate
}

// hash returns a hash of a flow that is the same in every process.
func hash(schema, flow string) uint64 {
	sum := sha256.Sum256([]byte(schema + "\x00" + flow))
	return binary.BigEndian.Uint64(sum[:])
}

// shuffleShard returns a hand of size different cards from a deck, determined by a number. If the
// numbers are random, every hand is equally likely.
func shuffleShard(number uint64, deck, size int) []int {
	hand := make([]int, 0, size)
	sorted := make([]int, 0, size)
	for i := range size {
		card := int(number % uint64(deck-i))
		number /= uint64(deck - i)
		at := 0
		for at < len(sorted) && sorted[at] <= card { // skip the cards that were dealt before
			card++
			at++
		}
		sorted = slices.Insert(sorted, at, card)
		hand = append(hand, card)
	}
	return hand
}
