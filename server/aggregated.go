package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/openapi"
	"orch.io/controlplane/server/internal/watch"
)

// aggregation is what a server has if the kind APIService is registered.
type aggregation struct {
	*aggregator.Aggregator
	availability *plugged
}

// apiServices are the objects in the cache.
type apiServices struct{ cache *watch.Cache }

// Changed implements aggregator.Source.
func (a apiServices) Changed() int64 { return int64(a.cache.Changed()) }

// List implements aggregator.Source.
func (a apiServices) List() (list []aggregator.Record) {
	for _, e := range a.cache.List(watch.Query{}, "", 0).Entries {
		list = append(list, aggregator.Record{Name: e.Key().Name, Revision: int64(e.Revision()), Object: e.Object})
	}
	return list
}

// openAggregation begins to look at APIServices, if their kind is registered.
func (s *Server) openAggregation(b *Builder) error {
	r := meta.GroupResource{Group: s.names.Group(names.GroupAggregation), Resource: "apiservices"}
	if s.types().Type(r) == nil {
		return nil
	}
	p := &plugged{}
	a, err := aggregator.New(aggregator.Options{
		Names: s.names, Objects: apiServices{s.hub.Cache(r)}, Log: s.log, Metrics: s.metrics.registry,
		Services: b.finds, Missing: b.missing, Certificate: b.Serving.ProxyCertificate, Local: s.localVersions,
	}, func(key string) { p.ask(key, 0) })
	s.aggregation = &aggregation{availability: p, Aggregator: a}
	p.controller = s.aggregation.Availability(s.servedAmong(
		meta.GroupResource{Resource: "services"}, meta.GroupResource{Resource: "endpoints"},
		meta.GroupResource{Group: s.names.Group(names.GroupEndpoints), Resource: "endpointslices"})...)
	b.plugged = append(b.plugged, p)
	return err
}

// servedAmong returns those of some resources that the server has.
func (s *Server) servedAmong(all ...meta.GroupResource) []meta.GroupResource {
	return slices.DeleteFunc(all, func(r meta.GroupResource) bool { return s.types().Type(r) == nil })
}

// localVersions are those that the server serves itself.
func (s *Server) localVersions() (list []aggregator.LocalVersion) {
	at := map[meta.GroupVersion]int{}
	for _, t := range s.types().Types() {
		for _, v := range t.Versions {
			if !v.Served {
				continue
			}
			i, there := at[v.GroupVersion()]
			if !there {
				i = len(list)
				at[v.GroupVersion()] = i
				list = append(list, aggregator.LocalVersion{GroupVersion: v.GroupVersion(), Defined: true})
			}
			list[i].Defined = list[i].Defined && t.Defined()
		}
	}
	return list
}

// registers reports whether the server keeps APIServices for what it serves itself.
func (s *Server) registers() bool {
	return s.aggregation != nil && slices.ContainsFunc(s.controllers, func(c client.Controller) bool { return c.Name == registration })
}

// registration is the name of the controller that does.
const registration = "apiservice-registration"

// checkRegistered fails until there is an APIService for everything that is served here.
func (s *Server) checkRegistered(context.Context) error {
	if !s.aggregation.Registered() {
		return errors.New("some versions have no APIService yet")
	}
	return nil
}

// checkAggregated fails until it is known of the other servers what they serve, as far as
// that can be waited for.
func (s *Server) checkAggregated(context.Context) error {
	if !s.aggregation.Settled() {
		return errors.New("some servers of APIServices were not looked at yet")
	}
	return nil
}

// looksAt reports whether the server looks at the other servers that APIServices lead to.
func (s *Server) looksAt() bool {
	return s.aggregation != nil && slices.Contains(s.plugged, s.aggregation.availability)
}

// remoteOf returns the version that a request is about, if another server serves it.
func (s *Server) remoteOf(r *exchange.Request) *aggregator.Version {
	if s.aggregation == nil {
		return nil
	}
	gv := meta.GroupVersion{Group: r.Group, Version: r.APIVersion}
	if !r.IsResource {
		var ok bool
		if gv, ok = aggregator.PathVersion(r.Path); !ok {
			return nil
		}
	}
	v := s.aggregation.Table().Remote(gv)
	if v != nil && strings.HasPrefix(r.Path, "/openapi/") && !v.TellsV3() {
		return nil
	}
	return v
}

// longSubresources are those whose requests last as long as their callers want.
var longSubresources = []string{"attach", "exec", "log", "portforward", "proxy"}

// forward hands a request on to the server that serves its version.
func (s *Server) forward(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	r.Routed = true
	v := r.Remote
	if r.LongRunning {
		ctx = s.objects.With(r.HTTP.Context(), &r.Index)
	}
	if err := r.Usage.AcquireSeat(ctx); err != nil {
		return err
	}
	if err := s.forwardable(w, r); err != nil {
		return err
	}
	if !r.LongRunning {
		leave, ok := v.Enter()
		if !ok {
			return r.Usage.TooMany("too many requests wait for the server of this API")
		}
		defer leave()
	}
	query := r.HTTP.URL.Query()
	if !r.IsResource {
		query.Del("hash") // of an OpenAPI document, which may be another one by now
	}
	c := &connection{server: s, out: w, request: r, head: w.Header().Clone(), to: v.URL(r.Path, query.Encode()), carrier: v.Transport()}
	c.run(ctx)
	return nil
}

