package aggregator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
)

// When a server is looked at again: soon if it does not answer, and never at once, however
// much changes around it.
const (
	lookAgain  = 30 * time.Second
	lookSooner = 10 * time.Second
	lookPause  = 250 * time.Millisecond
	lookTime   = 30 * time.Second // for all versions of a server
	checkTime  = 6 * time.Second  // for one
	checkTries = 3
	firstLooks = 10 * time.Second // how long the server waits for them until it is ready
)

// Availability returns the controller that looks whether other servers are there, says so
// in the condition of their APIServices, and reads what they tell of themselves. Its keys
// are those of servers, and the names of APIServices that lead to none. changes are the
// types of what services lead to.
func (a *Aggregator) Availability(changes ...meta.GroupResource) client.Controller {
	return client.Controller{
		Name: "apiservice-availability", Types: append([]meta.GroupResource{a.Resource()}, changes...), Identity: true,
		MapEvent: func(e client.Event) (due []string) {
			if e.Resource == a.Resource() {
				return a.due(e.Key.Name)
			}
			for key, b := range a.Table().backs { // the slices of a service have names of their own
				if b.way.service.Namespace == e.Key.Namespace {
					due = append(due, key)
				}
			}
			return due
		},
		Reconcile: a.look,
	}
}

// look finds out whether the versions of a server are served.
func (a *Aggregator) look(ctx context.Context, client client.Client, key string) (time.Duration, error) {
	b := a.Table().backs[key]
	if b == nil {
		return a.lookHere(ctx, client, key)
	}
	leave, wait := a.enter(b.way)
	if leave == nil {
		return wait, nil
	}
	defer leave()
	found := a.checkAll(ctx, b)
	if ctx.Err() != nil {
		return 0, nil
	}
	again, well, there := lookAgain, true, false
	var failed []error
	for i, v := range b.versions {
		is := found[i].status == statusTrue
		well, there = well && is, there || is
		if !is {
			a.learn(v, func(d *Documents) { d.Stale = true })
		}
		wait, err := a.tell(ctx, client, v, found[i])
		if failed = append(failed, err); wait > 0 {
			again = min(again, wait)
		}
	}
	b.way.look.end(well)
	if !well || there && !a.readOpenAPI(ctx, b) {
		again = min(again, lookSooner)
	}
	return again, errors.Join(failed...)
}

// lookHere looks at an APIService that leads to no other server, or is gone.
func (a *Aggregator) lookHere(ctx context.Context, client client.Client, name string) (time.Duration, error) {
	v := a.Table().byName[name]
	switch {
	case v == nil:
		a.figures.forget(name)
		return 0, nil
	case v.way != nil:
		return 0, nil // it has led elsewhere since
	case v.reserved:
		return a.tell(ctx, client, v, state{statusTrue, "Local", "this server always serves the group itself"})
	}
	return a.tell(ctx, client, v, state{statusTrue, "Local", "Local APIServices are always available"})
}

// look is how a server was found when it was looked at last.
type look struct {
	mu    sync.Mutex // guards the rest
	begun time.Time
	done  bool // a look came to an end
	well  bool // all versions were there
}

// end notes what a look found.
func (l *look) end(well bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done, l.well = true, well
}

func (l *look) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// enter begins a look; a nil leave says how long to wait for one. Servers that were not all
// right have places of their own, so that they make no others wait.
func (a *Aggregator) enter(w *way) (leave func(), wait time.Duration) {
	w.look.mu.Lock()
	defer w.look.mu.Unlock()
	if wait := lookPause - time.Since(w.look.begun); wait > 0 {
		return nil, wait
	}
	leave = func() {}
	if !w.look.well {
		select {
		case a.doubtful <- struct{}{}:
		default:
			return nil, lookPause
		}
		leave = func() { <-a.doubtful }
	}
	w.look.begun = time.Now()
	return leave, 0
}

// checkAll looks whether the versions of a server are there. One that does not answer is not
// asked for the rest of them.
func (a *Aggregator) checkAll(ctx context.Context, b *back) []state {
	found := make([]state, len(b.versions))
	if fault := a.o.Missing(ctx, b.way.service); fault != nil {
		status := statusFalse
		if fault.Unknown {
			status = statusUnknown
		}
		for i := range found {
			found[i] = state{status, fault.Reason, fault.Message}
		}
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var silent error
	for i, v := range b.versions {
		err := silent
		if err == nil {
			err, silent = a.check(ctx, v)
		}
		if found[i] = (state{statusTrue, "Passed", "all checks passed"}); err != nil {
			where := v.URL(discoveryPath(v), "").String()
			found[i] = state{statusFalse, "FailedDiscoveryCheck", fmt.Sprintf("failing or missing response from %s: %s", where, stable(err))}
		}
	}
	return found
}

// check looks whether a version is there, and learns what it is made of. silent is the error
// if there was no answer at all.
func (a *Aggregator) check(ctx context.Context, v *Version) (err, silent error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for range checkTries { // a service leads to several servers, of which one may be gone
		var resources *Resources
		if resources, err = a.discover(ctx, v); err == nil {
			a.learn(v, func(d *Documents) {
				if d.Stale = false; d.Resources == nil || !meta.Equal(d.Resources.List, resources.List) {
					d.Resources = resources
				}
			})
			return nil, nil
		}
		if ctx.Err() != nil {
			return err, err
		}
	}
	if errors.As(err, new(silence)) {
		return err, err
	}
	return err, nil
}

// Settled reports whether each server that is known was looked at. It is true before that if
// it takes long: a server that is gone does not keep this one from being ready.
func (a *Aggregator) Settled() bool {
	if a.settled.Load() {
		return true
	}
	if time.Since(a.born) < firstLooks {
		for _, b := range a.Table().backs {
			if !b.way.look.over() {
				return false
			}
		}
	}
	a.settled.Store(true)
	return true
}
