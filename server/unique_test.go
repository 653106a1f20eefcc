package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/faultinject"
	"orch.io/controlplane/storage/memstore"
)

// Site has a host in its namespace, aliases and a slot in the cluster, and a port of
// its pool.
type Site struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Host    string   `json:"host,omitempty" schema:"unique"`
		Aliases []string `json:"aliases,omitempty" schema:"items.unique=cluster"`
		Slot    *int64   `json:"slot,omitempty" schema:"unique=cluster"`
		Main    bool     `json:"main,omitempty" schema:"unique"`
		Port    int64    `json:"port,omitempty"`
	} `json:"spec"`
	Status struct {
		Address string `json:"address,omitempty" schema:"unique=cluster"`
	} `json:"status,omitzero"`
}

// oldSite is Site before it had anything unique.
type oldSite struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            map[string]any `json:"spec"`
}

const sites = "/apis/example.com/v1/namespaces/default/sites"

func site(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":%q},"spec":%s}`, name, spec)
}

func withSites(store storage.Backend) func(*server.Builder) {
	return func(b *server.Builder) {
		b.Storage = store
		b.Register(registry.Of(registry.Definition[Site]{Group: "example.com", Version: "v1", Status: true}))
	}
}

// duplicate asserts that an answer tells of one value that another object holds.
func duplicate(t *testing.T, got *meta.Object, field, value string) {
	t.Helper()
	assert.Equal(t, "Invalid", got.String("reason"))
	assert.Equal(t, []any{map[string]any{"reason": "FieldValueDuplicate", "field": field, "message": "Duplicate value: " + value}},
		got.List("details", "causes"))
}

