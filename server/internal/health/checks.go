package health

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/storage"
)

// check is a line of a health endpoint.
type check struct {
	name        string
	run         func(context.Context) error
	informative bool // a failure is shown, and the endpoint succeeds
	component   bool // belongs to a part that the server depends on, see Components

	// base is the check that this check repeats or extends, and so fails with. Excluding base
	// excludes this check, too.
	base string
}

// OwnNames returns the names that the checks of a program must not have.
func OwnNames() []string {
	return []string{"ping", "log", "storage", "etcd", "audit", "etcd-readiness", "informer-sync", "storage-integrity", "shutdown"}
}

// checks returns the checks of an endpoint in the order of their lines. They are for a single
// request, in which the store is checked once for several lines.
func (h *Handler) checks(endpoint string) []check {
	ok := func(context.Context) error { return nil }
	store := once(timely(func(ctx context.Context) error { return h.checkStorage(ctx, endpoint) }))
	list := []check{
		{name: "ping", run: ok},
		{name: "log", run: ok},
		{name: "storage", run: store, component: true},
		{name: "etcd", run: store, base: "storage"}, // the name that tools request
	}
	if a, ok := h.o.Audit.(interface{ Check(context.Context) error }); ok {
		list = append(list, check{name: "audit", run: a.Check, informative: true, component: true}) // a server that loses audit records continues to serve
	}
	if endpoint == "readyz" {
		caches := timely(h.o.CatchUp) // reads are served if the caches show the newest commit
		synced := func(ctx context.Context) error {
			if err := store(ctx); err != nil {
				return err
			}
			return caches(ctx)
		}
		list = append(list, check{name: "etcd-readiness", run: store, base: "storage"}, check{name: "informer-sync", run: synced, base: "storage"})
	}
	for _, name := range h.startNames() {
		list = append(list, check{name: "poststarthook/" + name, run: ok})
	}
	if h.o.Registers {
		list = append(list, check{name: "autoregister-completion", run: h.checkRegistered})
	}
	if h.o.Observes {
		c := check{name: "poststarthook/apiservice-discovery-controller", run: ok}
		if endpoint == "readyz" {
			c.run = h.checkAggregated
		}
		list = append(list, c)
	}
	for _, name := range slices.Sorted(maps.Keys(h.o.Checks)) {
		list = append(list, check{name: name, run: h.o.Checks[name], component: !strings.HasPrefix(name, "poststarthook/")})
	}
	if endpoint == "readyz" {
		if c, ok := h.o.Backend.(storage.Checker); ok {
			list = append(list, check{name: "storage-integrity", run: timely(c.Check), component: true})
		}
		list = append(list, check{name: "shutdown", run: h.checkShutdown})
	}
	return list
}

// startNames returns the names of the server's controllers and of the start hooks that tools wait for.
func (h *Handler) startNames() []string {
	list := append(slices.Clone(h.o.Controllers), "storage-readiness", "generic-apiserver-start-informers", "start-system-namespaces-controller",
		"start-apiserver-admission-initializer")
	for _, hooks := range []struct {
		when  bool
		names []string
	}{
		{h.o.Extensible, []string{"start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced"}},
		{h.serves("", "services"), []string{"start-service-ip-repair-controllers"}},
		{h.serves(wellknown.GroupScheduling, "priorityclasses"), []string{"scheduling/bootstrap-system-priority-classes"}},
		{h.o.Aggregator != nil, []string{"start-kube-aggregator-informers", "apiservice-status-local-available-controller",
			"apiservice-status-remote-available-controller", "apiservice-openapi-controller"}},
		{h.o.Registers, []string{"apiservice-registration-controller", h.o.Names.Wire(wellknown.ServerManager) + "-autoregistration"}},
	} {
		if hooks.when {
			list = append(list, hooks.names...)
		}
	}
	return list
}

// serves reports whether the server has a built-in resource.
func (h *Handler) serves(group, resource string) bool {
	return h.o.Types().Type(meta.GroupResource{Group: h.o.Names.Group(group), Resource: resource}) != nil
}

// once returns a check that runs the first time only and returns the same error again. It is not safe
// for concurrent use.
func once(run func(context.Context) error) func(context.Context) error {
	var err error
	ran := false
	return func(ctx context.Context) error {
		if !ran {
			err, ran = run(ctx), true
		}
		return err
	}
}

// timely returns a check that fails if it takes longer than two seconds, so that a probe of a server
// whose store does not answer gets an answer.
func timely(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return run(ctx)
	}
}
