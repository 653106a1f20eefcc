package server

import (
	"net/http"
	"os"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
)

// parting is how long the last bytes of an answer may take: the error of a
// request that took too long, or the end of a watch.
const parting = time.Second

// limitTime sets how long the request may take: what the caller gives it with
// the parameter timeout, at most the server's limit. It holds for all paths, and
// not for what lasts as long as the caller wants.
func (s *Server) limitTime(r *request) error {
	r.limit = s.limits.RequestTime
	text := r.Query.Get("timeout")
	if text == "" || s.lasts(r) {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return meta.BadRequest("invalid timeout specified in the request URL - %v", err)
	}
	if d > 0 {
		r.limit = min(d, r.limit)
	}
	return nil
}

// writeDeadline bounds how long the peer of one answer may hold up its writes; they also
// wait for what still comes of a body. The deadline of the connection is set only when the
// time is over: setting it for each answer costs more than the timer. A writer without
// deadlines, such as a test's recorder, never waits.
type writeDeadline struct {
	control http.ResponseController
	span    time.Duration
	timer   *time.Timer

	mu       sync.Mutex // guards the rest, and the order of deadlines
	ended    bool       // the deadline stays as it is
	marked   bool       // a deadline was set
	released bool       // the request is over
}

// begin starts the time of the body, and of the first writes.
func (p *writeDeadline) begin(w http.ResponseWriter, h *http.Request, span time.Duration) {
	p.control, p.span = *http.NewResponseController(w), span+parting
	if h.ContentLength != 0 {
		_ = p.control.SetReadDeadline(time.Now().Add(span))
	}
	p.timer = time.AfterFunc(p.span, func() { p.end(-1) })
}

// renew gives the writes that follow their whole time.
func (p *writeDeadline) renew() { p.timer.Reset(p.span) }

// extend gives the writes that follow until a time, which is zero if they need none.
func (p *writeDeadline) extend(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return os.ErrDeadlineExceeded
	case t.IsZero():
		p.timer.Stop()
	default:
		p.timer.Reset(max(0, time.Until(t)))
	}
	return nil
}

// rest is for when nothing is written until renew.
func (p *writeDeadline) rest() { p.timer.Stop() }

// cut ends a write that waits, after a moment.
func (p *writeDeadline) cut() {
	p.unread()
	p.end(parting)
}

// unread gives what still comes of a body that nobody wants half a moment: an answer that
// waits for that can still leave.
func (p *writeDeadline) unread() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released {
		_ = p.control.SetReadDeadline(time.Now().Add(parting / 2))
	}
}

// end sets the deadline for good.
func (p *writeDeadline) end(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended, p.marked = true, true
		_ = p.control.SetWriteDeadline(time.Now().Add(after))
	}
}

// again sets a deadline for good that whoever took the connection over has taken
// off.
func (p *writeDeadline) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = p.control.SetWriteDeadline(time.Now().Add(parting))
	}
}

// release takes the deadline off: the connection serves other requests.
func (p *writeDeadline) release() {
	p.timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended, p.released = true, true
	if p.marked {
		_ = p.control.SetWriteDeadline(time.Time{})
	}
}
