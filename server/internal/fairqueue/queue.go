package fairqueue

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"orch.io/controlplane/server/flowcontrol"
)

// level is a priority level at work. The controller's lock guards it.
type level struct {
	config flowcontrol.PriorityLevel

	nominal int // seats that are its own
	kept    int // of these, those that it does not lend
	most    int // with those that it borrows
	widest  int // most seats of one request

	inUse   int
	waiting int     // requests in the queues
	queues  []queue // none: nobody waits here
	virtual float64 // the virtual time: that of the newest request that got its seats
}

// queue holds requests that wait. What its requests took, in seconds of seats,
// is its virtual time; the queue that has taken least is served next, so that
// all queues take the same in the long run, whatever their requests cost.
type queue struct {
	waiting []*waiter
	virtual float64
}

// estimate is what a seat is thought to be taken for until it is known, in
// seconds.
const estimate = 0.003

// waiter is a request in a queue.
type waiter struct {
	flow    Flow
	number  int // in the order of arrival
	queue   *queue
	seats   int
	arrived time.Time
	decided chan struct{} // closed when it got its seats, or err is set
	err     error
}

// enqueue puts a request into the shortest queue of its flow's hand, and reports
// whether there is room.
func (l *level) enqueue(w *waiter) bool {
	w.queue = nil
	for _, i := range deal(hash(w.flow.key()), len(l.queues), l.config.Queuing.HandSize) {
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
		q.virtual = max(q.virtual, l.virtual) // who asked for nothing has saved nothing
	}
	q.waiting = append(q.waiting, w)
	l.waiting++
	return true
}

// leave takes a request out of its queue.
func (l *level) leave(w *waiter) {
	i := slices.Index(w.queue.waiting, w)
	w.queue.waiting = slices.Delete(w.queue.waiting, i, i+1)
	l.waiting--
}

// next returns the request whose turn it is, nil if none waits.
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

// begin charges a queue for a request that got its seats.
func (l *level) begin(w *waiter) {
	l.virtual = max(l.virtual, w.queue.virtual)
	w.queue.virtual += float64(w.seats) * estimate
}

// hash is that of a flow's names, the same in every process.
func hash(schema, flow string) uint64 {
	sum := sha256.Sum256([]byte(schema + "\x00" + flow))
	return binary.BigEndian.Uint64(sum[:])
}

// deal takes a hand of different cards from a deck of so many, by the digits of
// a number: every hand is as likely as any other.
func deal(number uint64, deck, size int) []int {
	hand := make([]int, 0, size)
	sorted := make([]int, 0, size)
	for i := range size {
		card := int(number % uint64(deck-i))
		number /= uint64(deck - i)
		at := 0
		for at < len(sorted) && sorted[at] <= card { // skip the cards that are gone
			card++
			at++
		}
		sorted = slices.Insert(sorted, at, card)
		hand = append(hand, card)
	}
	return hand
}
