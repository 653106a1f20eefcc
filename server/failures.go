package server

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/controller"
	"orch.io/controlplane/internal/resource"
)

// failures logs what fails by the server's own fault. Who can make a request fail can
// do so without end, so of each cause only the first ones of a minute are told. How
// many were left out is told with the first failure after that, or by close.
type failures struct {
	log *slog.Logger

	mu  sync.Mutex // not held while something is logged
	now minute
}

// minute is what failed since it began, by cause.
type minute struct {
	began time.Time
	count map[string]int
}

// Bounds of what is told in a minute. Causes beyond the most are one together.
const (
	failuresTold = 10
	failedCauses = 50
)

// tell logs a failure unless there were too many of its cause.
func (f *failures) tell(cause, message string, about ...any) {
	f.mu.Lock()
	var last minute
	if time.Since(f.now.began) >= time.Minute {
		last, f.now = f.now, minute{time.Now(), map[string]int{}}
	}
	if f.now.count[cause] == 0 && len(f.now.count) >= failedCauses {
		cause = "any other"
	}
	f.now.count[cause]++
	n := f.now.count[cause]
	f.mu.Unlock()
	last.tellLeftOut(f.log)
	if n == failuresTold {
		about = append(about, "more", "of this cause are left out for a minute")
	}
	if n <= failuresTold {
		f.log.Error(message, about...)
	}
}

// close tells what was left out.
func (f *failures) close() {
	f.mu.Lock()
	last := f.now
	f.now = minute{}
	f.mu.Unlock()
	last.tellLeftOut(f.log)
}

func (m minute) tellLeftOut(log *slog.Logger) {
	for _, cause := range slices.Sorted(maps.Keys(m.count)) {
		if n := m.count[cause] - failuresTold; n > 0 {
			log.Error("failures were left out of the log", "cause", cause, "count", n, "since", m.began)
		}
	}
}

// failed logs why a request failed, if nobody has: a panic was told where it was
// recovered.
func (s *Server) failed(r *request, err error) {
	if r.record.outcome.Panicked {
		return
	}
	var conversion *resource.ConversionError
	if errors.As(err, &conversion) && conversion.Stack() != nil {
		s.tellPanic("conversion", conversion, conversion.Stack(), r.about()...)
		return
	}
	s.failures.tell(causeOf(r, err), "request failed", append(r.about(), "error", err)...)
}

// about tells a request from others in the log.
func (r *request) about() []any {
	return []any{"method", r.http.Method, "verb", r.verb, "path", r.path, "resource", r.resource, "name", r.name}
}

// causeOf returns why a request failed, one of few whatever callers send.
func causeOf(r *request, err error) string {
	cause := "the store"
	var conversion *resource.ConversionError
	var unreadable *controller.UnreadableError
	var st *meta.Status
	switch {
	case errors.As(err, &conversion):
		cause = "a conversion"
	case errors.As(err, &unreadable):
		cause = "an unreadable object"
	case errors.As(err, &st):
		cause = "a refusal"
	}
	if r.version != nil {
		cause += " of " + r.version.GroupResource().String()
	}
	return cause
}
