package exchange

import (
	"net/http"
	"os"
	"sync"
	"time"
)

// CloseTimeout is how long the last bytes of a response may take: the error of a request that took
// too long, or the end of a watch.
const CloseTimeout = time.Second

// WriteDeadline bounds how long the peer of a response may delay its writes, which also wait
// for the rest of the request body. It sets the deadline of the connection only when the time
// is over, because a deadline for each response costs more than a timer. Writers without
// deadlines, such as a recorder in a test, never wait.
type WriteDeadline struct {
	Control http.ResponseController // of the underlying writer

	span  time.Duration
	timer *time.Timer

	mu       sync.Mutex // guards the rest, and the order of deadlines
	ended    bool       // the deadline no longer changes
	set      bool       // the connection has a deadline
	released bool       // the request is over
}

// Begin starts the time for the body of the request and for the first writes.
func (p *WriteDeadline) Begin(w http.ResponseWriter, h *http.Request, span time.Duration) {
	p.Control, p.span = *http.NewResponseController(w), span+CloseTimeout
	if h.ContentLength != 0 {
		_ = p.Control.SetReadDeadline(time.Now().Add(span))
	}
	p.timer = time.AfterFunc(p.span, func() { p.end(-1) })
}

// Renew gives the following writes the whole time.
func (p *WriteDeadline) Renew() { p.timer.Reset(p.span) }

// Extend gives the following writes until t, or any time if t is zero.
func (p *WriteDeadline) Extend(t time.Time) error {
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

// Pause stops the time until Renew, while nothing is written.
func (p *WriteDeadline) Pause() { p.timer.Stop() }

// Cut ends a waiting write, and the rest of the body, after a moment.
func (p *WriteDeadline) Cut() {
	p.AbandonBody()
	p.end(CloseTimeout)
}

// AbandonBody gives the rest of a body that is not needed half a moment, so that a response that
// waits for it can still leave.
func (p *WriteDeadline) AbandonBody() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released {
		_ = p.Control.SetReadDeadline(time.Now().Add(CloseTimeout / 2))
	}
}

// end sets the final deadline.
func (p *WriteDeadline) end(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended, p.set = true, true
		_ = p.Control.SetWriteDeadline(time.Now().Add(after))
	}
}

// Restore sets the final deadline again after a hijack removed it.
func (p *WriteDeadline) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = p.Control.SetWriteDeadline(time.Now().Add(CloseTimeout))
	}
}

// Release removes the deadline, because the connection serves other requests.
func (p *WriteDeadline) Release() {
	p.timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended, p.released = true, true
	if p.set {
		_ = p.Control.SetWriteDeadline(time.Time{})
	}
}
