package aggregator

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/services"
)

// objects is a Source of APIServices in memory.
type objects struct {
	revision int64
	list     []Record
	read     int
}

func (o *objects) Changed() int64 { return o.revision }
func (o *objects) List() []Record { return o.list }

// put adds an object or replaces the object of that name.
func (o *objects) put(name string, spec map[string]any) {
	o.revision++
	obj := meta.NewObject(map[string]any{"metadata": map[string]any{"name": name}, "spec": spec})
	next := []Record{{Name: name, Revision: o.revision, Object: func() *meta.Object { o.read++; return obj }}}
	for _, r := range o.list {
		if r.Name != name {
			next = append(next, r)
		}
	}
	o.list = next
}

// setCondition sets the condition of an object.
func (o *objects) setCondition(name string, s state) {
	for i, r := range o.list {
		if r.Name == name {
			o.revision++
			obj := r.Object().Clone()
			obj.SetCondition(available, s.status, s.reason, s.message)
			o.list[i] = Record{Name: name, Revision: o.revision, Object: func() *meta.Object { return obj }}
		}
	}
}

func newTest(o *objects) *Aggregator {
	a, err := New(Options{
		Names: names.Kubernetes, Objects: o, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Services: func(context.Context, services.Service) (services.Endpoint, error) {
			return services.Endpoint{}, errors.New("nowhere")
		},
		Missing: func(context.Context, services.Service) *Fault { return nil },
	}, func(string) {})
	if err != nil {
		panic(err)
	}
	return a
}

func remote(group string, more ...any) map[string]any {
	spec := map[string]any{"group": group, "version": "v1", "groupPriorityMinimum": int64(20), "versionPriority": int64(3),
		"service": map[string]any{"namespace": "a", "name": "b"}}
	for i := 0; i < len(more); i += 2 {
		spec[more[i].(string)] = more[i+1]
	}
	return spec
}

var example = meta.GroupVersion{Group: "example.com", Version: "v1"}

// TestTableFollowsObjects: a Table reflects the APIServices. Unchanged objects are not read again, and documents stay
// until the server of the version changes.
func TestTableFollowsObjects(t *testing.T) {
	o := &objects{}
	a := newTest(o)
	require.Nil(t, a.Table().Remote(example))
	o.put("v1.example.com", remote("example.com"))
	o.put("v1.local.com", map[string]any{"group": "local.com", "version": "v1", "groupPriorityMinimum": int64(7), "versionPriority": int64(8)})
	v := a.Table().Remote(example)
	require.NotNil(t, v)
	assert.Nil(t, a.Table().Remote(meta.GroupVersion{Group: "local.com", Version: "v1"}))
	assert.Equal(t, Priority{7, 8}, a.Table().Priority(meta.GroupVersion{Group: "local.com", Version: "v1"}))
	assert.Equal(t, "https://b.a.svc:443/x?y", v.URL("/x", "y").String())
	read := o.read
	a.updateDocuments(v, func(d *Documents) { d.Hash = "h" })
	o.put("v1.other.com", remote("other.com"))
	assert.Equal(t, "h", a.Table().Remote(example).Documents.Hash)
	assert.Equal(t, read+1, o.read)
	table := a.Table()
	a.updateDocuments(v, func(d *Documents) { d.Hash = "h" })
	assert.Same(t, table, a.Table(), "an equal document must not lead to a new table")
	o.setCondition("v1.example.com", state{statusFalse, "FailedDiscoveryCheck", "x"})
	assert.Same(t, table, a.Table(), "the version was not available before either")
	o.put("v1.example.com", remote("example.com", "caBundle", "eA=="))
	assert.Empty(t, a.Table().Remote(example).Documents.Hash)
	a.updateDocuments(v, func(d *Documents) { d.Hash = "late" })
	assert.Empty(t, a.Table().Remote(example).Documents.Hash, "the hash was from another server")
	_, err := a.Table().Remote(example).Transport().RoundTrip(&http.Request{})
	assert.ErrorContains(t, err, "spec.caBundle")
	o.list = nil
	o.revision++
	assert.Nil(t, a.Table().Remote(example))
	a.Close()
}

