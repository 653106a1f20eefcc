package upgrades_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestExplicitDefaultsAreStored: a value that the client sends is stored even if it is the default
// in the request's version; an omitted field changes nothing.
func TestExplicitDefaultsAreStored(t *testing.T) {
	t.Parallel()
	const body = `{"apiVersion":"example.com/v1alpha1","kind":"Gadget","metadata":{"name":"b"},"spec":{"count":1}}`
	for verb, write := range map[string]func(*apitest.Client) apitest.Response{
		"put": func(a *apitest.Client) apitest.Response { return a.Must(200, "PUT", gadgetPath("v1alpha1", "b"), body) },
		"patch": func(a *apitest.Client) apitest.Response {
			return a.Must(200, "PATCH", gadgetPath("v1alpha1", "b"), `{"spec":{"count":1}}`)
		},
		"apply": func(a *apitest.Client) apitest.Response {
			return a.Must(200, "PATCH", gadgetPath("v1alpha1", "b")+"?fieldManager=m&force=true", body, "Content-Type", "application/apply-patch+yaml")
		},
	} {
		t.Run(verb, func(t *testing.T) {
			a := gadgetServer(t, memstore.New(memstore.Options{}), "v2")
			a.Must(201, "POST", gadgetPath("v2", ""), `{"metadata":{"name":"b"},"spec":{}}`)
			a.Must(200, "PATCH", gadgetPath("v1alpha1", "b"), `{"metadata":{"labels":{"a":"b"}}}`)
			assert.Nil(t, gadgetSpecs(t, a, "b")["v2"]["size"], "nobody said it")
			assert.Equal(t, map[string]any{"count": 1.0}, write(a).Body["spec"])
			assert.EqualValues(t, 1, gadgetSpecs(t, a, "b")["v2"]["size"])
		})
	}
}

// Gauge is a kind with an older version that gets a field in a later release.
type Gauge struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            GaugeSpec `json:"spec,omitempty"`
}

type GaugeSpec struct {
	Size int32  `json:"size,omitempty" schema:"max=10"`
	Mode string `json:"mode,omitempty"`
}

// GaugeV1 is the storage version of gauges.
type GaugeV1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            struct {
		Size int32 `json:"size,omitempty"`
	} `json:"spec,omitempty"`
}

const gaugePath = "/apis/example.com/%s/namespaces/default/gauges"

func gaugeServer(t *testing.T, store storage.Backend, k *registry.Kind) *apitest.Client {
	return apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), func(b *server.Builder) { b.Register(k) }))
}

// firstGauges is a release with a single version; the other releases have two.
func firstGauges() *registry.Kind {
	return registry.Of(registry.Definition[GaugeV1]{Group: "example.com", Kind: "Gauge", Version: "v1"})
}

func gauges() *registry.Kind {
	return registry.Of(registry.Definition[Gauge]{Group: "example.com", Version: "v2", Storage: "v1", Versions: []registry.VersionOf[Gauge]{
		registry.Spoke[GaugeV1, Gauge]{
			Version: "v1",
			ToHub:   func(in *GaugeV1, out *Gauge) error { out.Spec.Size = in.Spec.Size; return nil },
			FromHub: func(in *Gauge, out *GaugeV1) error { out.Spec.Size = in.Spec.Size; return nil },
		},
	}})
}

// nextGauges is a release whose v1 has a field for the mode.
func nextGauges() *registry.Kind {
	return registry.Of(registry.Definition[Gauge]{Group: "example.com", Version: "v2", Storage: "v1", Versions: []registry.VersionOf[Gauge]{
		registry.Spoke[Gauge, Gauge]{
			Version: "v1",
			ToHub:   func(in *Gauge, out *Gauge) error { out.Spec = in.Spec; return nil },
			FromHub: func(in *Gauge, out *Gauge) error { out.Spec = in.Spec; return nil },
		},
	}})
}

const gauge = `{"apiVersion":"example.com/v2","kind":"Gauge","metadata":{"name":"g"},"spec":{"size":1,"mode":"x"}}`

// TestConversionsChange: a release that adds a field to an older version reads objects that were stored
// before without a change.
func TestConversionsChange(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	want := map[string]any{"size": 1.0, "mode": "x"}
	v2 := fmt.Sprintf(gaugePath, "v2")
	a := gaugeServer(t, store, gauges())
	a.Must(201, "POST", v2, gauge)
	a = gaugeServer(t, store, nextGauges())
	assert.Equal(t, want, a.Must(200, "GET", v2+"/g", nil).Body["spec"])
	a.Must(200, "PATCH", v2+"/g", `{"metadata":{"labels":{"a":"b"}}}`)
	a = gaugeServer(t, store, gauges())
	got := a.Must(200, "GET", v2+"/g", nil)
	assert.Equal(t, 1.0, apitest.Nested(got.Body, "spec", "size"))
	assert.Equal(t, "b", apitest.NestedString(got.Body, "metadata", "labels", "a"))
}

