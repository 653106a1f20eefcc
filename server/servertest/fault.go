package servertest

import (
	"net/http"
	"sync"
)

// Fault is a rule that is applied to requests. Its methods are safe for concurrent use.
type Fault struct {
	rule  Rule
	front *front

	mu      sync.Mutex // guards the fields below
	hits    int
	stopped bool
	active  map[*call]struct{} // requests in flight that it applies to
}

// Fail applies the effects of a rule to matching requests of clients, until the rule is exhausted, the fault
// is stopped or the test ends. Requests of the server's own controllers, of Objects and of Load are not
// affected, and forks have no faults. The test fails if the fault was applied fewer times than Times
// requires, or, without Times and AtMost, never. If several faults match a request, the first fault is
// outermost; if it answers, the other faults do not see the request.
//
//	s.Fail(servertest.On("update", "configmaps", "status").Times(3).With(servertest.Conflict))
func (s *Server) Fail(rule Rule) *Fault {
	s.t.Helper()
	rule.check(s.t)
	if len(rule.effects) == 0 {
		s.t.Fatalf("the rule on %s has no effect: add one by Rule.With", rule)
	}
	f := &Fault{rule: rule, front: s.front, active: map[*call]struct{}{}}
	s.front.mu.Lock()
	s.front.faults = append(s.front.faults, f)
	s.front.mu.Unlock()
	return f
}

// Hits returns the number of requests that the fault was applied to.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// Stop stops the fault, and cuts the connections of the requests in flight that it applies to.
func (f *Fault) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	for c := range f.active {
		c.cut()
	}
}

// wrap returns a handler that applies the fault to the call, or calls next if the fault is over.
func (f *Fault) wrap(c *call, next http.Handler) http.Handler {
	faulty := next
	for i := len(f.rule.effects) - 1; i >= 0; i-- {
		faulty = f.rule.effects[i](faulty)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.begin(c) {
			next.ServeHTTP(w, r)
			return
		}
		defer f.finish(c)
		faulty.ServeHTTP(w, r)
	})
}

// begin counts a call and reports whether the fault applies to it: it is not stopped or exhausted.
func (f *Fault) begin(c *call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped || f.rule.times > 0 && f.hits == f.rule.times {
		return false
	}
	f.hits++
	f.active[c] = struct{}{}
	return true
}

func (f *Fault) finish(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.active, c)
}

// over reports whether the fault is stopped or exhausted.
func (f *Fault) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped || f.rule.times > 0 && f.hits == f.rule.times
}

// reportUnmetFaults fails the test if a fault was not applied as often as its rule requires.
func (s *Server) reportUnmetFaults() {
	s.front.mu.Lock()
	faults := s.front.faults
	s.front.mu.Unlock()
	for _, f := range faults {
		n := f.Hits()
		switch {
		case f.rule.times == 0 && n == 0:
			s.t.Errorf("the fault on %s was never applied: no request matched; use Rule.AtMost if that is allowed", f.rule)
		case f.rule.strict && n < f.rule.times:
			s.t.Errorf("the fault on %s was applied %d of %d times", f.rule, n, f.rule.times)
		}
	}
}

// Cut cuts the connections of the requests in flight, such as watches, that match the rule, and returns their
// number. It ignores the effects and Times of the rule.
func (s *Server) Cut(rule Rule) int {
	s.t.Helper()
	rule.check(s.t)
	n := 0
	for _, c := range s.front.calls() {
		if rule.matches(c) {
			c.cut()
			n++
		}
	}
	return n
}
