package replicas_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

func site(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":%q},"spec":%s}`, name, spec)
}

func withSites(store storage.Backend) func(*server.Builder) {
	return func(b *server.Builder) {
		b.Storage = store
		b.Register(registry.Of(registry.Definition[apitest.Site]{Group: "example.com", Version: "v1", Status: true}))
	}
}

// duplicate asserts that a response reports a single value that another object holds.
func duplicate(t *testing.T, got *meta.Object, field, value string) {
	t.Helper()
	assert.Equal(t, "Invalid", got.String("reason"))
	assert.Equal(t, []any{map[string]any{"reason": "FieldValueDuplicate", "field": field, "message": "Duplicate value: " + value}},
		got.List("details", "causes"))
}

// TestValueOfOtherObjectIsRefused: a write by any verb of a unique value that another object
// holds is refused until that object is deleted or has another value.
func TestValueOfOtherObjectIsRefused(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, inner storage.Backend) {
		store := apitest.KeepOpen{Backend: inner}
		t.Cleanup(func() { require.NoError(t, inner.Close()) })
		s, other := servertest.New(t, withSites(store)), servertest.New(t, withSites(store))
		apitest.Must(t, s, 201, "POST", apitest.SitesPath, site("a", `{"host":"a.example","aliases":["x","y","y"],"slot":0,"main":true}`))
		apitest.Must(t, s, 201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"second"}}`)
		second := strings.Replace(apitest.SitesPath, "default", "second", 1)

		for _, c := range []struct{ method, path, body, field, value string }{
			{"POST", apitest.SitesPath, site("b", `{"host":"a.example"}`), "spec.host", `"a.example"`},
			{"POST", apitest.SitesPath + "?dryRun=All", site("b", `{"host":"a.example"}`), "spec.host", `"a.example"`},
			{"POST", second, site("b", `{"host":"a.example","aliases":["z","y"]}`), "spec.aliases[1]", `"y"`},
			{"POST", second, site("b", `{"slot":0}`), "spec.slot", "0"},
			{"POST", apitest.SitesPath, site("b", `{"main":true}`), "spec.main", "true"},
			{"POST", apitest.SitesPath, strings.Replace(site("", `{"main":true}`), `"name":""`, `"generateName":"n"`, 1), "spec.main", "true"},
		} {
			for _, s := range []*servertest.Server{s, other} {
				duplicate(t, apitest.Must(t, s, 422, c.method, c.path, c.body), c.field, c.value)
			}
		}
		apitest.Must(t, other, 409, "POST", apitest.SitesPath, site("a", `{"host":"a.example"}`))

		apitest.Must(t, other, 201, "POST", second, site("a", `{"host":"a.example","main":true}`))
		apitest.Must(t, other, 201, "POST", apitest.SitesPath, site("b", `{"host":"b.example"}`))
		apitest.Must(t, other, 201, "POST", apitest.SitesPath, site("c", `{"host":"","main":false,"aliases":[""]}`))
		apitest.Must(t, other, 201, "POST", apitest.SitesPath, site("d", `{"host":"","aliases":["",""]}`))
		b := apitest.InProcess(t, s)
		for _, c := range []struct{ method, form, body string }{
			{"PUT", "application/json", site("b", `{"host":"a.example"}`)},
			{"PATCH", "application/merge-patch+json", `{"spec":{"host":"a.example"}}`},
			{"PATCH", "application/json-patch+json", `[{"op":"replace","path":"/spec/host","value":"a.example"}]`},
			{"PATCH", "application/strategic-merge-patch+json", `{"spec":{"host":"a.example"}}`},
		} {
			for _, query := range []string{"", "?dryRun=All"} {
				got := b.Must(422, c.method, apitest.SitesPath+"/b"+query, c.body, "Content-Type", c.form)
				duplicate(t, meta.NewObject(got.Body), "spec.host", `"a.example"`)
			}
		}
		for _, name := range []string{"b", "new"} {
			got := b.Must(422, "PATCH", apitest.SitesPath+"/"+name+"?fieldManager=m&force=true", site(name, `{"host":"a.example"}`), "Content-Type", apitest.ApplyPatch)
			duplicate(t, meta.NewObject(got.Body), "spec.host", `"a.example"`)
		}
		apitest.Must(t, s, 200, "PATCH", apitest.SitesPath+"/a/status", `{"status":{"address":"1"}}`)
		duplicate(t, apitest.Must(t, other, 422, "PATCH", apitest.SitesPath+"/b/status", `{"status":{"address":"1"}}`), "status.address", `"1"`)

		apitest.Must(t, s, 200, "PATCH", apitest.SitesPath+"/a", `{"metadata":{"labels":{"a":"b"}}}`)
		apitest.Must(t, s, 200, "PATCH", apitest.SitesPath+"/a", `{"spec":{"host":"new.example","aliases":["y"],"slot":null}}`)
		apitest.Must(t, other, 200, "PATCH", apitest.SitesPath+"/b", `{"spec":{"host":"a.example","aliases":["x"],"slot":0}}`)
		apitest.Must(t, s, 200, "PATCH", apitest.SitesPath+"/a", `{"metadata":{"finalizers":["example.com/x"]}}`)
		apitest.Must(t, s, 200, "DELETE", apitest.SitesPath+"/a", "")
		apitest.Must(t, other, 422, "PATCH", apitest.SitesPath+"/b", `{"spec":{"host":"new.example"}}`)
		apitest.Must(t, s, 200, "PATCH", apitest.SitesPath+"/a", `{"metadata":{"finalizers":null}}`)
		apitest.Must(t, other, 200, "PATCH", apitest.SitesPath+"/b", `{"spec":{"host":"new.example","main":true}}`)
		apitest.Must(t, s, 200, "DELETE", apitest.SitesPath, "")
		apitest.Must(t, s, 200, "DELETE", second, "")
		require.Empty(t, reserved(t, store))
	})
}

// TestUniqueRace: of concurrent writers on servers whose watches lag, exactly one gets a value, and a
// writer that requests a free value gets it.
func TestUniqueRace(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, inner storage.Backend) {
		const writers = 64
		store := apitest.KeepOpen{Backend: inner}
		t.Cleanup(func() { require.NoError(t, inner.Close()) })
		servers := []*servertest.Server{servertest.New(t, withSites(store)), servertest.New(t, withSites(store))}
		do := func(i int, method, path, body string) int {
			code, _ := apitest.Call(t, servers[i%2], method, path, body)
			return code
		}
		named := func(i int) string { return fmt.Sprint("s", i) }
		codes := atOnce(writers, func(i int) int { return do(i, "POST", apitest.SitesPath, site(named(i), `{"host":"h"}`)) })
		require.Equal(t, map[int]int{201: 1, 422: writers - 1}, codes)
		atOnce(writers, func(i int) int { return do(i, "DELETE", apitest.SitesPath+"/"+named(i), "") })
		require.Empty(t, reserved(t, store))

		codes = atOnce(writers, func(i int) int { return do(i, "POST", apitest.SitesPath, site("same", `{"host":"h"}`)) })
		require.Equal(t, map[int]int{201: 1, 409: writers - 1}, codes)
		apitest.Must(t, servers[0], 200, "DELETE", apitest.SitesPath+"/same", "")

		codes = atOnce(writers, func(i int) int {
			return do(i, "POST", apitest.SitesPath, site(named(i), fmt.Sprintf(`{"host":%q}`, named(i))))
		})
		require.Equal(t, map[int]int{201: writers}, codes)
		for round := range 3 { // all change at once, half of them to what the other half gives up
			codes = atOnce(writers, func(i int) int {
				host := fmt.Sprint("round", round, ".", i/2)
				return do(i, "PATCH", apitest.SitesPath+"/"+named(i), fmt.Sprintf(`{"spec":{"host":%q}}`, host))
			})
			require.Equal(t, map[int]int{200: writers / 2, 422: writers / 2}, codes)
			hosts := map[string]bool{}
			for _, v := range apitest.Must(t, servers[1], 200, "GET", apitest.SitesPath, "").List("items") {
				hosts[meta.NewObject(v.(map[string]any)).String("spec", "host")] = true
			}
			require.Len(t, hosts, writers)
			require.Len(t, reserved(t, store), writers)
		}
		codes = atOnce(writers, func(i int) int { // one that goes is followed by one that comes
			if i%2 == 0 {
				return do(i, "DELETE", apitest.SitesPath+"/"+named(i), "")
			}
			return do(i, "POST", apitest.SitesPath, site("n"+named(i), fmt.Sprintf(`{"host":%q}`, "n"+named(i))))
		})
		require.Equal(t, map[int]int{200: writers / 2, 201: writers / 2}, codes)
		require.Len(t, reserved(t, store), writers)
	})
}

// TestUniqueAndAllocatedValuesAreSeparate: unique values and allocated values do not collide,
// even if they are equal.
func TestUniqueAndAllocatedValuesAreSeparate(t *testing.T) {
	t.Parallel()
	store := apitest.KeepOpen{Backend: memstore.New(memstore.Options{})}
	pool := &registry.Allocator{
		Values: func(o *meta.Object) []string { return []string{fmt.Sprint(o.Int("spec", "port"))} },
		Allocate: func(a *registry.Allocation) ([]meta.StatusCause, error) {
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
		b.Register(registry.Of(registry.Definition[apitest.Site]{Group: "example.com", Version: "v1", Allocator: pool}))
	})
	for i := range 3 {
		apitest.Must(t, s, 201, "POST", apitest.SitesPath, site(fmt.Sprint("s", i), fmt.Sprintf(`{"host":"%d"}`, i+1)))
	}
	apitest.Must(t, s, 422, "POST", apitest.SitesPath, site("other", `{"host":"2"}`))
	got := apitest.Must(t, s, 201, "POST", apitest.SitesPath, site("other", `{"host":"4"}`))
	assert.Equal(t, int64(4), got.Int("spec", "port"))
	assert.Len(t, reserved(t, store), 8)
	apitest.Must(t, s, 200, "DELETE", apitest.SitesPath, "")
	require.Empty(t, reserved(t, store))
}

// TestUniqueThroughVersions: a value is unique regardless of the version in which it is written, and a
// violation has the path of the field in the hub version.
func TestUniqueThroughVersions(t *testing.T) {
	t.Parallel()
	type old struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Host            string `json:"host,omitempty"`
	}
	for _, stored := range []string{"v1", "v1beta1"} {
		store := apitest.KeepOpen{Backend: memstore.New(memstore.Options{})}
		s := servertest.New(t, apitest.WithStorage(store), func(b *server.Builder) {
			b.Register(registry.Of(registry.Definition[apitest.Site]{
				Group: "example.com", Version: "v1", Storage: stored,
				Versions: []registry.VersionOf[apitest.Site]{registry.Spoke[old, apitest.Site]{
					Version: "v1beta1",
					ToHub:   func(in *old, out *apitest.Site) error { out.Spec.Host = in.Host; return nil },
					FromHub: func(in *apitest.Site, out *old) error { out.Host = in.Spec.Host; return nil },
				}},
			}))
		})
		older := strings.Replace(apitest.SitesPath, "v1", "v1beta1", 1)
		flat := func(name, host string) string {
			return fmt.Sprintf(`{"apiVersion":"example.com/v1beta1","kind":"Site","metadata":{"name":%q},"host":%q}`, name, host)
		}
		apitest.Must(t, s, 201, "POST", older, flat("a", "a.example"))
		apitest.Must(t, s, 201, "POST", apitest.SitesPath, site("b", `{"host":"b.example","aliases":["x"]}`))
		duplicate(t, apitest.Must(t, s, 422, "POST", older, flat("c", "b.example")), "spec.host", `"b.example"`)
		duplicate(t, apitest.Must(t, s, 422, "POST", apitest.SitesPath, site("c", `{"host":"a.example"}`)), "spec.host", `"a.example"`)
		apitest.Must(t, s, 200, "PATCH", older+"/b", `{"host":"c.example"}`)
		duplicate(t, apitest.Must(t, s, 422, "POST", apitest.SitesPath, site("c", `{"aliases":["x"]}`)), "spec.aliases[0]", `"x"`)
		apitest.Must(t, s, 201, "POST", apitest.SitesPath, site("c", `{"host":"b.example"}`))
		apitest.Must(t, s, 200, "DELETE", older, "")
		require.Empty(t, reserved(t, store))
	}
}

// TestUniqueAmongOldObjects: objects keep the values that they had before the field became unique. The
// server logs objects that share a value, and their other fields can still be changed.
func TestUniqueAmongOldObjects(t *testing.T) {
	t.Parallel()
	store := apitest.KeepOpen{Backend: memstore.New(memstore.Options{})}
	first := servertest.New(t, func(b *server.Builder) {
		b.Storage = store
		b.Register(registry.Of(registry.Definition[apitest.UntypedSite]{Group: "example.com", Version: "v1", Kind: "Site"}))
	})
	for name, host := range map[string]string{"a": "h", "b": "both", "c": "both"} {
		apitest.Must(t, first, 201, "POST", apitest.SitesPath, site(name, fmt.Sprintf(`{"host":%q}`, host)))
	}
	left := resource.ReservationKey(meta.GroupResource{Group: "example.com", Resource: "sites"}, "unique/default/spec.gone=h")
	_, err := store.Commit(t.Context(), storage.Write{Key: left, Value: []byte("sites.example.com/default/a 1")})
	require.NoError(t, err)
	log := &apitest.LogBuffer{}
	s := servertest.New(t, withSites(store), func(b *server.Builder) { b.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	assert.Contains(t, log.String(), "two objects hold the same unique value")
	assert.Contains(t, log.String(), `spec.host=both`)
	assert.NotContains(t, log.String(), `spec.host=h`)
	require.Len(t, reserved(t, store), 2)

	apitest.Must(t, s, 422, "POST", apitest.SitesPath, site("d", `{"host":"h"}`))
	apitest.Must(t, s, 422, "POST", apitest.SitesPath, site("d", `{"host":"both"}`))
	for _, name := range []string{"b", "c"} {
		apitest.Must(t, s, 200, "PATCH", apitest.SitesPath+"/"+name, `{"metadata":{"labels":{"a":"b"}}}`)
	}
	apitest.Must(t, s, 200, "DELETE", apitest.SitesPath+"/b", "")
	apitest.Must(t, s, 422, "POST", apitest.SitesPath, site("d", `{"host":"both"}`))
	apitest.Must(t, s, 422, "PATCH", apitest.SitesPath+"/a", `{"spec":{"host":"both"}}`)
	apitest.Must(t, s, 200, "PATCH", apitest.SitesPath+"/c", `{"spec":{"host":"free"}}`)
	apitest.Must(t, s, 201, "POST", apitest.SitesPath, site("d", `{"host":"both"}`))
	require.Len(t, reserved(t, store), 3)

	log = &apitest.LogBuffer{}
	servertest.New(t, withSites(store), func(b *server.Builder) { b.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	assert.Empty(t, log.String())
	require.Len(t, reserved(t, store), 3)
}

// TestUnreadableObjectKeepsUniqueValue: the unique value of an object that cannot be read stays
// reserved until the object is deleted.
func TestUnreadableObjectKeepsUniqueValue(t *testing.T) {
	t.Parallel()
	inner := memstore.New(memstore.Options{})
	store := faultinject.Wrap(apitest.KeepOpen{Backend: inner}, nil)
	s := servertest.New(t, withSites(apitest.KeepOpen{Backend: store}))
	apitest.Must(t, s, 201, "POST", apitest.SitesPath, site("a", `{"host":"h"}`))
	key := "sites.example.com/default/a"
	rec, err := inner.Get(context.Background(), key, 0)
	require.NoError(t, err)
	store.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Key == key && c.At == rec.Revision {
			return faultinject.Fault{Err: &storage.DamagedError{Key: key, Revision: rec.Revision, Err: storage.ErrClosed}}
		}
		return faultinject.Fault{}
	})
	later := servertest.New(t, withSites(apitest.KeepOpen{Backend: store}))
	duplicate(t, apitest.Must(t, later, 422, "POST", apitest.SitesPath, site("b", `{"host":"h"}`)), "spec.host", `"h"`)
	apitest.Must(t, later, 200, "DELETE", apitest.SitesPath+"/a", "")
	apitest.Must(t, later, 201, "POST", apitest.SitesPath, site("b", `{"host":"h"}`))
}

// TestReservationFindsObjectOfAnyName: a writer that meets a reservation finds the object that
// holds the value, for every name that the kind allows.
func TestReservationFindsObjectOfAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", "with a space", " ", "x "} {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		s := servertest.New(t, apitest.WithStorage(store), func(b *server.Builder) {
			b.Register(registry.Of(registry.Definition[apitest.Site]{Group: "example.com", Version: "v1", ValidateName: meta.NameChecker(meta.CheckPathSegment)}))
		})
		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpGet && strings.HasPrefix(c.Key, resource.ReservationPrefix) {
				store.SetPlan(nil)
				apitest.Must(t, s, 201, "POST", apitest.SitesPath, site(name, `{"host":"h"}`)) // after the look for duplicates
			}
			return faultinject.Fault{}
		})
		duplicate(t, apitest.Must(t, s, 422, "POST", apitest.SitesPath, site("other", `{"host":"h"}`)), "spec.host", `"h"`)
	}
}

// TestReservationsOfOtherReleases: reservations stay while a release whose kind has no unique fields
// serves the store, and are released when the objects are deleted, by either release.
func TestReservationsOfOtherReleases(t *testing.T) {
	t.Parallel()
	inner := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, inner.Close()) })
	store := apitest.KeepOpen{Backend: inner}
	newer := servertest.New(t, withSites(store))
	apitest.Must(t, newer, 201, "POST", apitest.SitesPath, site("a", `{"host":"h","aliases":["x"]}`))
	apitest.Must(t, newer, 201, "POST", apitest.SitesPath, site("b", `{"host":"i"}`))
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
		return servertest.New(t, apitest.WithStorage(store), func(b *server.Builder) {
			b.Register(registry.Of(registry.Definition[apitest.UntypedSite]{Group: "example.com", Version: "v1", Kind: "Site"}))
		})
	}
	apitest.Must(t, older(), 200, "DELETE", apitest.SitesPath+"/b", "")
	apitest.Must(t, newer, 201, "POST", apitest.SitesPath, site("c", `{"host":"j"}`))
	older()
	got := reserved(t, store)
	require.Len(t, got, 4)
	for _, kept := range []string{key("example.com", "h"), key("example.com", "j"), key("other.example.com", "there")} {
		require.Contains(t, got, kept)
	}
	duplicate(t, apitest.Must(t, newer, 422, "POST", apitest.SitesPath, site("d", `{"host":"h"}`)), "spec.host", `"h"`)
	apitest.Must(t, newer, 201, "POST", apitest.SitesPath, site("d", `{"host":"i"}`))
}
