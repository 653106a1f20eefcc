package aggregator

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
)

// The words of the condition.
const (
	available     = "Available"
	statusTrue    = "True"
	statusFalse   = "False"
	statusUnknown = "Unknown"
)

// state is what the condition says.
type state struct{ status, reason, message string }

// turned reports whether it is another one than before, however it is worded.
func (s state) turned(before state) bool {
	return s.status != before.status || s.reason != before.reason
}

func stateOf(o *meta.Object) state {
	for _, c := range o.Objects("status", "conditions") {
		if c.String("type") == available {
			return state{c.String("status"), c.String("reason"), c.String("message")}
		}
	}
	return state{}
}

// How often a condition is written: some times in a row, else after a pause. Texts of
// errors are others each time, so that one alone is written now and then.
const (
	writesAtOnce = 5
	writePause   = 5 * time.Second
	textPause    = time.Minute
)

// verdict is what the last look at a version found, and when that was written.
type verdict struct {
	state
	due     bool      // a look was asked for since the object leads where it does
	paid    time.Time // until when writes are paid for, at one per writePause
	written time.Time // the last one
}

// pay pays for a write, or says how long to wait for one.
func (v *verdict) pay(now time.Time) (wait time.Duration) {
	paid := v.paid
	if earliest := now.Add(-writesAtOnce * writePause); paid.Before(earliest) {
		paid = earliest
	}
	if paid = paid.Add(writePause); paid.After(now) {
		return paid.Sub(now)
	}
	v.paid, v.written = paid, now
	return 0
}

// due returns the key of an APIService that has to be looked at: one that leads elsewhere
// than before, or whose condition says what was not found.
func (a *Aggregator) due(name string) []string {
	v := a.Table().byName[name]
	if v == nil {
		return []string{name}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.known[name]
	if r == nil || r.verdict.due && !r.said.turned(r.verdict.state) {
		return nil
	}
	r.verdict.due = true
	if v.way != nil {
		return []string{v.way.key}
	}
	return []string{name}
}

// tell writes the condition if it says another thing, and says when to look again if that
// has to wait.
func (a *Aggregator) tell(ctx context.Context, client client.Client, v *Version, s state) (time.Duration, error) {
	turned, wait, ok := a.weigh(v, s)
	if !ok {
		return wait, nil
	}
	_, err := client.Update(ctx, a.Resource(), meta.Key{Name: v.Name}, "status", func(o *meta.Object) error {
		o.SetCondition(available, s.status, s.reason, s.message)
		return nil
	})
	if meta.IsNotFound(err) {
		return 0, nil
	}
	if err == nil && turned {
		a.figures.turned(v.Name, s)
	}
	return 0, err
}

// weigh notes what a look found, and reports whether it is to be written: turned says that
// it is another state.
func (a *Aggregator) weigh(v *Version, s state) (turned bool, wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.known[v.Name]
	if r == nil || r.version.way != v.way || r.version.GroupVersion != v.GroupVersion {
		return false, 0, false
	}
	a.figures.set(v.Name, s)
	r.verdict.state = s
	turned = s.turned(r.said)
	if !turned && (r.said == s || time.Since(r.verdict.written) < textPause) {
		return false, 0, false
	}
	wait = r.verdict.pay(time.Now())
	return turned, wait, wait == 0
}

// maxMessage bounds what a condition says of an error, which another server may have chosen.
const maxMessage = 500

// stable is the text of an error without the port that is another one each time.
func stable(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		plain := *op
		plain.Source = nil
		err = &plain
	}
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}
