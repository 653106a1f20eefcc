package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
)

// Lamp is a kind defined by a plain struct.
type Lamp struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Lit bool `json:"lit"`
	} `json:"spec"`
}

func lamps() *registry.Kind {
	return registry.Of(registry.Definition[Lamp]{Group: "example.com", Version: "v1", Scope: registry.Cluster})
}

// A server is an http.Handler that can be mounted on any mux, below any prefix.
func ExampleBuilder() {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(lamps())
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/control/", http.StripPrefix("/control", s))
	web := httptest.NewServer(mux)

	res, err := http.Post(web.URL+"/control/apis/example.com/v1/lamps", "application/json", strings.NewReader(`{"metadata":{"name":"hall"},"spec":{"lit":"yes"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.StatusCode)
	res.Body.Close()
	web.CloseClientConnections()
	web.Close()
	fmt.Println(s.Shutdown(ctx))
	// Output:
	// 400
	// <nil>
}

// Build reports all errors of the configuration at once.
func ExampleBuilder_Build() {
	type Broken struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            int `json:"size" schema:"minimum=1"`
	}
	b := &server.Builder{}
	b.Register(registry.Of(registry.Definition[Broken]{Group: "example.com", Version: "v1"}))
	_, err := b.Build(context.Background())
	fmt.Println(err)
	// Output:
	// no Authorizer: choose one, or auth.AllowAll for a server without access control
	// kind Broken.example.com (Go type server_test.Broken): version "v1": Go type server_test.Broken, field Size: tag schema, minimum: unknown word
}

// A server that allocates the addresses of services from its own network.
func ExampleBuilder_Kind() {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(builtin.Kinds()...)
	b.Kind("", "Service").Allocator = core.ServiceNetwork{Addresses: netip.MustParsePrefix("192.168.0.0/30")}.Pool()
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	service, err := b.Client().Create(ctx, meta.GroupResource{Resource: "services"}, meta.NewObject(map[string]any{
		"metadata": map[string]any{"namespace": "default", "name": "shop"},
		"spec":     map[string]any{"ports": []any{map[string]any{"port": int64(80)}}},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(service.String("spec", "clusterIP"))
	fmt.Println(s.Shutdown(ctx))
	// Output:
	// 192.168.0.2
	// <nil>
}

// A program can access the objects of its server without HTTP.
func ExampleServer_Objects() {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll, Names: names.Kubernetes}
	b.Register(builtin.Kinds()...)
	b.Register(lamps())
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }() // namespaces, garbage, events
	kind := meta.GroupResource{Group: "example.com", Resource: "lamps"}
	_, err = s.Objects().Create(ctx, kind, meta.NewObject(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": map[string]any{"name": "hall"}, "spec": map[string]any{"lit": true},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	lamp, err := s.Objects().Get(ctx, kind, meta.Key{Name: "hall"})
	fmt.Println(lamp.Bool("spec", "lit"), err)
	fmt.Println(errors.Join(s.Shutdown(ctx), <-ran))
	// Output:
	// true <nil>
	// <nil>
}

// A program can add its own metrics to /metrics.
func ExampleServer_Metrics() {
	ctx := context.Background()
	s, err := (&server.Builder{Authorizer: auth.AllowAll}).Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	lit := prometheus.NewGauge(prometheus.GaugeOpts{Name: "lamps_lit", Help: "Lamps that are lit."})
	fmt.Println(s.Metrics().Register(lit))
	lit.Set(3)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	fmt.Println(strings.Contains(w.Body.String(), "\nlamps_lit 3\n"), s.Shutdown(ctx))
	// Output:
	// <nil>
	// true <nil>
}

// A request body that is larger than the limit is refused.
func ExampleLimits() {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll, Limits: server.Limits{Body: 1 << 10, History: time.Minute}}
	b.Register(lamps())
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &http.Client{Transport: s.Transport()}
	res, err := c.Post("http://in-process/apis/example.com/v1/lamps", "application/json", strings.NewReader(strings.Repeat(" ", 2<<10)))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	fmt.Println(res.StatusCode, http.StatusText(res.StatusCode))
	fmt.Println(s.Shutdown(ctx))
	// Output:
	// 413 Request Entity Too Large
	// <nil>
}

// A client in the same process can watch without a socket. The watch ends with the server.
func ExampleServer_Transport() {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(lamps())
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &http.Client{Transport: s.Transport()}
	res, err := c.Get("http://in-process/apis/example.com/v1/lamps?watch=true")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	post, err := c.Post("http://in-process/apis/example.com/v1/lamps", "application/json", strings.NewReader(`{"metadata":{"name":"hall"},"spec":{"lit":true}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	post.Body.Close()
	var event struct {
		Type   string
		Object Lamp
	}
	err = json.NewDecoder(res.Body).Decode(&event)
	fmt.Println(event.Type, event.Object.Name, event.Object.Spec.Lit, err)
	fmt.Println(s.Shutdown(ctx))
	// Output:
	// ADDED hall true <nil>
	// <nil>
}

// A server that, like a bare API server, leaves pods, volumes and claims to the test, but empties
// deleted namespaces.
func ExampleControllerNames() {
	b := &server.Builder{Authorizer: auth.AllowAll, RunControllers: []string{"envtest", "namespace"}}
	s, err := b.Build(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(context.Background())
	for _, name := range server.ControllerNames() {
		if strings.HasSuffix(name, "-protection") {
			fmt.Println("off:", name)
		}
	}
	// Output:
	// off: pvc-protection
	// off: pv-protection
	// off: volumeattributesclass-protection
}