// forwardable says why a request cannot go on.
func (s *Server) forwardable(w *exchange.Response, r *exchange.Request) error {
	if slices.ContainsFunc(strings.Split(r.Path, "/"), func(part string) bool { return part == "." || part == ".." }) {
		return meta.BadRequest("the path must not lead out of what was asked for: %q", r.Path) // the other server would clean it, and nobody allowed that
	}
	if s.aggregation.Passed(r.HTTP.Header) {
		return meta.Failure(http.StatusLoopDetected, "", "the APIService %s leads back here", r.Remote.Name)
	}
	if !r.Remote.Available {
		s.aggregation.Failed(r.Remote)
		return meta.Unavailable("the server of %s is currently not available", r.Remote.GroupVersion)
	}
	if err := aggregator.Tellable(r.User); err != nil {
		return err
	}
	if !r.Upgrades() {
		return nil
	}
	// With another protocol, such as HTTP/2, callers could send requests under any name.
	if to := r.HTTP.Header.Get("Upgrade"); !strings.EqualFold(to, "websocket") && !strings.HasPrefix(strings.ToUpper(to), "SPDY/") {
		return meta.BadRequest("this connection cannot be upgraded to %q", to)
	}
	if !w.CanHijack() {
		return meta.BadRequest("this connection cannot be upgraded")
	}
	if r.HTTP.ContentLength != 0 {
		return meta.BadRequest("an upgrade request has no body")
	}
	return nil
}

// answeredFrom checks the head of the answer of the server of an aggregated version.
func (c *connection) answeredFrom(res *http.Response) error {
	if to := res.Header.Get("Location"); to != "" && res.StatusCode >= 300 && res.StatusCode <= 399 {
		return meta.Failure(http.StatusBadGateway, "", "the backend attempted to redirect this request, which is not permitted")
	}
	keepClosed(res.Header)
	for _, name := range originHeaders {
		res.Header.Del(name)
	}
	for _, name := range c.server.capacity.Headers() {
		res.Header.Del(name) // they tell of the other server's flows
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		res.Trailer, res.Body = nil, withoutTrailer{res.Body, res}
	}
	return nil
}

// withoutTrailer is the body of an answer after which nothing more of its head comes: what
// does not pass before the body does not pass behind it.
type withoutTrailer struct {
	io.ReadCloser
	answer *http.Response
}

func (b withoutTrailer) Close() error {
	err := b.ReadCloser.Close()
	b.answer.Trailer = nil
	return err
}

// originHeaders speak of everything that is at an address, which is this server's: by them
// the server of one group could set what callers send to all others, or lead them away.
var originHeaders = []string{
	"Alt-Svc", "Clear-Site-Data", "Nel", "Public-Key-Pins", "Refresh", "Report-To", "Reporting-Endpoints", "Service-Worker-Allowed",
	"Set-Cookie", "Set-Cookie2", "Strict-Transport-Security",
}

// lostFrom is the Status of a request whose server did not answer.
func (c *connection) lostFrom(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return meta.Timeout("the server of %s did not answer in time", c.request.Remote.GroupVersion)
	}
	if ctx.Err() == nil {
		c.server.aggregation.Failed(c.request.Remote)
	}
	return meta.Unavailable("error trying to reach service: %v", err)
}

// withRemote adds the versions that other servers serve, and orders all by priority.
func withRemote(groups []group, t *aggregator.Table) []group {
	for _, v := range t.AllRemote() {
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == v.Group })
		if i < 0 {
			i, groups = len(groups), append(groups, group{name: v.Group})
		}
		g := &groups[i]
		g.versions = slices.DeleteFunc(g.versions, func(of groupVersion) bool { return of.name == v.Version })
		g.versions = append(g.versions, groupVersion{name: v.Version, remote: v})
	}
	best := map[string]int64{}
	for _, g := range groups {
		priority := func(v groupVersion) aggregator.Priority {
			return t.Priority(meta.GroupVersion{Group: g.name, Version: v.name})
		}
		for _, v := range g.versions {
			best[g.name] = max(best[g.name], priority(v).Group)
		}
		slices.SortFunc(g.versions, func(a, b groupVersion) int {
			return cmp.Or(cmp.Compare(priority(b).Version, priority(a).Version), resource.CompareVersions(a.name, b.name))
		})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(best[b.name], best[a.name]), cmp.Compare(a.name, b.name))
	})
	return groups
}

// aggregatedVersion is what aggregated discovery says of a version that another server
// serves.
func aggregatedVersion(v *aggregator.Version) map[string]any {
	freshness := "Current"
	if v.Documents.Stale || !v.Available {
		freshness = "Stale"
	}
	return map[string]any{"version": v.Version, "freshness": freshness, "resources": v.Documents.List()}
}

// others returns what OpenAPI documents say of other servers: the same as long as that says
// the same.
func (s *Server) others() *openapi.Others {
	if s.aggregation == nil {
		return nil
	}
	now := s.aggregation.Table().Others()
	for {
		old := s.foreign.Load()
		if old != nil && old.Equal(now) {
			return old
		}
		if s.foreign.CompareAndSwap(old, now) {
			return now
		}
	}
}
