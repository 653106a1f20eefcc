package upgrades_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/storage/memstore"
)

// A second release of a program renames a field. Build lists the stored objects whose values would be
// hidden; Upgrade moves the values; Migrate stores all objects in the new format.
func ExampleServer_Migrate() {
	ctx := context.Background()
	release := func(store *memstore.Store, kind *registry.Kind) (*server.Server, error) {
		b := &server.Builder{Authorizer: auth.AllowAll, Storage: store.Fork()}
		b.Register(kind)
		return b.Build(ctx)
	}
	type Ship1 struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Home            string `json:"home,omitempty"`
	}
	type Ship2 struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Port            string `json:"port,omitempty"`
	}
	one := registry.Of(registry.Definition[Ship1]{Group: "example.com", Version: "v1", Kind: "Ship", Scope: registry.Cluster})
	two := registry.Definition[Ship2]{Group: "example.com", Version: "v1", Kind: "Ship", Scope: registry.Cluster}

	store := memstore.New(memstore.Options{})
	b := &server.Builder{Authorizer: auth.AllowAll, Storage: store}
	b.Register(one)
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(ctx)
	post := httptest.NewRequest(http.MethodPost, "/apis/example.com/v1/ships", strings.NewReader(`{"metadata":{"name":"ann"},"home":"Hull"}`))
	post.Header.Set("Content-Type", "application/json")
	s.ServeHTTP(httptest.NewRecorder(), post)

	_, err = release(store, registry.Of(two))
	var stored *server.IncompatibleError
	if errors.As(err, &stored) {
		for _, p := range stored.Problems {
			fmt.Println(p.Objects, p.Resource, p.Text)
		}
	}

	two.Behavior.Upgrade = func(stored *meta.Object) error {
		if home, ok := stored.Get("home"); ok {
			stored.Set(home, "port")
			stored.Delete("home")
		}
		return nil
	}
	second, err := release(store, registry.Of(two))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Shutdown(ctx)
	get := httptest.NewRecorder()
	second.ServeHTTP(get, httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/ships/ann", nil))
	fmt.Println(strings.Contains(get.Body.String(), `"port":"Hull"`))
	fmt.Println(second.Migrate(ctx, func(m server.Migration) {
		fmt.Println(m.Resource, m.Rewritten, "of", m.Total)
	}))
	// Output:
	// 1 ships.example.com has the field home, which the kind does not have
	// true
	// ships.example.com 1 of 1
	// <nil>
}

// With ServeIncompatible, the server starts and keeps the data that does not fit.
func ExampleIncompatibility() {
	p := server.Incompatibility{
		Resource: meta.GroupResource{Group: "example.com", Resource: "ships"}, Text: "has the field home, which the kind does not have",
		Objects: 1, Keys: []meta.Key{{Name: "ann"}},
	}
	err := &server.IncompatibleError{Problems: []server.Incompatibility{p}}
	fmt.Println(err)
	// Output:
	// the store holds objects that do not fit their kinds:
	//   ships.example.com: each of 1 has the field home, which the kind does not have: ann
	// Convert the objects in the kind's Behavior.Upgrade, keep the stored version as a version that is not served, or set Builder.ServeIncompatible to start anyway: data that does not fit stays in the store, hidden.
}
