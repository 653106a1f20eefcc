package aggregator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/controller"
)

// When a server is looked at again: soon if it does not answer, and never at once, however
// much changes around it.
const (
	lookAgain   = 30 * time.Second
	lookSooner  = 10 * time.Second
	lookPause   = 250 * time.Millisecond
	checkTime   = 6 * time.Second // of one look
	checkTries  = 3
	readAgain   = time.Minute // for OpenAPI documents
	readingTime = 30 * time.Second
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

// Availability returns the controller that looks whether other servers are there, says so
// in the condition of their APIServices, and reads what they tell of themselves. changes are
// the types of what services lead to.
func (a *Aggregator) Availability(changes ...meta.GroupResource) controller.Controller {
	return controller.Controller{
		Name: "apiservice-availability", Types: append([]meta.GroupResource{a.Resource()}, changes...), Identity: true,
		Observe: func(e controller.Event) (due []string) {
			if e.Resource == a.Resource() {
				return []string{e.Key.Name}
			}
			for _, v := range a.Table().AllRemote() { // the slices of a service have names of their own
				if v.way.service.Namespace == e.Key.Namespace {
					due = append(due, v.Name)
				}
			}
			return due
		},
		Reconcile: a.look,
	}
}

// look finds out whether a version is served.
func (a *Aggregator) look(ctx context.Context, client controller.Client, name string) (time.Duration, error) {
	v := a.Table().byName[name]
	switch {
	case v == nil:
		a.figures.forget(name)
		return 0, nil
	case v.reserved:
		return 0, a.tell(ctx, client, v, state{statusTrue, "Local", "this server always serves the group itself"})
	case v.way == nil:
		return 0, a.tell(ctx, client, v, state{statusTrue, "Local", "Local APIServices are always available"})
	}
	if wait := v.way.pause(); wait > 0 {
		return wait, nil
	}
	found := a.check(ctx, v)
	if ctx.Err() != nil {
		return 0, nil
	}
	if found.status != statusTrue {
		a.learn(v, func(d *Documents) { d.Stale = true })
		return lookSooner, a.tell(ctx, client, v, found)
	}
	err := a.tell(ctx, client, v, found)
	if !a.readOpenAPI(ctx, v) {
		return lookSooner, err
	}
	return lookAgain, err
}

// pause returns how long to wait before another look; zero begins one.
func (w *way) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wait := lookPause - time.Since(w.checked); wait > 0 {
		return wait
	}
	w.checked = time.Now()
	return 0
}

// check looks whether the other server is there, and learns what it serves.
func (a *Aggregator) check(ctx context.Context, v *Version) state {
	if fault := a.o.Missing(ctx, v.way.service); fault != nil {
		status := statusFalse
		if fault.Unknown {
			status = statusUnknown
		}
		return state{status, fault.Reason, fault.Message}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	var err error
	for range checkTries { // a service leads to several servers, of which one may be gone
		var resources []any
		if resources, err = a.discover(ctx, v); err == nil {
			a.learn(v, func(d *Documents) {
				if d.Stale || !meta.Equal(d.Resources, resources) {
					d.Stale, d.Resources = false, resources
				}
			})
			return state{statusTrue, "Passed", "all checks passed"}
		}
		if ctx.Err() != nil {
			break
		}
	}
	where := v.URL(discoveryPath(v), "").String()
	return state{statusFalse, "FailedDiscoveryCheck", fmt.Sprintf("failing or missing response from %s: %s", where, stable(err))}
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
	return text[:min(len(text), maxMessage)]
}

// tell writes the condition, if it is another one. The texts of errors are others each time,
// so that one alone is written now and then: who writes is due again.
func (a *Aggregator) tell(ctx context.Context, client controller.Client, v *Version, s state) error {
	turned := false
	_, err := client.Update(ctx, a.Resource(), meta.Key{Name: v.Name}, "status", func(o *meta.Object) error {
		old := stateOf(o)
		turned = old.status != s.status || old.reason != s.reason
		if turned || old != s && (v.way == nil || v.way.tellAgain()) {
			o.SetCondition(available, s.status, s.reason, s.message)
		}
		return nil
	})
	if meta.IsNotFound(err) {
		return nil
	}
	if err == nil {
		a.figures.tell(v.Name, s, turned)
	}
	return err
}

func stateOf(o *meta.Object) state {
	for _, c := range o.Objects("status", "conditions") {
		if c.String("type") == available {
			return state{c.String("status"), c.String("reason"), c.String("message")}
		}
	}
	return state{}
}

// tellAgain reports whether it is time to tell another text.
func (w *way) tellAgain() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.told) < readAgain {
		return false
	}
	w.told = time.Now()
	return true
}

// user is as whom other servers are asked what they serve.
func (a *Aggregator) user() string { return names.RoleAggregator }
