package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

type Lamp struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Lit bool `json:"lit"`
	} `json:"spec"`
	Status struct {
		Burnt bool `json:"burnt,omitempty"`
	} `json:"status,omitzero"`
}

var lamp = registry.Definition[Lamp]{
	Group: "example.com", Version: "v1", Scope: registry.Cluster, Status: true, ShortNames: []string{"lp"},
}

// serve returns a server with in-memory storage that authorizes every request.
func serve(kinds ...*registry.Kind) *server.Server {
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(kinds...)
	s, err := b.Build(context.Background())
	if err != nil {
		panic(err)
	}
	return s
}

// send sends a request to a server and returns the object in the response.
func send(s *server.Server, method, path, body string) *meta.Object {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	tree := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &tree); err != nil {
		panic(err)
	}
	return meta.NewObject(tree)
}

func ExampleOf() {
	kind := registry.Of(lamp)
	fmt.Println(kind, kind.Err())
	broken := lamp
	broken.Storage = "v2"
	fmt.Println(registry.Of(broken).Err())
	// Output:
	// kind Lamp.example.com (Go type registry_test.Lamp) <nil>
	// Storage "v2" is not a version of the kind
}

// LampV1alpha1 is an older version of Lamp, with a switch and without a status.
type LampV1alpha1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Switched        string `json:"switched" schema:"default=off,enum=on|off"`
}

// Clients of an older version read and write all objects in that version. Fields that the version
// lacks keep their values.
func ExampleSpoke() {
	d := lamp
	d.Versions = []registry.VersionOf[Lamp]{registry.Spoke[LampV1alpha1, Lamp]{
		Version: "v1alpha1",
		ToHub: func(in *LampV1alpha1, out *Lamp) error {
			out.Spec.Lit = in.Switched == "on"
			return nil
		},
		FromHub: func(in *Lamp, out *LampV1alpha1) error {
			out.Switched = map[bool]string{true: "on", false: "off"}[in.Spec.Lit]
			return nil
		},
		MissingSubresources: []string{"status"},
	}}
	s := serve(registry.Of(d))
	defer s.Shutdown(context.Background())
	const lamps = "/apis/example.com/v1/lamps"
	send(s, "POST", lamps, `{"metadata":{"name":"desk"},"spec":{"lit":true}}`)
	send(s, "PUT", lamps+"/desk/status", `{"metadata":{"name":"desk"},"status":{"burnt":true}}`)
	const old = "/apis/example.com/v1alpha1/lamps/desk"
	fmt.Println(send(s, "GET", old, "").String("switched"))
	send(s, "PUT", old, `{"metadata":{"name":"desk"},"switched":"off"}`)
	desk := send(s, "GET", lamps+"/desk", "")
	fmt.Println(desk.Map("spec"), desk.Map("status"))
	// Output:
	// on
	// map[lit:false] map[burnt:true]
}

// A version that a later release removes is served by the releases that have it, with a warning
// once it is deprecated. Objects that were written in it stay readable.
func ExampleLifetime() {
	d := lamp
	d.Versions = []registry.VersionOf[Lamp]{registry.Spoke[Lamp, Lamp]{
		Version: "v1beta1", Lifetime: registry.Lifetime{Introduced: "1.16", Deprecated: "1.19", Removed: "1.22"},
	}}
	for _, release := range []string{"1.18", "1.21", "1.22"} {
		b := &server.Builder{Authorizer: auth.AllowAll, Release: release}
		b.Register(registry.Of(d))
		s, err := b.Build(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/apis/example.com/v1beta1/lamps", nil))
		fmt.Println(strings.TrimSpace(fmt.Sprint(release, " ", w.Code, " ", w.Header().Get("Warning"))))
		s.Shutdown(context.Background())
	}
	// Output:
	// 1.18 200
	// 1.21 200 299 - "example.com/v1beta1 Lamp is deprecated in v1.19+, unavailable in v1.22+"
	// 1.22 404
}

// Every hook of a kind sees a write as a Change.
func ExampleChange() {
	d := lamp
	d.Default = func(w *registry.Change[Lamp]) {
		if w.Old == nil {
			w.New.Spec.Lit = true
		}
	}
	d.Validate = func(w *registry.Change[Lamp]) {
		if w.Subresource == "" && w.New.Spec.Lit && w.New.Status.Burnt {
			w.Forbidden(check.At("spec", "lit"), "it is burnt")
		}
	}
	s := serve(registry.Of(d))
	defer s.Shutdown(context.Background())
	const lamps = "/apis/example.com/v1/lamps"
	fmt.Println(send(s, "POST", lamps, `{"metadata":{"name":"desk"}}`).Map("spec"))
	send(s, "PUT", lamps+"/desk", `{"metadata":{"name":"desk"},"spec":{"lit":false}}`)
	send(s, "PUT", lamps+"/desk/status", `{"metadata":{"name":"desk"},"status":{"burnt":true}}`)
	fmt.Println(send(s, "PUT", lamps+"/desk", `{"metadata":{"name":"desk"},"spec":{"lit":true}}`).String("message"))
	// Output:
	// map[lit:true]
	// Lamp.example.com "desk" is invalid: spec.lit: Forbidden: it is burnt
}

// Lamps share a few sockets, which a pool allocates.
func ExampleAllocator() {
	sockets := []string{"left", "right"}
	pool := &registry.Allocator{
		Values: func(o *meta.Object) []string { return []string{o.String("spec", "socket")} },
		Allocate: func(a *registry.Allocation) ([]meta.StatusCause, error) {
			i := slices.IndexFunc(sockets, a.Free)
			if i < 0 {
				return nil, errors.New("no socket is free")
			}
			a.Object.Set(sockets[i], "spec", "socket")
			return nil, nil
		},
	}
	lamp := meta.NewObject(nil)
	_, err := pool.Allocate(&registry.Allocation{Object: lamp, Free: func(socket string) bool { return socket != "left" }})
	fmt.Println(pool.Values(lamp), err)
	// Output: [right] <nil>
}
