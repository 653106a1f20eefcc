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

// Type and values of the condition.
const (
	available     = "Available"
	statusTrue    = "True"
	statusFalse   = "False"
	statusUnknown = "Unknown"
)

// state is the content of the condition.
type state struct{ status, reason, message string }

// differs reports whether the status or reason of two states differ. The message does not count.
func (s state) differs(before state) bool {
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

// How often a condition is written: up to writesAtOnce times at once, then once in writePause. Messages of errors
// vary, so if only the message changes, the condition is written once in textPause.
const (
	writesAtOnce = 5
	writePause   = 5 * time.Second
	textPause    = time.Minute
)

// probeResult is the result of the last probe of a version, and the state of writing it.
type probeResult struct {
	state
	due     bool      // a probe was requested since the server of the object last changed
	paid    time.Time // token bucket: each write advances it by writePause; it may not be later than now
	written time.Time // when the condition was last written
}

// takeToken takes a token for a write. If there is none, it returns the time until there is one.
func (r *probeResult) takeToken(now time.Time) (wait time.Duration) {
	paid := r.paid
	if earliest := now.Add(-writesAtOnce * writePause); paid.Before(earliest) {
		paid = earliest
	}
	if paid = paid.Add(writePause); paid.After(now) {
		return paid.Sub(now)
	}
	r.paid, r.written = paid, now
	return 0
}

// keysToProbe returns the key to reconcile after a change of an APIService, or nil. A key is returned if the server
// of the APIService has changed, or if its condition is not the result of the last probe.
func (a *Aggregator) keysToProbe(name string) []string {
	v := a.Table().byName[name]
	if v == nil {
		return []string{name}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.known[name]
	if r == nil || r.result.due && !r.condition.differs(r.result.state) {
		return nil
	}
	r.result.due = true
	if v.transport != nil {
		return []string{v.transport.key}
	}
	return []string{name}
}

// writeCondition writes the condition if it has changed. If the write must wait, it returns the time after which to
// probe again.
func (a *Aggregator) writeCondition(ctx context.Context, client client.Client, v *Version, s state) (time.Duration, error) {
	changed, wait, ok := a.decideWrite(v, s)
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
	if err == nil && changed {
		a.meters.countChange(v.Name, s)
	}
	return 0, err
}

// decideWrite records the result of a probe, and reports whether to write it (ok). changed reports whether the status
// or reason has changed. If ok is false, wait may be the time after which to try again.
func (a *Aggregator) decideWrite(v *Version, s state) (changed bool, wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.known[v.Name]
	if r == nil || r.version.transport != v.transport || r.version.GroupVersion != v.GroupVersion {
		return false, 0, false
	}
	a.meters.set(v.Name, s)
	r.result.state = s
	changed = s.differs(r.condition)
	if !changed && (r.condition == s || time.Since(r.result.written) < textPause) {
		return false, 0, false
	}
	wait = r.result.takeToken(time.Now())
	return changed, wait, wait == 0
}

// maxMessage bounds the length of an error in a condition, because an extension server may choose it.
const maxMessage = 500

// errorText returns the message of an error without the local port, which differs each time.
func errorText(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		plain := *op
		plain.Source = nil
		err = &plain
	}
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}
