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

// Times of probes. A server that does not respond is probed again earlier. probePause is the shortest time between
// two probes, however many changes there are.
const (
	probeInterval = 30 * time.Second
	probeRetry    = 10 * time.Second
	probePause    = 250 * time.Millisecond
	probeTime     = 30 * time.Second // limit for all versions of a server
	checkTime     = 6 * time.Second  // limit for a version
	checkTries    = 3
	startupTime   = 10 * time.Second // how long the readiness of this server waits for the first probes
)

// Availability returns the controller that probes the extension servers, writes the result into the condition of
// their APIServices, and reads their documents. Its keys are the keys of servers, and the names of APIServices
// without a server. changes are the types of the objects to which services resolve.
func (a *Aggregator) Availability(changes ...meta.GroupResource) client.Controller {
	return client.Controller{
		Name: "apiservice-availability", Types: append([]meta.GroupResource{a.Resource()}, changes...), Identity: true,
		MapEvent: func(e client.Event) (due []string) {
			if e.Resource == a.Resource() {
				return a.keysToProbe(e.Key.Name)
			}
			for key, b := range a.Table().servers { // the name of an EndpointSlice does not identify its service
				if b.transport.service.Namespace == e.Key.Namespace {
					due = append(due, key)
				}
			}
			return due
		},
		Reconcile: a.reconcile,
	}
}

// reconcile probes a server and updates the APIServices of its versions.
func (a *Aggregator) reconcile(ctx context.Context, client client.Client, key string) (time.Duration, error) {
	b := a.Table().servers[key]
	if b == nil {
		return a.reconcileLocal(ctx, client, key)
	}
	leave, wait := a.beginProbe(b.transport)
	if leave == nil {
		return wait, nil
	}
	defer leave()
	found := a.checkAll(ctx, b)
	if ctx.Err() != nil {
		return 0, nil
	}
	again, healthy, reachable := probeInterval, true, false
	var failed []error
	for i, v := range b.versions {
		is := found[i].status == statusTrue
		healthy, reachable = healthy && is, reachable || is
		if !is {
			a.updateDocuments(v, func(d *Documents) { d.Stale = true })
		}
		wait, err := a.writeCondition(ctx, client, v, found[i])
		if failed = append(failed, err); wait > 0 {
			again = min(again, wait)
		}
	}
	b.transport.probe.end(healthy)
	if !healthy || reachable && !a.readOpenAPI(ctx, b) {
		again = min(again, probeRetry)
	}
	return again, errors.Join(failed...)
}

// reconcileLocal updates an APIService that has no extension server or was deleted.
func (a *Aggregator) reconcileLocal(ctx context.Context, client client.Client, name string) (time.Duration, error) {
	v := a.Table().byName[name]
	switch {
	case v == nil:
		a.meters.forget(name)
		return 0, nil
	case v.transport != nil:
		return 0, nil // it has a server now, under another key
	case v.reserved:
		return a.writeCondition(ctx, client, v, state{statusTrue, "Local", "this server always serves the group itself"})
	}
	return a.writeCondition(ctx, client, v, state{statusTrue, "Local", "Local APIServices are always available"})
}

// probe is the state of the probes of a server.
type probe struct {
	mu      sync.Mutex // guards the fields below
	begun   time.Time  // when the last probe began
	done    bool       // a probe has ended
	healthy bool       // the last probe found all versions available
}

// end records the result of a probe.
func (p *probe) end(healthy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.healthy = true, healthy
}

// hasEnded reports whether a probe has ended.
func (p *probe) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// beginProbe begins a probe. If the probe must wait, leave is nil and wait is the time to wait; otherwise the caller
// must call leave. Probes of servers that failed their last probe are limited separately, so that they do not delay
// the probes of other servers.
func (a *Aggregator) beginProbe(w *transport) (leave func(), wait time.Duration) {
	w.probe.mu.Lock()
	defer w.probe.mu.Unlock()
	if wait := probePause - time.Since(w.probe.begun); wait > 0 {
		return nil, wait
	}
	leave = func() {}
	if !w.probe.healthy {
		select {
		case a.unhealthySlots <- struct{}{}:
		default:
			return nil, probePause
		}
		leave = func() { <-a.unhealthySlots }
	}
	w.probe.begun = time.Now()
	return leave, 0
}

// checkAll checks whether the versions of a server are available. After a request without a response, it does not
// check the remaining versions.
func (a *Aggregator) checkAll(ctx context.Context, b *server) []state {
	found := make([]state, len(b.versions))
	if fault := a.o.Missing(ctx, b.transport.service); fault != nil {
		status := statusFalse
		if fault.Unknown {
			status = statusUnknown
		}
		for i := range found {
			found[i] = state{status, fault.Reason, fault.Message}
		}
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var unreachable error
	for i, v := range b.versions {
		err := unreachable
		if err == nil {
			err, unreachable = a.check(ctx, v)
		}
		if found[i] = (state{statusTrue, "Passed", "all checks passed"}); err != nil {
			where := v.URL(discoveryPath(v), "").String()
			found[i] = state{statusFalse, "FailedDiscoveryCheck", fmt.Sprintf("failing or missing response from %s: %s", where, errorText(err))}
		}
	}
	return found
}

// check checks whether a version is available, and reads its discovery document. unreachable is the error if the
// server did not respond at all.
func (a *Aggregator) check(ctx context.Context, v *Version) (err, unreachable error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for range checkTries { // the service may have several endpoints, and some of them may be down
		var resources *Resources
		if resources, err = a.discover(ctx, v); err == nil {
			a.updateDocuments(v, func(d *Documents) {
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
	if errors.As(err, new(noResponse)) {
		return err, err
	}
	return err, nil
}

// Settled reports whether each known extension server has been probed, or startupTime has passed. An unreachable
// server does not keep this server from becoming ready.
func (a *Aggregator) Settled() bool {
	if a.settled.Load() {
		return true
	}
	if time.Since(a.started) < startupTime {
		for _, b := range a.Table().servers {
			if !b.transport.probe.hasEnded() {
				return false
			}
		}
	}
	a.settled.Store(true)
	return true
}
