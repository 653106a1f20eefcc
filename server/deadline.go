package server

import (
	"net/http"
	"sync"
	"time"
)

// parting is how long the last bytes of a watch that ends may take.
const parting = time.Second

// patience bounds how long the peer of one answer may hold up its writes. A
// writer without deadlines, such as a test's recorder, never waits.
type patience struct {
	control *http.ResponseController
	span    time.Duration

	mu    sync.Mutex // guards the rest, and the order of deadlines
	ended bool       // the deadline stays as it is
}

func newPatience(w http.ResponseWriter, span time.Duration) *patience {
	return &patience{control: http.NewResponseController(w), span: span}
}

// renew gives the writes that follow their whole time.
func (p *patience) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = p.control.SetWriteDeadline(time.Now().Add(p.span))
	}
}

// cut ends a write that waits, after a moment.
func (p *patience) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		_ = p.control.SetWriteDeadline(time.Now().Add(parting))
	}
}

// release takes the deadline off: the connection serves other requests.
func (p *patience) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	_ = p.control.SetWriteDeadline(time.Time{})
}