func TestPriorityOfVersionWithoutAPIService(t *testing.T) {
	table := newTest(&objects{}).Table()
	of := func(group, version string) Priority {
		return table.Priority(meta.GroupVersion{Group: group, Version: version})
	}
	assert.Equal(t, Priority{17800, 15}, of("apps", "v1"))
	assert.Equal(t, Priority{17500, 30}, of("autoscaling", "v2"))
	assert.Equal(t, Priority{17200, 9}, of("networking.k8s.io", "v1beta1"))
	assert.Equal(t, Priority{16200, 1}, of("resource.k8s.io", "v1alpha3"))
	assert.Equal(t, Priority{1000, 100}, of("example.com", "v1"))
	assert.Greater(t, of("apiregistration.k8s.io", "v1").Group, int64(20000))
}

func TestPathVersion(t *testing.T) {
	for path, want := range map[string]meta.GroupVersion{
		"/apis/example.com/v1": example, "/apis/example.com/v1/": example, "/openapi/v3/apis/example.com/v1": example,
		"/apis/example.com": {}, "/apis": {}, "/api/v1": {}, "/apis/example.com/v1/x": {}, "/apis//v1": {}, "/openapi/v3/api/v1": {}, "/": {},
	} {
		gv, ok := pathVersion(path)
		assert.Equal(t, want != meta.GroupVersion{}, ok, path)
		if ok {
			assert.Equal(t, want, gv, path)
		}
	}
}

// TestIdentifyReplacesIdentityHeaders: the headers identify only the given user, and a user that headers cannot
// represent is refused.
func TestIdentifyReplacesIdentityHeaders(t *testing.T) {
	a := newTest(&objects{})
	h := http.Header{"X-Remote-User": {"x"}, "x-remote-group": {"x"}, "X-Remote-Extra-A": {"x"}, "X-Remote_user": {"x"}, "X_remote_group": {"x"}, "Via": {"1.1 proxy"}}
	a.Identify(h, &auth.User{Name: "jane", UID: "u", Groups: []string{"a", "b"}, Extra: map[string][]string{"k.io/A": {"1", "2"}}})
	want := http.Header{"X-Remote-User": {"jane"}, "X-Remote-Uid": {"u"}, "X-Remote-Group": {"a", "b"}, "X-Remote-Extra-K.io%2f%41": {"1", "2"}, "Via": {"1.1 proxy", a.via}}
	assert.Equal(t, want, h)
	assert.True(t, a.IsLoop(h))
	assert.True(t, a.IsLoop(http.Header{"Via": {"1.1 x, " + a.via}}))
	assert.False(t, newTest(&objects{}).IsLoop(h))
	for _, u := range []*auth.User{
		{}, {Name: " admin"}, {Name: "a\r\nX-Remote-User: b"}, {Name: "a", Groups: []string{"system:masters "}}, {Name: "a", UID: "\x00"},
		{Name: "a", Extra: map[string][]string{"k": {"\t"}}},
	} {
		assert.Error(t, CheckIdentity(u), "%q", u)
	}
	assert.NoError(t, CheckIdentity(&auth.User{Name: "jane doe", Groups: []string{"a"}}))
}

// TestProbesArePacedAndLimited: two probes of a server have a pause between them, and unhealthy servers share a
// limited number of slots.
func TestProbesArePacedAndLimited(t *testing.T) {
	a := newTest(&objects{})
	w := a.newTransport(target{service: services.Service{Namespace: "a", Name: "b", Port: 443}})
	leave, _ := a.beginProbe(w)
	require.NotNil(t, leave)
	_, wait := a.beginProbe(w)
	assert.Positive(t, wait)
	leave()
	for range maxUnhealthy {
		a.unhealthySlots <- struct{}{}
	}
	w.probe.begun = time.Time{}
	leave, wait = a.beginProbe(w)
	assert.Nil(t, leave)
	assert.Positive(t, wait)
	w.probe.end(true)
	leave, _ = a.beginProbe(w)
	assert.NotNil(t, leave)
	assert.Less(t, maxUnhealthy+maxFetching, 16, "the controller has 16 workers")
}