// TestUnique: whatever verb writes a unique value that another object holds is
// refused, until that one is gone or has another.
func TestUnique(t *testing.T) {
	onStores(t, func(t *testing.T, inner storage.Backend) {
		store := shared{inner}
		t.Cleanup(func() { require.NoError(t, inner.Close()) })
		s, other := servertest.New(t, withSites(store)), servertest.New(t, withSites(store))
		must(t, s, 201, "POST", sites, site("a", `{"host":"a.example","aliases":["x","y","y"],"slot":0,"main":true}`))
		must(t, s, 201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"second"}}`)
		second := strings.Replace(sites, "default", "second", 1)

		for _, c := range []struct{ method, path, body, field, value string }{
			{"POST", sites, site("b", `{"host":"a.example"}`), "spec.host", `"a.example"`},
			{"POST", sites + "?dryRun=All", site("b", `{"host":"a.example"}`), "spec.host", `"a.example"`},
			{"POST", second, site("b", `{"host":"a.example","aliases":["z","y"]}`), "spec.aliases[1]", `"y"`},
			{"POST", second, site("b", `{"slot":0}`), "spec.slot", "0"},
			{"POST", sites, site("b", `{"main":true}`), "spec.main", "true"},
			{"POST", sites, strings.Replace(site("", `{"main":true}`), `"name":""`, `"generateName":"n"`, 1), "spec.main", "true"},
		} {
			for _, s := range []*servertest.Server{s, other} {
				duplicate(t, must(t, s, 422, c.method, c.path, c.body), c.field, c.value)
			}
		}
		must(t, other, 409, "POST", sites, site("a", `{"host":"a.example"}`))

		must(t, other, 201, "POST", second, site("a", `{"host":"a.example","main":true}`))
		must(t, other, 201, "POST", sites, site("b", `{"host":"b.example"}`))
		must(t, other, 201, "POST", sites, site("c", `{"host":"","main":false,"aliases":[""]}`))
		must(t, other, 201, "POST", sites, site("d", `{"host":"","aliases":["",""]}`))
		b := inProcess(t, s)
		for _, c := range []struct{ method, form, body string }{
			{"PUT", "application/json", site("b", `{"host":"a.example"}`)},
			{"PATCH", "application/merge-patch+json", `{"spec":{"host":"a.example"}}`},
			{"PATCH", "application/json-patch+json", `[{"op":"replace","path":"/spec/host","value":"a.example"}]`},
			{"PATCH", "application/strategic-merge-patch+json", `{"spec":{"host":"a.example"}}`},
		} {
			for _, query := range []string{"", "?dryRun=All"} {
				got := b.must(422, c.method, sites+"/b"+query, c.body, "Content-Type", c.form)
				duplicate(t, meta.NewObject(got.body), "spec.host", `"a.example"`)
			}
		}
		for _, name := range []string{"b", "new"} {
			got := b.must(422, "PATCH", sites+"/"+name+"?fieldManager=m&force=true", site(name, `{"host":"a.example"}`), "Content-Type", applyType)
			duplicate(t, meta.NewObject(got.body), "spec.host", `"a.example"`)
		}
		must(t, s, 200, "PATCH", sites+"/a/status", `{"status":{"address":"1"}}`)
		duplicate(t, must(t, other, 422, "PATCH", sites+"/b/status", `{"status":{"address":"1"}}`), "status.address", `"1"`)

		must(t, s, 200, "PATCH", sites+"/a", `{"metadata":{"labels":{"a":"b"}}}`)
		must(t, s, 200, "PATCH", sites+"/a", `{"spec":{"host":"new.example","aliases":["y"],"slot":null}}`)
		must(t, other, 200, "PATCH", sites+"/b", `{"spec":{"host":"a.example","aliases":["x"],"slot":0}}`)
		must(t, s, 200, "PATCH", sites+"/a", `{"metadata":{"finalizers":["example.com/x"]}}`)
		must(t, s, 200, "DELETE", sites+"/a", "")
		must(t, other, 422, "PATCH", sites+"/b", `{"spec":{"host":"new.example"}}`)
		must(t, s, 200, "PATCH", sites+"/a", `{"metadata":{"finalizers":null}}`)
		must(t, other, 200, "PATCH", sites+"/b", `{"spec":{"host":"new.example","main":true}}`)
		must(t, s, 200, "DELETE", sites, "")
		must(t, s, 200, "DELETE", second, "")
		require.Empty(t, reserved(t, store))
	})
}

// TestUniqueRace: of writers at the same time, on servers that know little of each
// other, exactly one gets a value, and who wants what is free gets it.
func TestUniqueRace(t *testing.T) {
	onStores(t, func(t *testing.T, inner storage.Backend) {
		const writers = 64
		store := shared{inner}
		t.Cleanup(func() { require.NoError(t, inner.Close()) })
		servers := []*servertest.Server{servertest.New(t, withSites(store)), servertest.New(t, withSites(store))}
		do := func(i int, method, path, body string) int {
			code, _ := call(t, servers[i%2], method, path, body)
			return code
		}
		named := func(i int) string { return fmt.Sprint("s", i) }
		codes := atOnce(writers, func(i int) int { return do(i, "POST", sites, site(named(i), `{"host":"h"}`)) })
		require.Equal(t, map[int]int{201: 1, 422: writers - 1}, codes)
		atOnce(writers, func(i int) int { return do(i, "DELETE", sites+"/"+named(i), "") })
		require.Empty(t, reserved(t, store))

		codes = atOnce(writers, func(i int) int { return do(i, "POST", sites, site("same", `{"host":"h"}`)) })
		require.Equal(t, map[int]int{201: 1, 409: writers - 1}, codes)
		must(t, servers[0], 200, "DELETE", sites+"/same", "")

		codes = atOnce(writers, func(i int) int { return do(i, "POST", sites, site(named(i), fmt.Sprintf(`{"host":%q}`, named(i)))) })
		require.Equal(t, map[int]int{201: writers}, codes)
		for round := range 3 { // all change at once, half of them to what the other half gives up
			codes = atOnce(writers, func(i int) int {
				host := fmt.Sprint("round", round, ".", i/2)
				return do(i, "PATCH", sites+"/"+named(i), fmt.Sprintf(`{"spec":{"host":%q}}`, host))
			})
			require.Equal(t, map[int]int{200: writers / 2, 422: writers / 2}, codes)
			hosts := map[string]bool{}
			for _, v := range must(t, servers[1], 200, "GET", sites, "").List("items") {
				hosts[meta.NewObject(v.(map[string]any)).String("spec", "host")] = true
			}
			require.Len(t, hosts, writers)
			require.Len(t, reserved(t, store), writers)
		}
		codes = atOnce(writers, func(i int) int { // one that goes is followed by one that comes
			if i%2 == 0 {
				return do(i, "DELETE", sites+"/"+named(i), "")
			}
			return do(i, "POST", sites, site("n"+named(i), fmt.Sprintf(`{"host":%q}`, "n"+named(i))))
		})
		require.Equal(t, map[int]int{200: writers / 2, 201: writers / 2}, codes)
		require.Len(t, reserved(t, store), writers)
	})
}

// TestUniqueWithAPool: both kinds of values are kept apart, also where they look the
// same.
func TestUniqueWithAPool(t *testing.T) {
	store := shared{memstore.New(memstore.Options{})}
	pool := &registry.Pool{
		Held: func(o *meta.Object) []string { return []string{fmt.Sprint(o.Int("spec", "port"))} },
		Allot: func(a *registry.Allotment) ([]meta.Cause, error) {
			for port := int64(1); a.Object.Int("spec", "port") == 0; port++ {
				if a.Free(fmt.Sprint(port)) {
					a.Object.Set(port, "spec", "port")
				}
			}
			return nil, nil
		},
	}
	s := servertest.New(t, func(b *server.Builder) {
		b.Storage = store
		b.Register(registry.Of(registry.Definition[Site]{Group: "example.com", Version: "v1", Pool: pool}))
	})
	for i := range 3 {
		must(t, s, 201, "POST", sites, site(fmt.Sprint("s", i), fmt.Sprintf(`{"host":"%d"}`, i+1)))
	}
	must(t, s, 422, "POST", sites, site("other", `{"host":"2"}`))
	got := must(t, s, 201, "POST", sites, site("other", `{"host":"4"}`))
	assert.Equal(t, int64(4), got.Int("spec", "port"))
	assert.Len(t, reserved(t, store), 8)
	must(t, s, 200, "DELETE", sites, "")
	require.Empty(t, reserved(t, store))
}

// TestUniqueThroughVersions: a value is one object's alone in whatever version it is
// written, and is told of by the hub's path.
func TestUniqueThroughVersions(t *testing.T) {
	type old struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Host            string `json:"host,omitempty"`
	}
	for _, stored := range []string{"v1", "v1beta1"} {
		store := shared{memstore.New(memstore.Options{})}
		s := servertest.New(t, over(store), func(b *server.Builder) {
			b.Register(registry.Of(registry.Definition[Site]{
				Group: "example.com", Version: "v1", Storage: stored,
				Versions: []registry.VersionOf[Site]{registry.Spoke[old, Site]{
					Version: "v1beta1",
					ToHub:   func(in *old, out *Site) error { out.Spec.Host = in.Host; return nil },
					FromHub: func(in *Site, out *old) error { out.Host = in.Spec.Host; return nil },
				}},
			}))
		})
		older := strings.Replace(sites, "v1", "v1beta1", 1)
		flat := func(name, host string) string {
			return fmt.Sprintf(`{"apiVersion":"example.com/v1beta1","kind":"Site","metadata":{"name":%q},"host":%q}`, name, host)
		}
		must(t, s, 201, "POST", older, flat("a", "a.example"))
		must(t, s, 201, "POST", sites, site("b", `{"host":"b.example","aliases":["x"]}`))
		duplicate(t, must(t, s, 422, "POST", older, flat("c", "b.example")), "spec.host", `"b.example"`)
		duplicate(t, must(t, s, 422, "POST", sites, site("c", `{"host":"a.example"}`)), "spec.host", `"a.example"`)
		must(t, s, 200, "PATCH", older+"/b", `{"host":"c.example"}`)
		duplicate(t, must(t, s, 422, "POST", sites, site("c", `{"aliases":["x"]}`)), "spec.aliases[0]", `"x"`)
		must(t, s, 201, "POST", sites, site("c", `{"host":"b.example"}`))
		must(t, s, 200, "DELETE", older, "")
		require.Empty(t, reserved(t, store))
	}
}

// TestUniqueAmongOldObjects: what objects held before a field became unique is theirs;
// of two that share a value the log tells, and neither is in the way of its other
// fields.
func TestUniqueAmongOldObjects(t *testing.T) {
	store := shared{memstore.New(memstore.Options{})}
	first := servertest.New(t, func(b *server.Builder) {
		b.Storage = store
		b.Register(registry.Of(registry.Definition[oldSite]{Group: "example.com", Version: "v1", Kind: "Site"}))
	})
	for name, host := range map[string]string{"a": "h", "b": "both", "c": "both"} {
		must(t, first, 201, "POST", sites, site(name, fmt.Sprintf(`{"host":%q}`, host)))
	}
	left := resource.ReservationKey(meta.GroupResource{Group: "example.com", Resource: "sites"}, "unique/default/spec.gone=h")
	_, err := store.Commit(t.Context(), storage.Write{Key: left, Value: []byte("sites.example.com/default/a 1")})
	require.NoError(t, err)
	log := &logs{}
	s := servertest.New(t, withSites(store), func(b *server.Builder) { b.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	assert.Contains(t, log.String(), "two objects hold a value that only one may hold")
	assert.Contains(t, log.String(), `spec.host=both`)
	assert.NotContains(t, log.String(), `spec.host=h`)
	require.Len(t, reserved(t, store), 2)

	must(t, s, 422, "POST", sites, site("d", `{"host":"h"}`))
	must(t, s, 422, "POST", sites, site("d", `{"host":"both"}`))
	for _, name := range []string{"b", "c"} {
		must(t, s, 200, "PATCH", sites+"/"+name, `{"metadata":{"labels":{"a":"b"}}}`)
	}
	must(t, s, 200, "DELETE", sites+"/b", "")
	must(t, s, 422, "POST", sites, site("d", `{"host":"both"}`))
	must(t, s, 422, "PATCH", sites+"/a", `{"spec":{"host":"both"}}`)
	must(t, s, 200, "PATCH", sites+"/c", `{"spec":{"host":"free"}}`)
	must(t, s, 201, "POST", sites, site("d", `{"host":"both"}`))
	require.Len(t, reserved(t, store), 3)

	log = &logs{}
	servertest.New(t, withSites(store), func(b *server.Builder) { b.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	assert.Empty(t, log.String())
	require.Len(t, reserved(t, store), 3)
}

// TestUniqueOfDamagedObjects: what an object holds that cannot be read stays its own
// until it is deleted.
func TestUniqueOfDamagedObjects(t *testing.T) {
	inner := memstore.New(memstore.Options{})
	store := faultinject.Wrap(shared{inner}, nil)
	s := servertest.New(t, withSites(shared{store}))
	must(t, s, 201, "POST", sites, site("a", `{"host":"h"}`))
	key := "sites.example.com/default/a"
	rec, err := inner.Get(context.Background(), key, 0)
	require.NoError(t, err)
	store.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Key == key && c.At == rec.Revision {
			return faultinject.Fault{Err: &storage.DamagedError{Key: key, Revision: rec.Revision, Err: storage.ErrClosed}}
		}
		return faultinject.Fault{}
	})
	later := servertest.New(t, withSites(shared{store}))
	duplicate(t, must(t, later, 422, "POST", sites, site("b", `{"host":"h"}`)), "spec.host", `"h"`)
	must(t, later, 200, "DELETE", sites+"/a", "")
	must(t, later, 201, "POST", sites, site("b", `{"host":"h"}`))
}

// TestUniqueOfNamesWithSpaces: whatever name a kind allows, who holds a value is found
// by writers that come upon its reservation.
func TestUniqueOfNamesWithSpaces(t *testing.T) {
	for _, name := range []string{"plain", "with a space", " ", "x "} {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		s := servertest.New(t, over(store), func(b *server.Builder) {
			b.Register(registry.Of(registry.Definition[Site]{Group: "example.com", Version: "v1", ValidateName: meta.NameChecker(meta.CheckPathSegment)}))
		})
		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpGet && strings.HasPrefix(c.Key, resource.ReservationPrefix) {
				store.SetPlan(nil)
				must(t, s, 201, "POST", sites, site(name, `{"host":"h"}`)) // after the look for duplicates
			}
			return faultinject.Fault{}
		})
		duplicate(t, must(t, s, 422, "POST", sites, site("other", `{"host":"h"}`)), "spec.host", `"h"`)
	}
}

// TestReservationsOfOtherReleases: what objects hold stays theirs while a release is over the
// store, too, whose kind has nothing unique, and goes when they are gone, whichever deletes them.
func TestReservationsOfOtherReleases(t *testing.T) {
	inner := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, inner.Close()) })
	store := shared{inner}
	newer := servertest.New(t, withSites(store))
	must(t, newer, 201, "POST", sites, site("a", `{"host":"h","aliases":["x"]}`))
	must(t, newer, 201, "POST", sites, site("b", `{"host":"i"}`))
	key := func(group, host string) string {
		return resource.ReservationKey(meta.GroupResource{Group: group, Resource: "sites"}, "unique/default/spec.host="+host)
	}
	raw := func(key, value string) {
		_, err := store.Commit(t.Context(), storage.Write{Key: key, Value: []byte(value)})
		require.NoError(t, err)
	}
	raw(key("other.example.com", "there"), "sites.other.example.com/default/there 1")
	raw("sites.other.example.com/default/there", `{"metadata":{"name":"there","namespace":"default","uid":"1"}}`)
	raw(key("other.example.com", "gone"), "sites.other.example.com/default/gone 1")
	raw(key("example.com", "odd"), "nobody")
	older := func() *servertest.Server {
		return servertest.New(t, over(store), func(b *server.Builder) {
			b.Register(registry.Of(registry.Definition[oldSite]{Group: "example.com", Version: "v1", Kind: "Site"}))
		})
	}
	must(t, older(), 200, "DELETE", sites+"/b", "")
	must(t, newer, 201, "POST", sites, site("c", `{"host":"j"}`))
	older()
	got := reserved(t, store)
	require.Len(t, got, 4)
	for _, kept := range []string{key("example.com", "h"), key("example.com", "j"), key("other.example.com", "there")} {
		require.Contains(t, got, kept)
	}
	duplicate(t, must(t, newer, 422, "POST", sites, site("d", `{"host":"h"}`)), "spec.host", `"h"`)
	must(t, newer, 201, "POST", sites, site("d", `{"host":"i"}`))
}
