package upgrades_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// Lamps of three releases, all of which store v1. The hub of the second release has more fields than v1,
// and the hub of the third has more again.
type (
	lamp1 struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Room            string `json:"room,omitempty"`
	}
	lamp1First struct { // the first release has a field that the later ones do not know
		lamp1 `json:",inline"`
		Cord  int32 `json:"cord,omitempty"`
	}
	lamp2 struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Room            string `json:"room,omitempty"`
		Level           int32  `json:"level,omitempty"`
	}
	lamp2Patched struct { // a release between has a field in v2
		lamp2 `json:",inline"`
		Fuse  int32 `json:"fuse,omitempty"`
	}
	lamp3 struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Room            string `json:"room,omitempty"`
		Level           int32  `json:"level,omitempty"`
		Hue             int32  `json:"hue,omitempty"`
	}
)

func lampsOne() *registry.Kind {
	return registry.Of(registry.Definition[lamp1First]{Group: "example.com", Version: "v1", Kind: "Lamp"})
}

func lampsTwo() *registry.Kind {
	return registry.Of(registry.Definition[lamp2]{Group: "example.com", Version: "v2", Kind: "Lamp", Storage: "v1",
		Versions: []registry.VersionOf[lamp2]{registry.Spoke[lamp1, lamp2]{Version: "v1",
			ToHub:   func(o *lamp1, h *lamp2) error { h.Room = o.Room; return nil },
			FromHub: func(h *lamp2, o *lamp1) error { o.Room = h.Room; return nil },
		}}})
}

func lampsTwoPatched() *registry.Kind {
	return registry.Of(registry.Definition[lamp2Patched]{Group: "example.com", Version: "v2", Kind: "Lamp", Storage: "v1",
		Versions: []registry.VersionOf[lamp2Patched]{registry.Spoke[lamp1, lamp2Patched]{Version: "v1",
			ToHub:   func(o *lamp1, h *lamp2Patched) error { h.Room = o.Room; return nil },
			FromHub: func(h *lamp2Patched, o *lamp1) error { o.Room = h.Room; return nil },
		}}})
}

func lampsThree() *registry.Kind {
	return registry.Of(registry.Definition[lamp3]{Group: "example.com", Version: "v3", Kind: "Lamp", Storage: "v1",
		Versions: []registry.VersionOf[lamp3]{
			registry.Spoke[lamp1, lamp3]{Version: "v1",
				ToHub:   func(o *lamp1, h *lamp3) error { h.Room = o.Room; return nil },
				FromHub: func(h *lamp3, o *lamp1) error { o.Room = h.Room; return nil }},
			registry.Spoke[lamp2, lamp3]{Version: "v2",
				ToHub:   func(o *lamp2, h *lamp3) error { h.Room, h.Level = o.Room, o.Level; return nil },
				FromHub: func(h *lamp3, o *lamp2) error { o.Room, o.Level = h.Room, h.Level; return nil }},
		}})
}

// TestRecordsOfUnknownHubVersionsSurviveUpdates: an update by a release keeps the stored form of a
// hub version that the release does not know.
func TestRecordsOfUnknownHubVersionsSurviveUpdates(t *testing.T) {
	t.Parallel()
	lamp := func(version string) string { return "/apis/example.com/" + version + "/namespaces/default/lamps" }
	releases := func(t *testing.T, kinds ...*registry.Kind) (list []*apitest.Client) {
		store := memstore.New(memstore.Options{})
		t.Cleanup(func() { _ = store.Close() })
		for _, k := range kinds {
			list = append(list, apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), keeps, serves(k))))
		}
		return list
	}
	lit := func(a *apitest.Client) []any {
		got := a.Must(200, "GET", lamp("v3")+"/l", nil).Body
		return []any{got["room"], got["level"], got["hue"]}
	}
	t.Run("an older hub is newer", func(t *testing.T) {
		both := releases(t, lampsTwo(), lampsThree())
		two, three := both[0], both[1]
		three.Must(201, "POST", lamp("v3"), `{"metadata":{"name":"l"},"room":"attic","level":3,"hue":7}`)
		two.Must(200, "PATCH", lamp("v2")+"/l", `{"room":"hall"}`)
		assert.Equal(t, []any{"hall", 3.0, 7.0}, lit(three))
		two.Must(200, "PATCH", lamp("v2")+"/l", `{"level":5}`)
		two.Must(200, "PATCH", lamp("v1")+"/l", `{"room":"attic"}`)
		assert.Equal(t, []any{"attic", 5.0, 7.0}, lit(three))
	})
	t.Run("a field that is not known", func(t *testing.T) {
		all := releases(t, lampsOne(), lampsTwo(), lampsThree())
		one, two, three := all[0], all[1], all[2]
		two.Must(201, "POST", lamp("v2"), `{"metadata":{"name":"l"},"room":"attic","level":5}`)
		one.Must(200, "PATCH", lamp("v1")+"/l", `{"cord":2}`)
		three.Must(200, "PATCH", lamp("v3")+"/l", `{"level":1}`)
		two.Must(200, "PATCH", lamp("v2")+"/l", `{"room":"hall"}`)
		assert.Equal(t, []any{"hall", 1.0, nil}, lit(three))
		assert.Equal(t, 2.0, one.Must(200, "GET", lamp("v1")+"/l", nil).Body["cord"])
	})
	t.Run("a field of a form that is not known", func(t *testing.T) {
		both := releases(t, lampsTwoPatched(), lampsThree())
		two, three := both[0], both[1]
		two.Must(201, "POST", lamp("v2"), `{"metadata":{"name":"l"},"room":"attic","level":5,"fuse":2}`)
		three.Must(200, "PATCH", lamp("v3")+"/l", `{"level":null}`)
		assert.Equal(t, []any{"attic", nil, nil}, lit(three))
		three.Must(200, "PATCH", lamp("v3")+"/l", `{"room":"hall"}`)
		assert.Equal(t, []any{"hall", nil, nil}, lit(three))
		got := two.Must(200, "GET", lamp("v2")+"/l", nil).Body
		assert.Equal(t, []any{"hall", nil, 2.0}, []any{got["room"], got["level"], got["fuse"]})
	})
}
