package server

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/resource"
)

// failures logs what fails by the server's own fault. Who can make a request fail can
// do so without end, so of each cause only the first ones of a minute are reported. How
// many were left out is reported with the first failure after that, or by close.
//
// A cause is what failed, one of few, and of what: a resource or a function. Neither is
// a value that callers choose.
type failures struct {
	log *slog.Logger

	mu  sync.Mutex // not held while something is logged
	now minute
}

// minute is what failed since it began, by what failed and of what.
type minute struct {
	began time.Time
	count map[string]map[string]int
}

// Bounds of what is reported in a minute. Whatever failed of more is one cause, so that it
// takes no other's place.
const (
	failuresReported = 10
	failedOfOne      = 20
)

// report logs a failure unless there were too many of its cause.
func (f *failures) report(what, of, message string, about ...any) {
	f.mu.Lock()
	var last minute
	if time.Since(f.now.began) >= time.Minute {
		last, f.now = f.now, minute{time.Now(), map[string]map[string]int{}}
	}
	count := f.now.count[what]
	if count == nil {
		count = map[string]int{}
		f.now.count[what] = count
	}
	if count[of] == 0 && len(count) >= failedOfOne {
		of = "any other"
	}
	count[of]++
	n := count[of]
	f.mu.Unlock()
	last.reportLeftOut(f.log)
	if n == failuresReported {
		about = append(about, "more", "of this cause are left out for a minute")
	}
	if n <= failuresReported {
		f.log.Error(message, about...)
	}
}

// close reports what was left out.
func (f *failures) close() {
	f.mu.Lock()
	last := f.now
	f.now = minute{}
	f.mu.Unlock()
	last.reportLeftOut(f.log)
}

func (m minute) reportLeftOut(log *slog.Logger) {
	for _, what := range slices.Sorted(maps.Keys(m.count)) {
		for _, of := range slices.Sorted(maps.Keys(m.count[what])) {
			if n := m.count[what][of] - failuresReported; n > 0 {
				log.Error("failures were left out of the log", "cause", what+" of "+of, "count", n, "since", m.began)
			}
		}
	}
}

// failed logs why a request failed, if nobody has: a panic was reported where it was
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
	s.failures.report(whatFailed(err), r.servedResource(), "request failed", append(r.about(), "error", err)...)
}

// about tells a request from others in the log.
func (r *request) about() []any {
	return []any{"method", r.http.Method, "verb", r.Verb, "path", r.Path, "resource", r.Resource, "name", r.Name}
}

// servedResource returns the resource of a request if there is such a one: what else
// its path says is the caller's choice.
func (r *request) servedResource() string {
	if r.version == nil {
		return "no resource"
	}
	return r.version.Resource().GroupResource().String()
}

func whatFailed(err error) string {
	var conversion *resource.ConversionError
	var unreadable *client.UnreadableError
	var st *meta.Status
	switch {
	case errors.As(err, &conversion):
		return "a conversion"
	case errors.As(err, &unreadable):
		return "an unreadable object"
	case errors.As(err, &st):
		return "a refusal"
	}
	return "the store"
}

// panickedIn returns the function that panicked, by the stack where that was recovered.
func panickedIn(stack []byte) string {
	_, below, _ := strings.Cut(string(stack), "\npanic(")
	for line := range strings.Lines(below) {
		call := strings.LastIndexByte(line, '(')
		if call > 0 && line[0] != '\t' && !strings.HasPrefix(line, "runtime.") {
			return line[:call]
		}
	}
	return "an unknown function"
}
