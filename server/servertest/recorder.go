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

// Recorder is what clients asked a server for.
type Recorder struct {
	front *front
	rules []Rule

	mu    sync.Mutex // guards the rest
	calls []*call
	lost  int // calls that it had no room for
}

// maxRecorded is how many requests a Recorder keeps.
const maxRecorded = 10_000

// Record begins to note the requests of clients that one of the rules chooses, or all about
// resources without any; what rules say beside that does not matter. The text of what is
// noted can be compared with a file: On("write", "*") leaves out reads, whose number
// and order is often a matter of time.
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

// Stop ends the recording.
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

// String returns a line for each request, in the order in which they came: who, what, and
// the code of the answer.
//
//	jane create configmaps default/x → 201
//	jane update configmaps/status default/x → 409
//
// A creation has the name that its body says, if the server read that; one that the server
// is to choose ends in a star. In place of the code stands "cut" if the connection was, and "…" until there is an answer.
// A read that is repeated, as by who waits for something, is one line with the last answer.
// What comes after 10,000 requests is counted in a line at the end.
func (r *Recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder
	var last, whole string // of the line that is not written yet: what it asks for, and all of it
	for _, c := range r.calls {
		if !slices.ContainsFunc(r.rules, func(rule Rule) bool { return rule.chooses(c) }) {
			continue
		}
		l := c.line()
		if l.what() != last || !verbs("read", c.target.Verb) {
			text.WriteString(whole)
		}
		last, whole = l.what(), l.what()+" → "+l.answer()+"\n"
	}
	text.WriteString(whole)
	if r.lost > 0 {
		fmt.Fprintf(&text, "%d more\n", r.lost)
	}
	return text.String()
}

// line says who asks for what, and how that ended.
type line struct {
	user   string
	asked  string // a target as text
	code   int    // 0: none
	cut    bool
	ended  bool
	reason string // of a refusal
}

func (c *call) line() line {
	asked := c.target
	asked.Name = c.name()
	l := line{asked: asked.String()}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.user, l.code, l.ended = cmp.Or(c.user, "nobody"), c.code, c.ended
	l.cut = c.gone || c.ended && c.code == 0
	l.reason = reason(c.text)
	return l
}

func (l line) what() string { return l.user + " " + l.asked }

func (l line) answer() string {
	switch {
	case l.code >= 300 || l.code != 0 && !l.cut:
		return strconv.Itoa(l.code)
	case l.cut:
		return "cut"
	}
	return "…"
}

// maxText is how much of a refusal is kept.
const maxText = 2 << 10

// reason is the message of a refusal.
func reason(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	if _, _, status, err := codec.OpenEnvelope(body); err == nil {
		return string(protoField(status, 3))
	}
	return codec.ScalarText(codec.FindField(body, "message"))
}

// requestLog is what clients asked for last, each line once.
type requestLog struct {
	begun time.Time
	seen  list.List // of seen, the last one at the end
	at    map[line]*list.Element
}

type seen struct {
	line  line
	times int
	last  time.Time
}

// maxLog is how many lines a requestLog has.
const maxLog = 60

// add costs the same however many lines there are: a flood of requests waits for it.
func (l *requestLog) add(of line) {
	x := seen{line: of, last: time.Now()}
	if e := l.at[of]; e != nil {
		x.times = l.seen.Remove(e).(seen).times
	}
	x.times++
	if l.seen.Len() == maxLog {
		delete(l.at, l.seen.Remove(l.seen.Front()).(seen).line)
	}
	if l.at == nil {
		l.at = map[line]*list.Element{}
	}
	l.at[of] = l.seen.PushBack(x)
}

// lines are what the log has, the last one at the end.
func (l *requestLog) lines() (all []seen) {
	for e := l.seen.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(seen))
	}
	return all
}

// Requests tells of the last requests of clients, for the message of a wait that failed: who
// asked for what, when, seconds after the start, and what the server said; how often, if
// more than once, and in the end those that are not answered yet. There are 60 at most.
// It is also at the end of the output of a test that failed.
func (s *Server) Requests() string {
	var text strings.Builder
	s.front.mu.Lock()
	all, begun := s.front.log.lines(), s.front.log.begun
	s.front.mu.Unlock()
	for _, x := range all {
		fmt.Fprintf(&text, "%8.3fs %s → %s", x.last.Sub(begun).Seconds(), x.line.what(), x.line.answer())
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
		fmt.Fprintf(&text, "%8.3fs %s → %s, not ended\n", c.began.Sub(begun).Seconds(), l.what(), l.answer())
	}
	return text.String()
}
