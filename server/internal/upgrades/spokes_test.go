package upgrades_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/registrytest"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

var gadgetVersions = []string{"v1alpha1", "v1", "v2"}

// The spec of the same gadget in each version.
func gadgetSpecs(t *testing.T, a *apitest.Client, name string) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, v := range gadgetVersions {
		got := a.Must(200, "GET", gadgetPath(v, name), nil)
		require.Equal(t, "example.com/"+v, got.Body["apiVersion"])
		out[v], _ = apitest.Nested(got.Body, "spec").(map[string]any)
	}
	return out
}

// TestWritesInEveryVersionKeepUnrepresentableFields: writes by every verb in every version, over
// each storage version, keep the fields that the version cannot represent.
func TestWritesInEveryVersionKeepUnrepresentableFields(t *testing.T) {
	t.Parallel()
	for _, stored := range gadgetVersions {
		t.Run(stored, func(t *testing.T) {
			a := gadgetServer(t, memstore.New(memstore.Options{}), stored)
			whole := func(name string) map[string]any {
				a.Must(201, "POST", gadgetPath("v2", ""), strings.Replace(fullGadget, "NAME", name, 1))
				return gadgetSpecs(t, a, name)["v2"]
			}
			for _, v := range gadgetVersions {
				size := map[string]string{"v1alpha1": "count", "v1": "replicas", "v2": "size"}[v]
				ports, key := "ports", "name"
				if v == "v1alpha1" {
					ports, key = "doors", "title"
				}
				changed := func(spec map[string]any) map[string]any { // as it is to be in v2
					spec = maps.Clone(spec)
					spec["size"] = 5.0
					spec["ports"] = append([]any{map[string]any{"name": "new", "number": 1.0}}, spec["ports"].([]any)[1:]...)
					return spec
				}
				newPorts := fmt.Sprintf(`[{%q:"new","number":1},{%q:"dns","number":53PROTOCOL}]`, key, key)
				newPorts = strings.Replace(newPorts, "PROTOCOL", map[bool]string{true: "", false: `,"protocol":"UDP"`}[v == "v1alpha1"], 1)
				for verb, write := range map[string]func(name string, body map[string]any){
					"put": func(name string, body map[string]any) {
						spec := body["spec"].(map[string]any)
						spec[size] = 5
						spec[ports] = json.RawMessage(newPorts)
						a.Must(200, "PUT", gadgetPath(v, name), body)
					},
					"merge": func(name string, _ map[string]any) {
						a.Must(200, "PATCH", gadgetPath(v, name), fmt.Sprintf(`{"spec":{%q:5,%q:%s}}`, size, ports, newPorts))
					},
					"json": func(name string, _ map[string]any) {
						a.Must(200, "PATCH", gadgetPath(v, name), fmt.Sprintf(`[{"op":"replace","path":"/spec/%s","value":5},{"op":"replace","path":"/spec/%s","value":%s}]`, size, ports, newPorts),
							"Content-Type", "application/json-patch+json")
					},
					"strategic": func(name string, _ map[string]any) {
						a.Must(200, "PATCH", gadgetPath(v, name), fmt.Sprintf(`{"spec":{%q:5,%q:%s}}`, size, ports, newPorts), "Content-Type", "application/strategic-merge-patch+json")
					},
				} {
					name := v + "-" + verb
					before := whole(name)
					same := a.Must(200, "GET", gadgetPath(v, name), nil)
					again := a.Must(200, "PUT", gadgetPath(v, name), same.Raw)
					require.Equal(t, same.ResourceVersion(), again.ResourceVersion(), "%s: what was read is no change", name)
					write(name, same.Body)
					assert.Equal(t, changed(before), gadgetSpecs(t, a, name)["v2"], name)
				}
			}
		})
	}
}

