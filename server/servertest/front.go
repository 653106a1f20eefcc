package servertest

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
)

// front is what clients reach: it knows the requests under way, lets faults happen to them,
// keeps what they were, and stays when the server behind it crashes.
type front struct {
	mu        sync.Mutex     // guards the rest
	server    *server.Server // nil: crashed
	who       auth.Authenticator
	open      map[*call]struct{}
	faults    []*Fault
	recorders []*Recorder
	log       requestLog

	busy sync.WaitGroup // calls; added to while there is a server
}

// call is one request, and the way of its answer.
type call struct {
	http.ResponseWriter
	target target
	agent  string
	began  time.Time
	cancel context.CancelFunc
	sent   *capture // the body of a creation, nil of others

	mu    sync.Mutex // guards the rest
	user  string     // "": nobody that is known
	code  int        // 0: not answered yet
	text  []byte     // the beginning of the answer, if it is a refusal
	gone  bool       // the connection is cut
	ended bool
}

// callKey is the key of a request's call in its context.
type callKey struct{}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &call{ResponseWriter: w, target: targetOf(r), agent: r.UserAgent(), began: time.Now(), cancel: cancel}
	r = r.WithContext(context.WithValue(ctx, callKey{}, c))
	if c.target.Verb == "create" && c.target.Name == "" && r.ContentLength != 0 {
		c.sent = &capture{ReadCloser: r.Body}
		r.Body = c.sent
	}
	server, who, faults := f.enter(c)
	if server == nil {
		abort() // nobody is there
	}
	defer f.leave(c)
	h := http.Handler(server)
	if len(faults) > 0 {
		_, _ = who.Authenticate(r) // which notes who calls, whom the server may not be asked about
	}
	for _, x := range slices.Backward(faults) {
		if x.rule.name != "" && c.sent != nil {
			c.sent.peek()
		}
		if x.rule.chooses(c) {
			h = x.around(c, h)
		}
	}
	h.ServeHTTP(c, r)
	if c.isCut() {
		abort()
	}
}

func (f *front) enter(c *call) (*server.Server, auth.Authenticator, []*Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server == nil {
		return nil, nil, nil
	}
	f.busy.Add(1)
	f.open[c] = struct{}{}
	for _, r := range f.recorders {
		r.add(c)
	}
	var faults []*Fault
	for _, x := range f.faults {
		if !x.over() {
			faults = append(faults, x)
		}
	}
	return f.server, f.who, faults
}

func (f *front) leave(c *call) {
	defer f.busy.Done()
	c.end()
	of := c.line()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, c)
	f.log.add(of)
}

// calls are the requests under way, the oldest first.
func (f *front) calls() []*call {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*call, 0, len(f.open))
	for c := range f.open {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *call) int { return a.began.Compare(b.began) })
	return list
}

// put has requests go to another server, or to none.
func (f *front) put(next *server.Server, who auth.Authenticator) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server, f.who = next, who
}

func (f *front) authenticator() auth.Authenticator {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.who
}

func (f *front) isDown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.server == nil
}

// cutOff refuses requests from now on and cuts those under way. It returns when nothing of
// them is left.
func (f *front) cutOff() {
	f.put(nil, nil)
	for _, c := range f.calls() {
		c.cut()
	}
	f.busy.Wait()
}

// identified notes who calls, or as whom.
func (c *call) identified(user, as string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user = cmp.Or(as, user)
}

func (c *call) caller() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.user
}

// name is the name that the request is about, "" if it names none.
func (c *call) name() string {
	if c.target.Name == "" && c.sent != nil {
		return c.sent.name()
	}
	return c.target.Name
}

// end keeps of a request what may still be asked for.
func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// cut ends the request, and its connection: what was not sent yet never is.
func (c *call) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.gone = true
	c.cancel()
	_ = http.NewResponseController(c.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) // wakes who waits for the reader
}

func (c *call) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// answer notes what is sent and reports whether it may be.
func (c *call) answer(code int, b []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return false
	}
	if c.code == 0 && code >= 200 {
		c.code = code
	}
	if room := maxText - len(c.text); c.code >= 400 && room > 0 {
		c.text = append(c.text, b[:min(room, len(b))]...)
	}
	return true
}

// WriteHeader implements http.ResponseWriter.
func (c *call) WriteHeader(code int) {
	if c.answer(code, nil) {
		c.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (c *call) Write(b []byte) (int, error) {
	if !c.answer(http.StatusOK, b) {
		return 0, http.ErrAbortHandler
	}
	return c.ResponseWriter.Write(b)
}

// FlushError is for http.ResponseController.
func (c *call) FlushError() error {
	if !c.answer(http.StatusOK, nil) {
		return http.ErrAbortHandler
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }
