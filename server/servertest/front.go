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

// front is the handler that clients call. It tracks the requests in flight, applies faults, records requests,
// and stays when the server behind it crashes or restarts.
type front struct {
	mu        sync.Mutex     // guards the fields below
	server    *server.Server // nil: crashed or restarting
	authn     auth.Authenticator
	open      map[*call]struct{}
	faults    []*Fault
	recorders []*Recorder
	log       requestLog

	busy sync.WaitGroup // calls in flight; Add only while server is not nil
}

// call is a request and the ResponseWriter of its response.
type call struct {
	target target
	agent  string
	began  time.Time
	as     *auth.User // the user of Server.Conn; nil: use the credentials of the request

	mu     sync.Mutex          // guards the fields below
	writer http.ResponseWriter // writer, cancel and sent are released by end, because a Recorder keeps calls
	cancel context.CancelFunc
	sent   *capture // the body of a create, else nil
	made   string   // the name in that body, set by end
	user   string   // empty: unknown
	code   int      // 0: no response yet
	text   []byte   // the beginning of an error response
	gone   bool     // the connection was cut
	ended  bool
}

// callKey is the key of a request's call in its context.
type callKey struct{}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.serve(w, r, nil) }

// serve serves a request. If as is not nil, it is the user, and the credentials of the request are ignored.
func (f *front) serve(w http.ResponseWriter, r *http.Request, as *auth.User) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &call{writer: w, target: targetOf(r), agent: r.UserAgent(), began: time.Now(), as: as, cancel: cancel}
	r = r.WithContext(context.WithValue(ctx, callKey{}, c))
	if c.target.Verb == "create" && c.target.Name == "" && r.ContentLength != 0 {
		c.sent = &capture{ReadCloser: r.Body}
		r.Body = c.sent
	}
	server, authn, faults := f.enter(c)
	if server == nil {
		abort() // crashed
	}
	defer f.leave(c)
	h := http.Handler(server)
	if len(faults) > 0 {
		_, _ = authn.Authenticate(r) // records the user in c, which rules match on, even if a fault answers before the server authenticates
	}
	for _, x := range slices.Backward(faults) {
		if x.rule.name != "" && c.sent != nil {
			c.sent.peek()
		}
		if x.rule.matches(c) {
			h = x.wrap(c, h)
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
		if slices.ContainsFunc(r.rules, func(x Rule) bool { return x.mayMatch(c) }) {
			r.add(c)
		}
	}
	var faults []*Fault
	for _, x := range f.faults {
		if !x.over() {
			faults = append(faults, x)
		}
	}
	return f.server, f.authn, faults
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

// calls returns the requests in flight, the oldest first.
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

// put sets the server that gets new requests; nil refuses them.
func (f *front) put(next *server.Server, authn auth.Authenticator) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server, f.authn = next, authn
}

func (f *front) authenticator() auth.Authenticator {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.authn
}

func (f *front) isDown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.server == nil
}

// cutOff refuses new requests, cuts the requests in flight, and waits until they have ended.
func (f *front) cutOff() {
	f.put(nil, nil)
	for _, c := range f.calls() {
		c.cut()
	}
	f.busy.Wait()
}

// identified records the user, or the impersonated user as.
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

// name returns the name of the object that the request is for, empty if it has none.
func (c *call) name() string {
	c.mu.Lock()
	name, sent := cmp.Or(c.target.Name, c.made), c.sent
	c.mu.Unlock()
	if name == "" && sent != nil {
		return sent.name()
	}
	return name
}

// end marks the call as ended, and releases the body and writer.
func (c *call) end() {
	made := c.name()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.made = true, made
	c.writer, c.cancel, c.sent = discard{}, nil, nil
}

// cut cancels the request and cuts its connection. Nothing more is sent.
func (c *call) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.gone = true
	c.cancel()
	control, past := http.NewResponseController(c.writer), time.Unix(1, 0)
	_ = control.SetWriteDeadline(past) // unblocks a Write
	_ = control.SetReadDeadline(past)  // unblocks a Read of the body
}

func (c *call) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// answer records the status code and the beginning of an error. It returns the writer to use, or nil if the connection
// was cut.
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

// FlushError implements the interface of http.ResponseController.
func (c *call) FlushError() error {
	w := c.answer(http.StatusOK, nil)
	if w == nil {
		return http.ErrAbortHandler
	}
	return http.NewResponseController(w).Flush()
}

// SetReadDeadline implements the interface of http.ResponseController. It does nothing after cut, which has
// set a deadline in the past.
func (c *call) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil
	}
	return http.NewResponseController(c.writer).SetReadDeadline(at)
}

// Unwrap implements the interface of http.ResponseController.
func (c *call) Unwrap() http.ResponseWriter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writer
}
