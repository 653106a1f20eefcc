package servertest

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/internal/codec"
)

// Recorder records the requests of clients. Its methods are safe for concurrent use.
type Recorder struct {
	front *front
	rules []Rule

	mu    sync.Mutex // guards the fields below
	calls []*call
	lost  int // calls after maxRecorded
}

// maxRecorded is the maximum number of requests that a Recorder keeps.
const maxRecorded = 10_000

// Record starts to record the requests of clients that match any of the rules. Without rules it records all requests
// for resources. Effects and Times of the rules are ignored. A test can compare the text of the
// recorder with a golden file; the rule On("write", "*") excludes reads, because their number and order often
// depend on timing.
func (s *Server) Record(rules ...Rule) *Recorder {
	if len(rules) == 0 {
		rules = []Rule{On("*", "*", "*")}
	}
	s.t.Helper()
	for _, rule := range rules {
		rule.check(s.t)
	}
	r := &Recorder{front: s.front, rules: rules}
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	s.front.recorders = append(s.front.recorders, r)
	return r
}

// Stop stops the recording.
func (r *Recorder) Stop() {
	r.front.mu.Lock()
	defer r.front.mu.Unlock()
	r.front.recorders = slices.DeleteFunc(r.front.recorders, func(x *Recorder) bool { return x == r })
}

func (r *Recorder) add(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) == maxRecorded {
		r.lost++
		return
	}
	r.calls = append(r.calls, c)
}

// String returns a line for each request, in the order of arrival: the user, the request, and the status
// code.
//
//	jane create configmaps default/x → 201
//	jane update configmaps/status default/x → 409
//
// A create has the name in its body, if the server read that, or generateName followed by a star. In place of
// the code, "cut" means that the connection was cut, and "…" that there is no response yet. Consecutive equal
// reads, such as the reads of a client that polls, are combined into a line with the last code. Requests after the first
// 10,000 are only counted, in the last line.
func (r *Recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder
	var last, whole string // the pending line: without and with its result
	for _, c := range r.calls {
		if !slices.ContainsFunc(r.rules, func(rule Rule) bool { return rule.matches(c) }) {
			continue
		}
		l := c.line()
		if l.text() != last || !verbs("read", c.target.Verb) {
			text.WriteString(whole)
		}
		last, whole = l.text(), l.text()+" → "+l.answer()+"\n"
	}
	text.WriteString(whole)
	if r.lost > 0 {
		fmt.Fprintf(&text, "%d more\n", r.lost)
	}
	return text.String()
}

// line is a request and its result.
type line struct {
	user    string
	request string // a target as text
	code    int    // 0: no response
	cut     bool
	ended   bool
	reason  string // the message of an error response
}

func (c *call) line() line {
	request := c.target
	request.Name = c.name()
	l := line{request: request.String()}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.user, l.code, l.ended = cmp.Or(c.user, "nobody"), c.code, c.ended
	l.cut = c.gone || c.ended && c.code == 0
	l.reason = reason(c.text)
	return l
}

func (l line) text() string { return l.user + " " + l.request }

func (l line) answer() string {
	switch {
	case l.code >= 300 || l.code != 0 && !l.cut:
		return strconv.Itoa(l.code)
	case l.cut:
		return "cut"
	}
	return "…"
}

// maxText is how many bytes of an error response are kept.
const maxText = 2 << 10

// reason returns the message of an error response.
func reason(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	if _, _, status, err := codec.OpenEnvelope(body); err == nil {
		return string(protoField(status, 3))
	}
	return codec.ScalarText(codec.FindField(body, "message"))
}

// requestLog has the most recent requests of clients; equal lines share an entry. front.mu guards it.
type requestLog struct {
	begun time.Time
	seen  list.List // of logEntry, the most recent at the back
	at    map[line]*list.Element
}

type logEntry struct {
	line  line
	times int
	last  time.Time
}

// maxLog is the maximum number of entries of a requestLog.
const maxLog = 60

// add adds a request in constant time, because every request waits for it under front.mu.
func (l *requestLog) add(of line) {
	x := logEntry{line: of, last: time.Now()}
	if e := l.at[of]; e != nil {
		x.times = l.seen.Remove(e).(logEntry).times
	}
	x.times++
	if l.seen.Len() == maxLog {
		delete(l.at, l.seen.Remove(l.seen.Front()).(logEntry).line)
	}
	if l.at == nil {
		l.at = map[line]*list.Element{}
	}
	l.at[of] = l.seen.PushBack(x)
}

// lines returns the entries, the most recent last.
func (l *requestLog) lines() (all []logEntry) {
	for e := l.seen.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(logEntry))
	}
	return all
}

// Requests returns the last requests of clients as text, for the message of a test that failed: the time in
// seconds since the start, the user, the request, the result, and the count if it was repeated; then the
// requests in flight. It has at most 60 lines of each. A failed test logs it when it ends.
func (s *Server) Requests() string {
	var text strings.Builder
	s.front.mu.Lock()
	all, begun := s.front.log.lines(), s.front.log.begun
	s.front.mu.Unlock()
	for _, x := range all {
		fmt.Fprintf(&text, "%8.3fs %s → %s", x.last.Sub(begun).Seconds(), x.line.text(), x.line.answer())
		if x.line.reason != "" {
			text.WriteString(": " + x.line.reason)
		}
		if x.times > 1 {
			fmt.Fprintf(&text, " (%d times)", x.times)
		}
		text.WriteByte('\n')
	}
	for i, c := range s.front.calls() {
		if i == maxLog {
			break
		}
		l := c.line()
		fmt.Fprintf(&text, "%8.3fs %s → %s, not ended\n", c.began.Sub(begun).Seconds(), l.text(), l.answer())
	}
	return text.String()
}
