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
	target target
	agent  string
	began  time.Time
	as     *auth.User // the user of Server.Conn; nil: the request's credentials count

	mu     sync.Mutex          // guards the rest
	writer http.ResponseWriter // these three until the request has ended: a Recorder keeps calls
	cancel context.CancelFunc
	sent   *capture // the body of a creation, nil of others
	made   string   // the name in that body, when the request has ended
	user   string   // "": nobody that is known
	code   int      // 0: not answered yet
	text   []byte   // the beginning of the answer, if it is a refusal
	gone   bool     // the connection is cut
	ended  bool
}

// callKey is the key of a request's call in its context.
type callKey struct{}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.serve(w, r, nil) }

// serve answers a request. If as is not nil, it is the caller, whatever credentials the
// request carries.
func (f *front) serve(w http.ResponseWriter, r *http.Request, as *auth.User) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &call{writer: w, target: targetOf(r), agent: r.UserAgent(), began: time.Now(), as: as, cancel: cancel}
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
		if slices.ContainsFunc(r.rules, func(x Rule) bool { return x.mayChoose(c) }) {
			r.add(c)
		}
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
	c.mu.Lock()
	name, sent := cmp.Or(c.target.Name, c.made), c.sent
	c.mu.Unlock()
	if name == "" && sent != nil {
		return sent.name()
	}
	return name
}

// end keeps of a request what may still be asked for, and nothing as large as a body.
func (c *call) end() {
	made := c.name()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.made = true, made
	c.writer, c.cancel, c.sent = unheard{}, nil, nil
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
	control, past := http.NewResponseController(c.writer), time.Unix(1, 0)
	_ = control.SetWriteDeadline(past) // wakes who waits for the reader,
	_ = control.SetReadDeadline(past)  // and who waits for the rest of a body
}

func (c *call) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// answer notes what is sent and returns where to, nil if nothing may be.
func (c *call) answer(code int, b []byte) http.ResponseWriter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil
	}
	if c.code == 0 && code >= 200 {
		c.code = code
	}
	if room := maxText - len(c.text); c.code >= 400 && room > 0 {
		c.text = append(c.text, b[:min(room, len(b))]...)
	}
	return c.writer
}

// Header implements http.ResponseWriter.
func (c *call) Header() http.Header { return c.Unwrap().Header() }

// WriteHeader implements http.ResponseWriter.
func (c *call) WriteHeader(code int) {
	if w := c.answer(code, nil); w != nil {
		w.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (c *call) Write(b []byte) (int, error) {
	w := c.answer(http.StatusOK, b)
	if w == nil {
		return 0, http.ErrAbortHandler
	}
	return w.Write(b)
}

// FlushError is for http.ResponseController.
func (c *call) FlushError() error {
	w := c.answer(http.StatusOK, nil)
	if w == nil {
		return http.ErrAbortHandler
	}
	return http.NewResponseController(w).Flush()
}

// SetReadDeadline is for http.ResponseController. Once cut, a request gets no more time.
func (c *call) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil
	}
	return http.NewResponseController(c.writer).SetReadDeadline(at)
}

// Unwrap is for http.ResponseController.
func (c *call) Unwrap() http.ResponseWriter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writer
}
