// Package harness is a small controller and its tests, which only need servertest: no binaries, no
// sockets, no client library.
//
// The controller creates a ConfigMap with the text of each Greeting. It is deleted with the Greeting.
// The tests show a server for each test, forks of a prepared server, waiting for controllers, and hours
// that pass in no time.
package harness

import (
	"context"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// Greeting names a person to greet.
type Greeting struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Whom            string `json:"whom" schema:"required,maxLength=40"`
}

// Greetings and configMaps describe the types that the controller uses.
var (
	Greetings  = meta.GroupResource{Group: "example.com", Resource: "greetings"}
	configMaps = meta.GroupResource{Resource: "configmaps"}
)

// Register adds the kind and its controller to a server.
func Register(b *server.Builder) {
	b.Register(registry.Of(registry.Definition[Greeting]{Group: "example.com", Version: "v1"}))
	b.Controllers = append(b.Controllers, Controller())
}

// Controller returns the controller for a server: it is called with the key of every Greeting and
// ConfigMap that changed, and again after an error.
func Controller() client.Controller {
	return client.Controller{
		Name: "greetings", Types: []meta.GroupResource{Greetings, configMaps},
		MapEvent:  func(c client.Event) []string { return []string{c.Key.String()} },
		Reconcile: reconcile,
	}
}

func reconcile(ctx context.Context, c client.Client, name string) (time.Duration, error) {
	namespace, name, _ := strings.Cut(name, "/")
	key := meta.Key{Namespace: namespace, Name: name}
	greeting, err := c.Get(ctx, Greetings, key)
	if meta.IsNotFound(err) {
		return 0, nil // the garbage collector removes the ConfigMap
	}
	if err != nil {
		return 0, err
	}
	text := "hello " + greeting.String("whom")
	_, err = c.Update(ctx, configMaps, key, "", func(m *meta.Object) error {
		m.Set(text, "data", "text")
		return nil
	})
	if !meta.IsNotFound(err) {
		return 0, err
	}
	_, err = c.Create(ctx, configMaps, meta.NewObject(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": name, "namespace": namespace,
			"ownerReferences": []any{map[string]any{
				"apiVersion": greeting.APIVersion(), "kind": greeting.Kind(), "name": name, "uid": greeting.UID(), "controller": true,
			}},
		},
		"data": map[string]any{"text": text},
	}))
	return 0, err
}
