// Package audit writes an audit log of requests. A Policy selects the requests
// and the level of detail; each Sink writes the events to a destination, such as
// a file or a webhook.
//
// Recording never delays a request. Each sink has a queue that is bounded in
// events and bytes; if the queue is full, events are dropped. The server
// continues to serve, and losses are counted, logged and reported by Check.
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

// The bounds of an event.
const (
	maxObject      = 1 << 20 // bytes of a recorded object
	maxText        = 4 << 10 // bytes of the URI, the user agent, an annotation's key or another text of the request
	maxAnnotations = 128
	maxAnnotated   = 256 << 10 // bytes of all annotations of an event, keys and values
	maxSources     = 16
)

// Config configures a Log.
type Config struct {
	Policy *Policy // required
	Sinks  []Sink  // at least one; Log.Close closes them
	Names  names.Profile
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // logs losses, at most once a minute for each sink; nil discards
}

// Log writes audit events to its sinks. It implements auth.Auditor, and
// prometheus.Collector for the numbers of events and losses. Its methods are safe
// for concurrent use.
type Log struct {
	config   Config
	queues   []*queue
	counters counters
}

// Open returns a Log. It starts a goroutine for each sink, which runs until
// Close.
func Open(c Config) (*Log, error) {
	if c.Policy == nil || len(c.Sinks) == 0 {
		return nil, errors.New("audit: a policy and at least one sink are required")
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

// Close writes the queued events and closes the sinks. Later events are dropped.
// When ctx ends, Close cancels the context of each Sink.Write and waits at most
// one more second. If a sink has not returned by then, its goroutine continues
// and closes the sink when Write returns.
func (l *Log) Close(ctx context.Context) error {
	errs := make([]error, len(l.queues))
	var all sync.WaitGroup
	for i, q := range l.queues {
		all.Go(func() { errs[i] = q.close(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Dropped returns the number of lost events, summed over the sinks: the queue
// was full, the sink failed, or the Log was closed.
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
	t.event.RequestURI = truncate(r.URL.RequestURI())
	t.event.Verb, t.event.User, t.event.ObjectRef = a.Verb, infoOf(a.User), refOf(a)
	t.event.SourceIPs, t.event.UserAgent = sources(r), truncate(r.UserAgent())
	t.event.Received = microTime{l.config.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emit(RequestReceived)
	return t
}

// sources returns the source addresses of a request without duplicates: from the
// headers X-Forwarded-For and X-Real-Ip, then the peer of the connection.
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

// truncate returns the first maxText bytes of s and "...", or s if it is not
// longer.
func truncate(s string) string {
	if len(s) <= maxText {
		return s
	}
	return s[:maxText] + "..."
}

// trail is the auth.Trail of a request. If the level is None, its methods do
// nothing.
type trail struct {
	log *Log
	decision

	mu        sync.Mutex // guards the fields below
	event     event
	annotated int  // bytes of annotations, see maxAnnotated
	done      bool // Complete was called
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

// annotate adds an annotation, unless the key exists or a bound is reached. It is
// called with mu held.
func (t *trail) annotate(key, value string) {
	if t.level < Request && strings.HasPrefix(key, t.log.config.Names.Wire(wellknown.AuditPatch)) {
		return // a webhook's patch has parts of the object, which this level omits
	}
	if t.event.Annotations == nil {
		t.event.Annotations = map[string]string{}
	}
	size := len(key) + len(value)
	_, exists := t.event.Annotations[key]
	if !exists && len(t.event.Annotations) < maxAnnotations && len(key) <= maxText && t.annotated+size <= maxAnnotated {
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
		ref.Name = cmp.Or(ref.Name, truncate(name))
		ref.UID, ref.ResourceVersion = truncate(uid), truncate(version)
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

// object returns the value to record for an object: a copy of its JSON, without
// managedFields if the policy omits them. It returns nil if the body is empty, no
// valid JSON, or larger than maxObject; in the last case it annotates the event.
// It is called with mu held.
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

// withoutManagedFields decodes an object or list and removes the managedFields of
// the object or the items. It returns nil if body is no JSON object.
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
		s.Status, s.Reason, s.Message = st.Status, string(st.Reason), truncate(st.Message)
		if st.Details != nil {
			s.Details = st.Details
		}
	}
	if o.Panicked && s.Message == "" {
		s.Status, s.Reason, s.Message = "Failure", string(meta.ReasonInternalError), "the server panicked on this request"
	}
	return s
}

// emit adds the encoded event to the queue of every sink, unless the policy omits
// the stage. It is called with mu held, so that the stages are queued in order.
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

// list returns the JSON of an EventList of encoded events.
func list(p names.Profile, events [][]byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"kind":"EventList","apiVersion":%q,"metadata":{},"items":[`, groupVersion(p))
	b.Write(bytes.Join(events, []byte(",")))
	b.WriteString("]}")
	return b.Bytes()
}
