// Package audit records what callers do: a policy says of which requests how
// much, sinks say where to.
//
// Recording never holds a request up: every sink has a queue of bounded length
// and size, and what does not fit is dropped. Losses are counted, logged and told
// by Check: a server keeps serving, as the field's servers do that gather events.
package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
)

// The bounds of one event.
const (
	maxObject      = 1 << 20 // bytes of a recorded object
	maxText        = 4 << 10 // bytes of the path, the user agent or an annotation's key
	maxAnnotations = 128
	maxAnnotated   = 256 << 10 // bytes of all annotations of an event
	maxSources     = 16
)

// Config says what is recorded and where to.
type Config struct {
	Policy *Policy // required
	Sinks  []Sink  // at least one; Close closes them
	Names  names.Profile
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // is told of losses, once a minute for each sink; nil discards
}

// Log records requests. It is an auth.Auditor, and a prometheus.Collector of how
// many events there were and how many were lost.
type Log struct {
	config   Config
	queues   []*queue
	counters counters
}

// Open starts one goroutine for each sink. Close ends them.
func Open(c Config) (*Log, error) {
	if c.Policy == nil || len(c.Sinks) == 0 {
		return nil, errors.New("audit: no policy or no sink")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{config: c, counters: newCounters()}
	for _, s := range c.Sinks {
		name := nameOf(s)
		l.queues = append(l.queues, newQueue(s, &state{sink: name, now: c.Now, errors: l.counters.errors.WithLabelValues(name), logger: c.Logger}))
	}
	return l, nil
}

// Close writes what is waiting, for as long as ctx allows, and closes the sinks.
// Events that come later are dropped. A sink that does not heed its context a
// second after that is left to end by itself.
func (l *Log) Close(ctx context.Context) error {
	errs := make([]error, len(l.queues))
	var all sync.WaitGroup
	for i, q := range l.queues {
		all.Go(func() { errs[i] = q.close(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Dropped returns how many events did not reach a sink: because they came faster
// than it took them, or because it failed.
func (l *Log) Dropped() uint64 {
	var n uint64
	for _, q := range l.queues {
		n += q.state.dropped()
	}
	return n
}

// Begin implements auth.Auditor.
func (l *Log) Begin(r *http.Request, id string, a auth.Attributes) auth.Trail {
	t := &trail{log: l, decision: l.config.Policy.decide(a)}
	l.counters.levels.WithLabelValues(t.level.String()).Inc()
	if t.level == None {
		return t
	}
	t.event.Kind, t.event.APIVersion = "Event", groupVersion(l.config.Names)
	t.event.Level, t.event.AuditID = t.level.String(), id
	t.event.RequestURI = cut(r.URL.RequestURI())
	t.event.Verb, t.event.User, t.event.ObjectRef = a.Verb, infoOf(a.User), refOf(a)
	t.event.SourceIPs, t.event.UserAgent = sources(r), cut(r.UserAgent())
	t.event.Received = microTime{l.config.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emit(RequestReceived)
	return t
}

// sources returns the addresses that a request came by: as its headers say,
// then the connection's.
func sources(r *http.Request) []string {
	var out []string
	add := func(s string) {
		ip := net.ParseIP(strings.TrimSpace(s))
		if ip != nil && len(out) < maxSources && !slices.Contains(out, ip.String()) {
			out = append(out, ip.String())
		}
	}
	for _, h := range r.Header["X-Forwarded-For"] {
		for s := range strings.SplitSeq(h, ",") {
			add(s)
		}
	}
	add(r.Header.Get("X-Real-Ip"))
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	add(host)
	return out
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return s[:maxText] + "..."
}

// trail is an auth.Trail.
type trail struct {
	log *Log
	decision

	mu        sync.Mutex // guards the rest
	event     event
	annotated int // bytes of annotations
	done      bool
}

// Impersonate implements auth.Trail.
func (t *trail) Impersonate(u *auth.User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	info := infoOf(u)
	t.event.ImpersonatedUser = &info
}

// Annotate implements auth.Trail.
func (t *trail) Annotate(key, value string) {
	if t.level == None {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.annotate(key, value)
}

// annotate is called with mu held.
func (t *trail) annotate(key, value string) {
	if t.level < Request && strings.HasPrefix(key, t.log.config.Names.Wire(wellknown.AuditPatch)) {
		return // what webhooks changed is part of the object
	}
	if t.event.Annotations == nil {
		t.event.Annotations = map[string]string{}
	}
	size := len(key) + len(value)
	_, taken := t.event.Annotations[key]
	if !taken && len(t.event.Annotations) < maxAnnotations && len(key) <= maxText && t.annotated+size <= maxAnnotated {
		t.event.Annotations[key] = value
		t.annotated += size
	}
}

// Concerns implements auth.Trail.
func (t *trail) Concerns(name, uid, version string) {
	if t.level == None {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if ref := t.event.ObjectRef; ref != nil {
		ref.Name = cmp.Or(ref.Name, cut(name))
		ref.UID, ref.ResourceVersion = cut(uid), cut(version)
	}
}

// Request implements auth.Trail.
func (t *trail) Request(body func() []byte) {
	if t.level < Request || body == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.event.RequestObject = t.object(body())
}

// object returns the JSON value of a recorded object, nil if there is none to
// record. It is called with mu held.
func (t *trail) object(body []byte) any {
	switch {
	case len(body) == 0:
		return nil
	case len(body) > maxObject:
		t.annotate(t.log.config.Names.Group(wellknown.GroupAudit)+"/truncated", "true")
		return nil
	}
	if t.omitManagedFields && bytes.Contains(body, []byte(`"managedFields"`)) {
		return withoutManagedFields(body)
	}
	if !json.Valid(body) {
		return nil
	}
	return json.RawMessage(bytes.Clone(body))
}

func withoutManagedFields(body []byte) any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var tree map[string]any
	if d.Decode(&tree) != nil {
		return nil
	}
	drop := func(o any) {
		if m, ok := o.(map[string]any); ok {
			if md, ok := m["metadata"].(map[string]any); ok {
				delete(md, "managedFields")
			}
		}
	}
	drop(tree)
	if items, ok := tree["items"].([]any); ok {
		for _, o := range items {
			drop(o)
		}
	}
	return tree
}

// Started implements auth.Trail.
func (t *trail) Started(code int) {
	if t.level == None {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.event.ResponseStatus = &responseStatus{Code: code}
	t.emit(ResponseStarted)
}

// Complete implements auth.Trail.
func (t *trail) Complete(o auth.Outcome) {
	if t.level == None {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return
	}
	t.done = true
	t.event.ResponseStatus = statusOf(o)
	if t.level >= RequestResponse && o.Response != nil {
		t.event.ResponseObject = t.object(o.Response())
	}
	if o.Panicked {
		t.emit(Panic)
		return
	}
	t.emit(ResponseComplete)
}

func statusOf(o auth.Outcome) *responseStatus {
	s := &responseStatus{Code: o.Code}
	var st *meta.Status
	if errors.As(o.Err, &st) {
		s.Status, s.Reason, s.Message = st.Status, string(st.Reason), cut(st.Message)
		if st.Details != nil {
			s.Details = st.Details
		}
	}
	if o.Panicked && s.Message == "" {
		s.Status, s.Reason, s.Message = "Failure", string(meta.ReasonInternalError), "the server failed on this request"
	}
	return s
}

// emit hands the event as it is now to every sink. It is called with mu held.
func (t *trail) emit(stage Stage) {
	if slices.Contains(t.omitStages, stage) {
		return
	}
	t.event.Stage, t.event.StageTime = stage, microTime{t.log.config.Now()}
	if stage == RequestReceived {
		t.event.StageTime = t.event.Received
	}
	t.log.counters.event.Inc()
	line, err := json.Marshal(&t.event)
	if err != nil {
		for _, q := range t.log.queues {
			q.state.lost(1, err)
		}
		return
	}
	for _, q := range t.log.queues {
		q.put(line)
	}
}

// list returns an EventList of events, as webhooks take it.
func list(p names.Profile, events [][]byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"kind":"EventList","apiVersion":%q,"metadata":{},"items":[`, groupVersion(p))
	b.Write(bytes.Join(events, []byte(",")))
	b.WriteString("]}")
	return b.Bytes()
}