// TestVersionsApply: an apply in an older version does not remove fields that the version lacks, conflicts
// are found across versions, and a manager that switches to another version keeps its fields.
func TestVersionsApply(t *testing.T) {
	t.Parallel()
	for _, stored := range gadgetVersions {
		t.Run(stored, func(t *testing.T) {
			a := gadgetServer(t, memstore.New(memstore.Options{}), stored)
			apply := func(code int, v, manager, spec string) apitest.Response {
				return a.Must(code, "PATCH", gadgetPath(v, "g")+"?fieldManager="+manager, `{"apiVersion":"example.com/`+v+`","kind":"Gadget","metadata":{"name":"g"},"spec":`+spec+`}`,
					"Content-Type", "application/apply-patch+yaml")
			}
			apply(201, "v2", "new", `{"access":{"host":"h","minVersion":"1.3"},"notes":["x"],"ports":[{"name":"web","number":80,"protocol":"TCP"}]}`)
			apply(200, "v1", "old", `{"replicas":2,"ports":[{"name":"dns","number":53}]}`)
			spec := gadgetSpecs(t, a, "g")["v2"]
			assert.Equal(t, "1.3", apitest.NestedString(spec, "access", "minVersion"))
			assert.Len(t, spec["ports"], 2)

			refused := apply(409, "v1alpha1", "oldest", `{"count":7,"doors":[{"title":"web","number":81}]}`)
			assert.ElementsMatch(t, []string{".spec.replicas FieldManagerConflict", `.spec.ports[name="web"].number FieldManagerConflict`}, refused.Causes())
			refused = apply(409, "v1", "old", `{"replicas":2,"host":"other","ports":[{"name":"dns","number":53}]}`)
			assert.Equal(t, []string{".spec.access.host FieldManagerConflict"}, refused.Causes())

			// The same manager in a newer version: only fields that it omits are removed.
			apply(200, "v2", "old", `{"size":2,"tuning":{"a":"b"}}`)
			spec = gadgetSpecs(t, a, "g")["v2"]
			assert.EqualValues(t, 2, spec["size"])
			assert.Equal(t, []any{map[string]any{"name": "web", "number": 80.0, "protocol": "TCP"}}, spec["ports"])
			assert.Equal(t, "1.3", apitest.NestedString(spec, "access", "minVersion"))
			assert.Equal(t, []any{"x"}, spec["notes"])

			// The same in an older version: fields that the version lacks are kept and get no owner.
			apply(200, "v1alpha1", "new", `{"doors":[{"title":"web","number":80}]}`)
			spec = gadgetSpecs(t, a, "g")["v2"]
			assert.Equal(t, []any{map[string]any{"name": "web", "number": 80.0, "protocol": "TCP"}}, spec["ports"])
			assert.Equal(t, map[string]any{"a": "b"}, spec["tuning"])
			assert.Equal(t, "1.3", apitest.NestedString(spec, "access", "minVersion"))

			// An update in one version takes ownership from an applier in another.
			a.Must(200, "PATCH", gadgetPath("v1alpha1", "g")+"?fieldManager=hand", `{"spec":{"count":9}}`)
			assert.Equal(t, []string{".spec.count FieldManagerConflict"}, apply(409, "v1alpha1", "old", `{"count":2}`).Causes())
			owned := map[string]string{}
			for _, e := range apitest.Nested(a.Must(200, "GET", gadgetPath("v2", "g"), nil).Body, "metadata", "managedFields").([]any) {
				owned[apitest.NestedString(e, "manager")] = apitest.NestedString(e, "apiVersion")
			}
			assert.Equal(t, map[string]string{"new": "example.com/v1alpha1", "old": "example.com/v2", "hand": "example.com/v1alpha1"}, owned)
		})
	}
}