// TestErrorTextOmitsLocalPort: the local port differs each time.
func TestErrorTextOmitsLocalPort(t *testing.T) {
	at := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port} }
	one := &net.OpError{Op: "read", Net: "tcp", Source: at(1000), Addr: at(443), Err: errors.New("reset")}
	assert.Equal(t, "read tcp 10.0.0.1:443: reset", errorText(one))
	assert.Len(t, errorText(errors.New(string(make([]byte, 10_000)))), maxMessage)
}

// TestResourcesFromDiscovery: a subresource may be listed without its resource.
func TestResourcesFromDiscovery(t *testing.T) {
	list := []*meta.Object{
		meta.NewObject(map[string]any{"name": "pods/requests", "namespaced": true, "kind": "MetricValueList", "verbs": []any{"get"}}),
		meta.NewObject(map[string]any{"name": "lamps", "kind": "Lamp", "verbs": []any{"list"}, "shortNames": []any{"l"}}),
		meta.NewObject(map[string]any{"name": "lamps/scale", "kind": "Scale", "group": "autoscaling", "version": "v1", "verbs": []any{"get"}}),
	}
	got, err := resources(list, example)
	require.NoError(t, err)
	kind := func(group, version, kind string) map[string]any {
		return map[string]any{"group": group, "version": version, "kind": kind}
	}
	assert.Equal(t, []any{
		map[string]any{"resource": "pods", "scope": "Namespaced", "singularResource": "", "verbs": []any{}, "subresources": []any{
			map[string]any{"subresource": "requests", "verbs": []any{"get"}, "responseKind": kind("example.com", "v1", "MetricValueList")}}},
		map[string]any{"resource": "lamps", "scope": "Cluster", "singularResource": "", "verbs": []any{"list"}, "shortNames": []any{"l"},
			"responseKind": kind("example.com", "v1", "Lamp"), "subresources": []any{
				map[string]any{"subresource": "scale", "verbs": []any{"get"}, "responseKind": kind("autoscaling", "v1", "Scale")}}},
	}, got.List)
	for name, want := range map[string]bool{"pods": true, "lamps": true, "lamps/scale": true, "pods/log": false, "x": false} {
		assert.Equal(t, want, got.Has(name), name)
	}
	for len(list) <= maxResources {
		list = append(list, list...)
	}
	_, err = resources(list, example)
	assert.ErrorContains(t, err, "more than")
}

// TestReadOpenAPIDoesNotWait: reads of documents do not wait for each other. If a server gets another version, its
// documents are read again.
func TestReadOpenAPIDoesNotWait(t *testing.T) {
	o := &objects{}
	o.put("v1.example.com", remote("example.com"))
	a := newTest(o)
	b := a.Table().servers[a.Table().Remote(example).transport.key]
	for range maxFetching {
		a.fetchSlots <- struct{}{}
	}
	assert.False(t, a.readOpenAPI(t.Context(), b))
	<-a.fetchSlots
	assert.True(t, a.readOpenAPI(t.Context(), b))
	assert.False(t, b.transport.reading.begin(b.versions), "the documents were just read")
	o.put("v1.other.com", remote("other.com"))
	again := a.Table().servers[b.transport.key]
	require.Len(t, again.versions, 2)
	assert.True(t, again.transport.reading.begin(again.versions))
}

// TestEnterLimitsRequests: a server cannot have more than maxCalls requests at a time.
func TestEnterLimitsRequests(t *testing.T) {
	o := &objects{}
	o.put("v1.example.com", remote("example.com"))
	v := newTest(o).Table().Remote(example)
	var leave func()
	for range maxCalls {
		var ok bool
		leave, ok = v.Enter()
		require.True(t, ok)
	}
	_, ok := v.Enter()
	assert.False(t, ok)
	leave()
	_, ok = v.Enter()
	assert.True(t, ok)
}
