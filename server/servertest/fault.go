package servertest

import (
	"net/http"
	"sync"
)

// Fault is a rule at work.
type Fault struct {
	rule  Rule
	front *front

	mu      sync.Mutex // guards the rest
	hits    int
	stopped bool
	under   map[*call]struct{} // requests that it is happening to
}

// Fail does to requests what a rule says, until the rule or the test ends or the fault is
// stopped. It concerns requests of clients, not those of the server's own controllers, of
// Objects, and of Load. A test fails if the fault did not happen as often as Times says, or
// without Times and AtMost, if it never happened. Of several faults the first comes first, and a request that it answers
// meets no other one. A fork has none.
//
//	s.Fail(servertest.On("update", "configmaps", "status").Times(3).With(servertest.Conflict))
func (s *Server) Fail(rule Rule) *Fault {
	s.t.Helper()
	rule.check(s.t)
	if len(rule.effects) == 0 {
		s.t.Fatalf("the rule on %s has no effect: see Rule.With", rule)
	}
	f := &Fault{rule: rule, front: s.front, under: map[*call]struct{}{}}
	s.front.mu.Lock()
	s.front.faults = append(s.front.faults, f)
	s.front.mu.Unlock()
	return f
}

// Hits returns how many requests the fault happened to so far.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// Stop ends the fault. The connections of requests that it is still happening to are cut.
func (f *Fault) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	for c := range f.under {
		c.cut()
	}
}

// around is next with the fault before it.
func (f *Fault) around(c *call, next http.Handler) http.Handler {
	faulty := next
	for i := len(f.rule.effects) - 1; i >= 0; i-- {
		faulty = f.rule.effects[i](faulty)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.take(c) {
			next.ServeHTTP(w, r)
			return
		}
		defer f.leave(c)
		faulty.ServeHTTP(w, r)
	})
}

// take counts a request, unless there were enough.
func (f *Fault) take(c *call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped || f.rule.times > 0 && f.hits == f.rule.times {
		return false
	}
	f.hits++
	f.under[c] = struct{}{}
	return true
}

func (f *Fault) leave(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.under, c)
}

// over reports whether no request can meet the fault any more.
func (f *Fault) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped || f.rule.times > 0 && f.hits == f.rule.times
}

// unmet fails the test if a fault did not happen as often as its rule says.
func (s *Server) unmet() {
	s.front.mu.Lock()
	faults := s.front.faults
	s.front.mu.Unlock()
	for _, f := range faults {
		n := f.Hits()
		switch {
		case f.rule.times == 0 && n == 0:
			s.t.Errorf("the fault on %s never happened: no request matched it; use Rule.AtMost if none may", f.rule)
		case f.rule.strict && n < f.rule.times:
			s.t.Errorf("the fault on %s was to happen %d times and happened %d times", f.rule, f.rule.times, n)
		}
	}
}

// Cut cuts the connections of the requests that a rule chooses and that are being answered
// now, such as watches, and returns how many these were. The rule's effects and
// times do not matter.
func (s *Server) Cut(rule Rule) int {
	s.t.Helper()
	rule.check(s.t)
	n := 0
	for _, c := range s.front.calls() {
		if rule.chooses(c) {
			c.cut()
			n++
		}
	}
	return n
}