// TestOlderServerKeepsHubFields: a server of a release that knows a single version changes an
// object, which may be large. Fields that this release does not know are kept.
func TestOlderServerKeepsHubFields(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]string{"small": "x", "large": strings.Repeat("x", 300<<10)} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(memstore.Options{})
			defer store.Close()
			v1, v2 := fmt.Sprintf(gaugePath, "v1"), fmt.Sprintf(gaugePath, "v2")
			a := gaugeServer(t, store, gauges())
			a.Must(201, "POST", v2, strings.Replace(gauge, `"x"`, `"`+mode+`"`, 1))
			a = gaugeServer(t, store, firstGauges())
			a.Must(200, "PATCH", v1+"/g", `{"metadata":{"labels":{"a":"b"}}}`)
			a.Must(200, "PUT", v1+"/g", `{"apiVersion":"example.com/v1","kind":"Gauge","metadata":{"name":"g"},"spec":{"size":2}}`)
			a = gaugeServer(t, store, gauges())
			assert.Equal(t, map[string]any{"size": 2.0, "mode": mode}, a.Must(200, "GET", v2+"/g", nil).Body["spec"])
		})
	}
}

// TestClientsCannotWriteTheStoredHubForm: a field that a client puts in the place of the stored
// hub form is neither stored nor owned and does no harm to a later release.
func TestClientsCannotWriteTheStoredHubForm(t *testing.T) {
	t.Parallel()
	for _, planted := range []string{`{"apiVersion":"example.com/v2","kind":"Gauge","spec":{"size":999}}`, `{"of":"","hub":{"apiVersion":"example.com/v2","spec":{"size":999}}}`, `{`} {
		store := memstore.New(memstore.Options{})
		defer store.Close()
		text, _ := json.Marshal(planted)
		annotated := `"annotations":{"kubernetes.io/hub-form":` + string(text) + `}`
		v1, v2 := fmt.Sprintf(gaugePath, "v1"), fmt.Sprintf(gaugePath, "v2")
		body := `{"apiVersion":"example.com/v1","kind":"Gauge","metadata":{"name":"NAME",` + annotated + `},"spec":{"size":1}}`
		write := func(a *apitest.Client) {
			for _, got := range []apitest.Response{
				a.Must(201, "POST", v1, strings.Replace(body, "NAME", "g", 1)),
				a.Must(200, "PATCH", v1+"/g", `{"metadata":{`+annotated+`}}`),
				a.Must(201, "PATCH", v1+"/h?fieldManager=m", strings.Replace(body, "NAME", "h", 1), "Content-Type", "application/apply-patch+yaml"),
				a.Must(200, "PUT", v1+"/g", strings.Replace(body, "NAME", "g", 1)),
			} {
				assert.NotContains(t, string(got.Raw), "hub-form")
			}
		}
		write(gaugeServer(t, store, firstGauges()))
		a := gaugeServer(t, store, gauges())
		assert.Equal(t, []string{"g", "h"}, a.Must(200, "GET", v2, nil).Names())
		assert.Equal(t, map[string]any{"size": 1.0}, a.Must(200, "GET", v2+"/g", nil).Body["spec"])
		for _, name := range []string{"g", "h"} {
			a.Must(200, "DELETE", v2+"/"+name, nil)
		}
		write(a)
	}
}

// TestUnreadableHubForm: an unreadable hub copy is ignored.
func TestUnreadableHubForm(t *testing.T) {
	t.Parallel()
	for _, form := range []string{`{`, `[]`, `{"hub":5}`, `{"hub":{"apiVersion":"example.com/v9"}}`} {
		store := memstore.New(memstore.Options{})
		defer store.Close()
		text, _ := json.Marshal(form)
		_, err := store.Commit(t.Context(), storage.Write{Key: "gauges.example.com/default/g", Value: []byte(
			`{"apiVersion":"example.com/v1","kind":"Gauge","metadata":{"name":"g","namespace":"default","uid":"u","annotations":{"kubernetes.io/hub-form":` + string(text) + `}},"spec":{"size":1}}`)})
		require.NoError(t, err)
		got := gaugeServer(t, store, gauges()).Must(200, "GET", fmt.Sprintf(gaugePath, "v2")+"/g", nil)
		assert.Equal(t, map[string]any{"size": 1.0}, got.Body["spec"])
		assert.NotContains(t, string(got.Raw), "hub-form")
	}
}

