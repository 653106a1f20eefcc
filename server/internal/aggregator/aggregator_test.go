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

// objects are APIServices in memory.
type objects struct {
	revision int64
	list     []Record
	read     int
}

func (o *objects) Changed() int64 { return o.revision }
func (o *objects) List() []Record { return o.list }

// put puts an object in the place of the one of its name.
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

// tell gives an object another status.
func (o *objects) tell(name string, s state) {
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

// TestTable: a table says what the objects say; one that did not change is not read again,
// and what was learned of its server stays until it is another one.
func TestTable(t *testing.T) {
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
	a.learn(v, func(d *Documents) { d.Hash = "h" })
	o.put("v1.other.com", remote("other.com"))
	assert.Equal(t, "h", a.Table().Remote(example).Documents.Hash)
	assert.Equal(t, read+1, o.read)
	table := a.Table()
	a.learn(v, func(d *Documents) { d.Hash = "h" })
	assert.Same(t, table, a.Table(), "nobody makes documents again of what is known")
	o.tell("v1.example.com", state{statusFalse, "FailedDiscoveryCheck", "x"})
	assert.Same(t, table, a.Table(), "it was not available before either")
	o.put("v1.example.com", remote("example.com", "caBundle", "eA=="))
	assert.Empty(t, a.Table().Remote(example).Documents.Hash)
	a.learn(v, func(d *Documents) { d.Hash = "late" })
	assert.Empty(t, a.Table().Remote(example).Documents.Hash, "it was another server's")
	_, err := a.Table().Remote(example).Transport().RoundTrip(&http.Request{})
	assert.ErrorContains(t, err, "spec.caBundle")
	o.list = nil
	o.revision++
	assert.Nil(t, a.Table().Remote(example))
	a.Close()
}

func TestPriorities(t *testing.T) {
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

// TestIdentity: headers tell who calls, whatever they said before; who cannot be told by
// headers is nobody.
func TestIdentity(t *testing.T) {
	a := newTest(&objects{})
	h := http.Header{"X-Remote-User": {"x"}, "x-remote-group": {"x"}, "X-Remote-Extra-A": {"x"}, "X-Remote_user": {"x"}, "X_remote_group": {"x"}, "Via": {"1.1 proxy"}}
	a.Identify(h, &auth.User{Name: "jane", UID: "u", Groups: []string{"a", "b"}, Extra: map[string][]string{"k.io/A": {"1", "2"}}})
	want := http.Header{"X-Remote-User": {"jane"}, "X-Remote-Uid": {"u"}, "X-Remote-Group": {"a", "b"}, "X-Remote-Extra-K.io%2f%41": {"1", "2"}, "Via": {"1.1 proxy", a.word}}
	assert.Equal(t, want, h)
	assert.True(t, a.Passed(h))
	assert.True(t, a.Passed(http.Header{"Via": {"1.1 x, " + a.word}}))
	assert.False(t, newTest(&objects{}).Passed(h))
	for _, u := range []*auth.User{
		{}, {Name: " admin"}, {Name: "a\r\nX-Remote-User: b"}, {Name: "a", Groups: []string{"system:masters "}}, {Name: "a", UID: "\x00"},
		{Name: "a", Extra: map[string][]string{"k": {"\t"}}},
	} {
		assert.Error(t, Tellable(u), "%q", u)
	}
	assert.NoError(t, Tellable(&auth.User{Name: "jane doe", Groups: []string{"a"}}))
}

// TestPauses: a look does not follow at once on another, and servers that were not well have
// places of their own, so that others never wait for them.
func TestPauses(t *testing.T) {
	a := newTest(&objects{})
	w := a.newWay(target{service: services.Service{Namespace: "a", Name: "b", Port: 443}})
	leave, _ := a.enter(w)
	require.NotNil(t, leave)
	_, wait := a.enter(w)
	assert.Positive(t, wait)
	leave()
	for range maxDoubtful {
		a.doubtful <- struct{}{}
	}
	w.look.begun = time.Time{}
	leave, wait = a.enter(w)
	assert.Nil(t, leave)
	assert.Positive(t, wait)
	w.look.end(true)
	leave, _ = a.enter(w)
	assert.NotNil(t, leave)
	assert.Less(t, maxDoubtful+maxFetching, 16, "the controller has so many workers")
}

// TestStable: the port of the caller is another one each time.
func TestStable(t *testing.T) {
	at := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port} }
	one := &net.OpError{Op: "read", Net: "tcp", Source: at(1000), Addr: at(443), Err: errors.New("reset")}
	assert.Equal(t, "read tcp 10.0.0.1:443: reset", stable(one))
	assert.Len(t, stable(errors.New(string(make([]byte, 10_000)))), maxMessage)
}

// TestResources: names of sub-resources may come without the resource.
func TestResources(t *testing.T) {
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

// TestSlowDocuments: who reads documents does not wait for those of others. Another version
// of the same server has them read again.
func TestSlowDocuments(t *testing.T) {
	o := &objects{}
	o.put("v1.example.com", remote("example.com"))
	a := newTest(o)
	b := a.Table().backs[a.Table().Remote(example).way.key]
	for range maxFetching {
		a.fetching <- struct{}{}
	}
	assert.False(t, a.readOpenAPI(t.Context(), b))
	<-a.fetching
	assert.True(t, a.readOpenAPI(t.Context(), b))
	assert.False(t, b.way.reading.begin(b.versions), "it was read")
	o.put("v1.other.com", remote("other.com"))
	again := a.Table().backs[b.way.key]
	require.Len(t, again.versions, 2)
	assert.True(t, again.way.reading.begin(again.versions))
}

// TestCalls: no server holds more requests than there may be.
func TestCalls(t *testing.T) {
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