// TestSubresourcesActOnHub: status and scale are those of the hub, in every version of the
// request.
func TestSubresourcesActOnHub(t *testing.T) {
	t.Parallel()
	for _, stored := range gadgetVersions {
		t.Run(stored, func(t *testing.T) {
			a := gadgetServer(t, memstore.New(memstore.Options{}), stored)
			a.Must(201, "POST", gadgetPath("v2", ""), strings.Replace(fullGadget, "NAME", "g", 1))
			want := gadgetSpecs(t, a, "g")["v2"]
			a.Must(200, "PATCH", gadgetPath("v2", "g/status"), `{"status":{"ready":1,"reason":"slow"}}`)
			got := a.Must(200, "PATCH", gadgetPath("v1alpha1", "g/status"), `{"status":{"readyCount":2},"spec":{"count":50}}`)
			assert.Equal(t, map[string]any{"readyCount": 2.0}, got.Body["status"])
			for i, v := range gadgetVersions {
				scale := a.Must(200, "GET", gadgetPath(v, "g/scale"), nil)
				assert.EqualValues(t, 3+i, apitest.Nested(scale.Body, "spec", "replicas"))
				assert.EqualValues(t, 2, apitest.Nested(scale.Body, "status", "replicas"))
				a.Must(200, "PATCH", gadgetPath(v, "g/scale")+"?fieldManager=by-"+v, fmt.Sprintf(`{"spec":{"replicas":%d}}`, 4+i))
			}
			want["size"] = 6.0
			now := a.Must(200, "GET", gadgetPath("v2", "g"), nil)
			assert.Equal(t, want, now.Body["spec"])
			assert.Equal(t, map[string]any{"ready": 2.0, "reason": "slow"}, now.Body["status"])
			var last any
			for _, e := range apitest.Nested(now.Body, "metadata", "managedFields").([]any) {
				if apitest.NestedString(e, "manager") == "by-v2" {
					last = apitest.Nested(e, "fieldsV1", "f:spec", "f:size")
				}
			}
			assert.NotNil(t, last)
			applied := a.Must(200, "PATCH", gadgetPath("v1", "g/scale")+"?fieldManager=applier&force=true", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"g"},"spec":{"replicas":9}}`,
				"Content-Type", "application/apply-patch+yaml")
			assert.EqualValues(t, 9, apitest.Nested(applied.Body, "spec", "replicas"))
		})
	}
}

// TestDefaultsOfTheVersionRulesOfTheHub: the requested version provides the defaults and the hub
// the validation rules.
func TestDefaultsOfTheVersionRulesOfTheHub(t *testing.T) {
	t.Parallel()
	a := gadgetServer(t, memstore.New(memstore.Options{}), "v1")
	a.Must(201, "POST", gadgetPath("v1", ""), `{"metadata":{"name":"a"},"spec":{}}`)
	a.Must(201, "POST", gadgetPath("v1alpha1", ""), `{"metadata":{"name":"b"},"spec":{}}`)
	assert.Equal(t, map[string]any{"mode": "manual", "checked": true}, gadgetSpecs(t, a, "a")["v2"])
	assert.Equal(t, map[string]any{"mode": "auto", "size": 1.0, "checked": true}, gadgetSpecs(t, a, "b")["v2"])
	assert.Equal(t, []string{"spec.size FieldValueInvalid"}, a.Must(422, "PATCH", gadgetPath("v1", "a"), `{"spec":{"replicas":101}}`).Causes())
	for _, v := range gadgetVersions { // a selector selects the same in every version
		assert.Equal(t, []string{"a"}, a.Must(200, "GET", gadgetPath(v, "")+"?fieldSelector=spec.mode%3Dmanual", nil).Names(), v)
	}
	for v, want := range map[string]string{"v1alpha1": "[Name Count]", "v1": "[Name Size Notes]", "v2": "[Name Size Notes]"} {
		table := a.Must(200, "GET", gadgetPath(v, "b"), nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		var names []string
		for _, c := range table.Body["columnDefinitions"].([]any) {
			names = append(names, apitest.NestedString(c, "name"))
		}
		assert.Equal(t, want, fmt.Sprint(names), v)
		row := table.Body["rows"].([]any)[0]
		assert.EqualValues(t, 1, apitest.Nested(row, "cells").([]any)[1], v)
		assert.Equal(t, "PartialObjectMetadata", apitest.NestedString(row, "object", "kind"), v)
	}
}

// TestConversionFailureNamesObject: if a conversion refuses the object of a request, the answer
// is a client error. A stored object that cannot be converted is named in the error, and lists
// omit nothing.
func TestConversionFailureNamesObject(t *testing.T) {
	t.Parallel()
	a := gadgetServer(t, memstore.New(memstore.Options{}), "v2")
	got := a.Must(400, "POST", gadgetPath("v1", ""), `{"metadata":{"name":"a"},"spec":{"host":"unspeakable"}}`)
	assert.Equal(t, `Gadget in version "v1" cannot be handled as a Gadget: spec.host: nobody may be called so`, got.Body["message"])
	a.Must(500, "POST", gadgetPath("v1", ""), `{"metadata":{"name":"a"},"spec":{"host":"panic"}}`)
	a.Must(201, "POST", gadgetPath("v1", ""), `{"metadata":{"name":"a"},"spec":{}}`)
	events := a.Watch(gadgetPath("v1", "") + "?watch=true")
	assert.Equal(t, "ADDED a", events.Next().String())
	a.Must(201, "POST", gadgetPath("v2", ""), `{"metadata":{"name":"b"},"spec":{"notes":["only in v2"]}}`)
	for _, path := range []string{gadgetPath("v1", "b"), gadgetPath("v1", "")} {
		for _, accept := range []string{"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf,application/json", "application/yaml"} {
			got := a.Do("GET", path, nil, "Accept", accept)
			assert.Equal(t, 500, got.Code, "%s %s", path, accept)
			assert.Contains(t, string(got.Raw), `of version example.com/v2 cannot be converted`)
		}
	}
	got = a.Must(500, "GET", gadgetPath("v1", ""), nil)
	assert.Equal(t, `Internal error occurred: gadgets.example.com "b" of version example.com/v2 cannot be converted to example.com/v1: spec.notes: v1 cannot say this`, got.Body["message"])
	failed := events.Next()
	assert.Equal(t, "ERROR", failed.Type)
	assert.Contains(t, failed.Object["message"], `gadgets.example.com "b"`)
	a.Must(500, "PATCH", gadgetPath("v1", "b"), `{"spec":{"host":"x"}}`)
	a.Must(200, "GET", gadgetPath("v1alpha1", ""), nil)
	a.Must(200, "DELETE", gadgetPath("v2", "b"), nil)
	a.Must(200, "GET", gadgetPath("v1", ""), nil)
}

// TestEveryVersionHasItsOwnEvents: a watch delivers the events of a change in the version of the
// watch, in every encoding.
func TestEveryVersionHasItsOwnEvents(t *testing.T) {
	t.Parallel()
	a := gadgetServer(t, memstore.New(memstore.Options{}), "v1")
	watches := map[string]*apitest.Watcher{}
	for _, v := range gadgetVersions {
		watches[v] = a.Watch(gadgetPath(v, "") + "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	}
	a.Must(201, "POST", gadgetPath("v2", ""), strings.Replace(fullGadget, "NAME", "g", 1))
	a.Must(200, "PATCH", gadgetPath("v1alpha1", "g"), `{"spec":{"count":4}}`)
	a.Must(200, "DELETE", gadgetPath("v1", "g"), nil)
	for v, w := range watches {
		for _, want := range []string{"BOOKMARK", "ADDED", "MODIFIED", "DELETED"} {
			e := w.Next()
			assert.Equal(t, want, e.Type, v)
			assert.Equal(t, "example.com/"+v, e.Object["apiVersion"], v)
		}
	}
}

// TestControllersAndAdmissionSeeTheHub: controllers, the in-process client and admission see
// objects in the hub version; admission also sees the requested version.
func TestControllersAndAdmissionSeeTheHub(t *testing.T) {
	t.Parallel()
	resource := meta.GroupResource{Group: "example.com", Resource: "gadgets"}
	var asked, seen []string
	var mu sync.Mutex
	note := func(list *[]string, o *meta.Object) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, o.APIVersion()+" "+o.Kind())
	}
	var c client.Client
	s := servertest.New(t, func(b *server.Builder) {
		c = b.Client()
		b.Register(registry.Of(gadgets("v1alpha1")))
		b.Controllers = []client.Controller{{
			Name: "test", Types: []meta.GroupResource{resource},
			MapEvent: func(e client.Event) []string {
				note(&seen, e.Object)
				return nil
			},
			Reconcile: func(context.Context, client.Client, string) (time.Duration, error) { return 0, nil },
		}}
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "Test", Rules: []admission.Rule{{Groups: []string{"example.com"}, Resources: []string{"gadgets"}}},
			Mutate: func(_ context.Context, r *admission.Request) error {
				note(&asked, r.Object)
				assert.Equal(t, "v2", r.Kind.Version)
				assert.Equal(t, "v1", r.RequestKind.Version)
				assert.Equal(t, "v1", r.RequestResource.Version)
				if r.Old != nil {
					note(&asked, r.Old)
				}
				return nil
			},
		})
	})
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", gadgetPath("v1", ""), `{"metadata":{"name":"g"},"spec":{"host":"h"}}`)
	a.Must(200, "PATCH", gadgetPath("v1", "g"), `{"spec":{"replicas":2}}`)
	s.Settle()
	got, err := c.Get(t.Context(), resource, meta.Key{Namespace: "default", Name: "g"})
	require.NoError(t, err)
	assert.Equal(t, "h", got.String("spec", "access", "host"))
	list, err := c.List(t.Context(), resource, "")
	require.NoError(t, err)
	assert.Equal(t, "example.com/v2", list[0].APIVersion())
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, slices.Repeat([]string{"example.com/v2 Gadget"}, 3), asked)
	assert.NotEmpty(t, seen)
	assert.NotContains(t, strings.Join(seen, " "), "v1")
}

// TestVersionsAreDescribed: each version has its own document and protobuf form.
func TestVersionsAreDescribed(t *testing.T) {
	t.Parallel()
	a := gadgetServer(t, memstore.New(memstore.Options{}), "v1alpha1")
	for v, field := range map[string]string{"v1alpha1": "count", "v1": "replicas", "v2": "size"} {
		doc := a.Must(200, "GET", "/openapi/v3/apis/example.com/"+v, nil)
		assert.Contains(t, string(doc.Raw), fmt.Sprintf("%q:{", field), v)
		for other, no := range map[string]string{"v1alpha1": "count", "v1": "replicas", "v2": "size"} {
			if other != v && no != "replicas" { // which is a field of Scale, too
				assert.NotContains(t, string(doc.Raw), fmt.Sprintf("%q:{", no), v)
			}
		}
		a.Must(201, "POST", gadgetPath(v, ""), fmt.Sprintf(`{"metadata":{"name":%q},"spec":{%q:7}}`, v, field))
	}
	for _, v := range gadgetVersions {
		list := a.Must(200, "GET", gadgetPath(v, ""), nil, "Accept", "application/vnd.kubernetes.protobuf")
		apiVersion, kind, _, err := codec.OpenEnvelope(list.Raw)
		require.NoError(t, err)
		assert.Equal(t, "example.com/"+v+" GadgetList", apiVersion+" "+kind)
		one := a.Must(200, "GET", gadgetPath(v, "v2"), nil, "Accept", "application/vnd.kubernetes.protobuf")
		a.Must(200, "PUT", gadgetPath(v, "v2"), one.Raw, "Content-Type", "application/vnd.kubernetes.protobuf")
	}
	assert.EqualValues(t, 7, gadgetSpecs(t, a, "v2")["v1alpha1"]["count"])
}

func TestGadgetsRoundTrip(t *testing.T) {
	t.Parallel()
	registrytest.RoundTrip(t, registry.Of(gadgets("v1")))
}

// TestVersionsWrittenTogether: concurrent writers of one object in different versions lose none of each
// other's changes, even if their writes share a commit.
func TestVersionsWrittenTogether(t *testing.T) {
	t.Parallel()
	store, err := badgerstore.Open(badgerstore.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	a := gadgetServer(t, store, "v1alpha1")
	a.Must(201, "POST", gadgetPath("v2", ""), strings.Replace(fullGadget, "NAME", "g", 1))
	want := gadgetSpecs(t, a, "g")["v2"]
	var writers sync.WaitGroup
	for _, v := range gadgetVersions {
		for i := range 10 {
			writers.Go(func() {
				assert.Equal(t, 200, a.Do("PATCH", gadgetPath(v, "g"), fmt.Sprintf(`{"metadata":{"labels":{"%s-%d":"x"}}}`, v, i)).Code)
			})
		}
	}
	writers.Wait()
	got := a.Must(200, "GET", gadgetPath("v2", "g"), nil)
	assert.Equal(t, want, got.Body["spec"])
	assert.Len(t, apitest.Nested(got.Body, "metadata", "labels"), 31)
}

// TestObjectsSurviveChangesOfStorageVersion: a directory that was written in any storage
// version, or in several successively, has all objects with all fields.
func TestObjectsSurviveChangesOfStorageVersion(t *testing.T) {
	t.Parallel()
	store, err := badgerstore.Open(badgerstore.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer store.Close()
	for i, stored := range []string{"v1alpha1", "v2", "v1", "v1alpha1", "v2"} {
		a := gadgetServer(t, apitest.KeepOpen{Backend: store}, stored)
		a.Must(201, "POST", gadgetPath("v2", ""), strings.Replace(fullGadget, "NAME", fmt.Sprint("g", i), 1))
		list := a.Must(200, "GET", gadgetPath("v2", ""), nil)
		require.Len(t, list.Names(), i+1)
		for _, item := range list.Body["items"].([]any) {
			assert.Equal(t, "1.3", apitest.NestedString(item, "spec", "access", "minVersion"))
			assert.Equal(t, []any{"x", "y"}, apitest.Nested(item, "spec", "notes"))
			assert.Nil(t, apitest.Nested(item, "metadata", "annotations"))
		}
		for j := range i + 1 { // whoever writes them stores them anew
			if j%2 == 0 {
				a.Must(200, "PATCH", gadgetPath("v1", fmt.Sprint("g", j)), fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i))
				rec, err := store.Get(t.Context(), "gadgets.example.com/default/"+fmt.Sprint("g", j), 0)
				require.NoError(t, err)
				assert.Equal(t, "example.com/"+stored, apitest.ParseObject(t, string(rec.Value))["apiVersion"])
			}
		}
	}
}

// TestOlderReleaseKeepsUnknownFields: a release that knows only the storage version changes an
// object; fields that it does not know are kept.
func TestOlderReleaseKeepsUnknownFields(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	a := gadgetServer(t, apitest.KeepOpen{Backend: store}, "v1")
	a.Must(201, "POST", gadgetPath("v2", ""), strings.Replace(fullGadget, "NAME", "g", 1))
	want := gadgetSpecs(t, a, "g")["v2"]
	key := "gadgets.example.com/default/g"
	rec, err := store.Get(t.Context(), key, 0)
	require.NoError(t, err)
	record := apitest.ParseObject(t, string(rec.Value))
	require.Equal(t, "h", apitest.NestedString(record, "spec", "host"))
	record["spec"].(map[string]any)["replicas"] = 8
	text, _ := json.Marshal(record)
	_, err = store.Commit(t.Context(), storage.Write{Key: key, Value: text, Expect: rec.Revision})
	require.NoError(t, err)
	want["size"] = 8.0
	a = gadgetServer(t, apitest.KeepOpen{Backend: store}, "v1")
	assert.Equal(t, want, gadgetSpecs(t, a, "g")["v2"])
}

// TestUnknownStoredVersion: a record in an unknown version is reported as unreadable, not skipped.
func TestUnknownStoredVersion(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	a := gadgetServer(t, apitest.KeepOpen{Backend: store}, "v1")
	_, err := store.Commit(context.Background(), storage.Write{Key: "gadgets.example.com/default/g",
		Value: []byte(`{"apiVersion":"example.com/v3","kind":"Gadget","metadata":{"name":"g","namespace":"default","uid":"u"},"spec":{}}`)})
	require.NoError(t, err)
	for _, v := range gadgetVersions {
		require.Eventually(t, func() bool { return a.Do("GET", gadgetPath(v, ""), nil).Code == 500 }, apitest.Timeout, time.Millisecond)
		assert.Contains(t, string(a.Must(500, "GET", gadgetPath(v, "g"), nil).Raw), "g")
	}
}