// TestStorageVersionCannotSay: an object that the storage version cannot represent is stored in the hub
// version. It can be written and deleted, and so can its namespace.
func TestStorageVersionCannotSay(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	const unspeakable = `{"metadata":{"name":"b","finalizers":["example.com/x"]},"spec":{"notes":["only in v2"]}}`
	gadgetServer(t, apitest.KeepOpen{Backend: store}, "v2").Must(201, "POST", gadgetPath("v2", ""), unspeakable)
	a := gadgetServer(t, apitest.KeepOpen{Backend: store}, "v1")
	a.Must(200, "PATCH", gadgetPath("v2", "b"), `{"metadata":{"labels":{"a":"b"}}}`)
	assert.Equal(t, []any{"only in v2"}, gadgetNotes(a, "b"))
	a.Must(201, "POST", gadgetPath("v2", "")+"?dryRun=All", strings.Replace(unspeakable, `"b"`, `"c"`, 1))
	a.Must(201, "POST", gadgetPath("v2", ""), strings.Replace(unspeakable, `"b"`, `"c"`, 1))
	assert.Equal(t, []any{"only in v2"}, gadgetNotes(a, "c"))
	for _, name := range []string{"b", "c"} {
		a.Must(200, "DELETE", gadgetPath("v2", name), nil)
		a.Must(200, "PATCH", gadgetPath("v2", name), `{"metadata":{"finalizers":null}}`)
		a.Must(404, "GET", gadgetPath("v2", name), nil)
	}
	in := func(path string) string { return strings.Replace(path, "default", "gone", 1) }
	a.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"gone"}}`)
	a.Must(201, "POST", in(gadgetPath("v2", "")), strings.Replace(unspeakable, `"finalizers":["example.com/x"]`, `"labels":{}`, 1))
	a.Must(200, "DELETE", "/api/v1/namespaces/gone", nil)
	require.Eventually(t, func() bool { return a.Do("GET", "/api/v1/namespaces/gone", nil).Code == 404 }, apitest.Timeout, time.Millisecond)
}

func gadgetNotes(a *apitest.Client, name string) any {
	return apitest.Nested(a.Must(200, "GET", gadgetPath("v2", name), nil).Body, "spec", "notes")
}

// TestUnrepresentableWriteFailsAlone: a write that the storage version cannot represent does not
// fail the other queued writers of the object.
func TestUnrepresentableWriteFailsAlone(t *testing.T) {
	t.Parallel()
	a := gadgetServer(t, memstore.New(memstore.Options{}), "v1")
	a.Must(201, "POST", gadgetPath("v2", ""), `{"metadata":{"name":"b"},"spec":{"size":1}}`)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 10 {
				body := fmt.Sprintf(`{"metadata":{"labels":{"l%d":"%d"}}}`, i, j)
				if i == 0 {
					body = fmt.Sprintf(`{"spec":{"notes":["only in v2","%d"]}}`, j)
				}
				assert.Equal(t, 200, a.Do("PATCH", gadgetPath("v2", "b"), body).Code)
			}
		})
	}
	all.Wait()
}

// TestDeletionIsAnswered: a deletion succeeds in a version that cannot represent the object.
func TestDeletionIsAnswered(t *testing.T) {
	t.Parallel()
	a := gadgetServer(t, memstore.New(memstore.Options{}), "v2")
	a.Must(201, "POST", gadgetPath("v2", ""), `{"metadata":{"name":"b","finalizers":["example.com/x"]},"spec":{"notes":["only in v2"]}}`)
	for range 2 {
		got := a.Must(200, "DELETE", gadgetPath("v1", "b"), nil)
		assert.Equal(t, "Success", got.Body["status"])
		assert.NotEmpty(t, apitest.NestedString(got.Body, "details", "uid"))
		a.Must(200, "PATCH", gadgetPath("v2", "b"), `{"metadata":{"labels":{"a":"b"}}}`)
	}
	a.Must(200, "PATCH", gadgetPath("v2", "b"), `{"metadata":{"finalizers":null}}`)
	a.Must(404, "GET", gadgetPath("v2", "b"), nil)
}

// TestWriteWhoseResultCannotBeShownIsRefused: an object that admission changed so that the
// request's version cannot represent it is not stored.
func TestWriteWhoseResultCannotBeShownIsRefused(t *testing.T) {
	t.Parallel()
	a := gadgetServer(t, memstore.New(memstore.Options{}), "v2", func(b *server.Builder) {
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "Test", Rules: []admission.Rule{{Groups: []string{"example.com"}, Resources: []string{"gadgets"}}},
			Mutate: func(_ context.Context, r *admission.Request) error {
				if r.Object != nil && r.Object.Labels()["hide"] != "" {
					r.Object.Set([]any{"only in v2"}, "spec", "notes")
				}
				return nil
			},
		})
	})
	before := a.Must(201, "POST", gadgetPath("v1", ""), `{"metadata":{"name":"a"},"spec":{}}`)
	for _, query := range []string{"?dryRun=All", ""} {
		a.Must(500, "POST", gadgetPath("v1", "")+query, `{"metadata":{"name":"b","labels":{"hide":"it"}},"spec":{}}`)
		a.Must(500, "PATCH", gadgetPath("v1", "a")+query, `{"metadata":{"labels":{"hide":"it"}}}`)
	}
	a.Must(404, "GET", gadgetPath("v2", "b"), nil)
	assert.Equal(t, before.ResourceVersion(), a.Must(200, "GET", gadgetPath("v1", "a"), nil).ResourceVersion())
}

// TestFieldOwnersInUnrepresentableVersionsAreKept: managed fields in a version that can no longer
// represent the object neither fail a write nor get lost.
func TestFieldOwnersInUnrepresentableVersionsAreKept(t *testing.T) {
	t.Parallel()
	const unspeakable = `{"apiVersion":"example.com/v2","kind":"Gadget","metadata":{"name":"b"},"spec":{"notes":["only in v2"]}}`
	for name, write := range map[string]func(*apitest.Client) apitest.Response{
		"patch": func(a *apitest.Client) apitest.Response {
			return a.Must(200, "PATCH", gadgetPath("v2", "b")+"?fieldManager=new", unspeakable)
		},
		"apply": func(a *apitest.Client) apitest.Response {
			return a.Must(200, "PATCH", gadgetPath("v2", "b")+"?fieldManager=new&force=true", unspeakable, "Content-Type", "application/apply-patch+yaml")
		},
		"apply by the same": func(a *apitest.Client) apitest.Response {
			return a.Must(200, "PATCH", gadgetPath("v2", "b")+"?fieldManager=applier&force=true", unspeakable, "Content-Type", "application/apply-patch+yaml")
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := gadgetServer(t, memstore.New(memstore.Options{}), "v2")
			a.Must(201, "POST", gadgetPath("v1", "")+"?fieldManager=old", `{"metadata":{"name":"b"},"spec":{"replicas":1,"host":"h"}}`)
			a.Must(200, "PATCH", gadgetPath("v1", "b")+"?fieldManager=applier", `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"b"},"spec":{"tuning":{"a":"b"}}}`,
				"Content-Type", "application/apply-patch+yaml")
			got := write(a)
			assert.Equal(t, []any{"only in v2"}, apitest.Nested(got.Body, "spec", "notes"))
			assert.Equal(t, "h", apitest.NestedString(got.Body, "spec", "access", "host"))
			for _, e := range apitest.Nested(got.Body, "metadata", "managedFields").([]any) {
				if apitest.NestedString(e, "manager") == "old" {
					assert.NotNil(t, apitest.Nested(e, "fieldsV1", "f:spec", "f:host"))
					return
				}
			}
			t.Error("the first owner is gone")
		})
	}
}

// TestConversionPanics: the log has the value and the stack of a panic in a conversion; the response has
// neither.
func TestConversionPanics(t *testing.T) {
	t.Parallel()
	log := &apitest.ErrorLog{}
	a := gadgetServer(t, memstore.New(memstore.Options{}), "v2", func(b *server.Builder) { b.Logger = slog.New(log) })
	got := a.Must(500, "POST", gadgetPath("v1", ""), `{"metadata":{"name":"b"},"spec":{"host":"panic"}}`)
	assert.Equal(t, `Internal error occurred: gadgets.example.com "b" of version example.com/v1 cannot be converted to example.com/v2: the conversion failed`, got.Body["message"])
	assert.Equal(t, "1", a.RecoveredPanics("conversion"))
	told := log.Take()
	require.Len(t, told, 1)
	assert.Contains(t, told[0], "gadgetFromV1(")
	assert.Contains(t, told[0], "on demand")
	assert.Contains(t, told[0], "path="+gadgetPath("v1", ""))
}

// TestConversionPanicsAreLimitedInLog: the panic values name the object, so each of the 100 panics is
// different. The log has ten of them.
func TestConversionPanicsAreLimitedInLog(t *testing.T) {
	t.Parallel()
	log := &apitest.ErrorLog{}
	a := gadgetServer(t, memstore.New(memstore.Options{}), "v2", func(b *server.Builder) { b.Logger = slog.New(log) })
	for i := range 100 {
		a.Must(500, "POST", gadgetPath("v1", ""), fmt.Sprintf(`{"metadata":{"name":"b%d"},"spec":{"host":"panic"}}`, i))
	}
	assert.Len(t, log.Take(), 10)
}
