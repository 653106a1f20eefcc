package server_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

const attachments = "/apis/storage.k8s.io/v1/volumeattachments"

// claimOf returns a claim with further fields of its spec.
func claimOf(name, more string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"5Gi"}}` + more + `}}`
}

// show is what a feature does, each a word or two, where its gate is on or off.
type show func(a *api) []any

// gates has a row for each gate of the documents, and for those that the server has beside
// them: a release in which it may be set, and what requests come to, on and off.
var gates = []struct {
	gate, release string
	show          show
	on, off       []any
}{
	{features.APIListChunking, "1.24", func(a *api) []any {
		for _, name := range []string{"a", "b", "c"} {
			a.must(201, "POST", configMaps, newConfigMap(name))
		}
		page := a.must(200, "GET", configMaps+"?limit=1", nil).body
		again := a.do("GET", configMaps+"?continue=nonsense", nil)
		a.must(200, "DELETE", configMaps+"?limit=1", nil)
		left := a.must(200, "GET", configMaps, nil).body
		return []any{len(page["items"].([]any)), text(page, "metadata", "continue") != "", again.code, len(left["items"].([]any))}
	}, []any{1, true, 400, 2}, []any{3, false, 200, 0}},

	{features.RemainingItemCount, "1.24", func(a *api) []any {
		a.must(201, "POST", configMaps, newConfigMap("a"))
		a.must(201, "POST", configMaps, newConfigMap("b"))
		return []any{a.must(200, "GET", configMaps+"?limit=1", nil).body["metadata"].(map[string]any)["remainingItemCount"]}
	}, []any{1.0}, []any{nil}},

	{features.APIResponseCompression, "1.36", func(a *api) []any {
		return []any{a.must(200, "GET", "/api/v1/namespaces", nil, "Accept-Encoding", "gzip").header.Get("Content-Encoding")}
	}, []any{"gzip"}, []any{""}},

	{features.WatchBookmark, "1.16", func(a *api) []any {
		return []any{strings.Contains(string(a.must(200, "GET", configMaps+"?watch=1&allowWatchBookmarks=1&timeoutSeconds=1", nil).raw), "BOOKMARK")}
	}, []any{true}, []any{false}},

	{features.WatchList, "1.36", func(a *api) []any {
		res := a.do("GET", configMaps+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&timeoutSeconds=1", nil)
		return []any{res.code, strings.Contains(string(res.raw), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")}
	}, []any{200, false}, []any{422, true}},

	{features.AnyVolumeDataSource, "1.24", func(a *api) []any {
		image := a.must(201, "POST", claims, claimOf("any", `,"dataSourceRef":{"apiGroup":"example.com","kind":"Image","name":"i"}`)).body
		old := a.must(201, "POST", claims, claimOf("old", `,"dataSource":{"kind":"PersistentVolumeClaim","name":"any"}`)).body
		return []any{text(image, "spec", "dataSource", "kind"), text(image, "spec", "dataSourceRef", "kind"), text(old, "spec", "dataSource", "kind"), text(old, "spec", "dataSourceRef", "kind")}
	}, []any{"Image", "Image", "PersistentVolumeClaim", "PersistentVolumeClaim"}, []any{"", "", "PersistentVolumeClaim", ""}},

	{features.CrossNamespaceVolumeDataSource, "1.36", func(a *api) []any {
		ref := `,"dataSourceRef":{"apiGroup":"example.com","kind":"Image","name":"i","namespace":"other"}`
		far := a.must(201, "POST", claims, claimOf("far", ref)).body
		both := a.do("POST", claims, claimOf("both", ref+`,"dataSource":{"kind":"PersistentVolumeClaim","name":"c"}`))
		return []any{text(far, "spec", "dataSourceRef", "namespace"), text(far, "spec", "dataSource", "kind"), both.code}
	}, []any{"other", "", 422}, []any{"", "", 201}},

	{features.RecoverVolumeExpansionFailure, "1.32", func(a *api) []any {
		a.must(201, "POST", claims, claimOf("c", `,"volumeName":"v","storageClassName":"s"`))
		a.must(201, "POST", "/apis/storage.k8s.io/v1/storageclasses", `{"metadata":{"name":"s"},"provisioner":"p","allowVolumeExpansion":true}`)
		status := a.must(200, "PATCH", claims+"/c/status", `{"status":{"phase":"Bound","capacity":{"storage":"2Gi"},"allocatedResources":{"storage":"5Gi"},"resizeStatus":"x","allocatedResourceStatuses":{"storage":"NodeResizePending"}}}`).body["status"].(map[string]any)
		less := a.do("PATCH", claims+"/c", `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
		return []any{len(status), less.code, strings.Contains(string(less.raw), "spec.resources.requests.storage: Forbidden: field can not be less than previous value"),
			a.do("PATCH", claims+"/c", `{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`).code}
	}, []any{5, 200, false, 422}, []any{2, 422, true, 422}},

	{features.ExpandCSIVolumes, "1.16", func(a *api) []any {
		v := a.must(201, "POST", volumes, `{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"5Gi"},
			"csi":{"driver":"d","volumeHandle":"h","controllerExpandSecretRef":{"name":"s","namespace":"n"}}}}`).body
		return []any{text(v, "spec", "csi", "controllerExpandSecretRef", "name"), text(v, "spec", "csi", "driver")}
	}, []any{"s", "d"}, []any{"", "d"}},

	{features.HPAScaleToZero, "1.37", func(a *api) []any {
		scaler := func(metrics string) answer {
			return a.do("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", `{"metadata":{"name":"h"},"spec":{"minReplicas":0,"maxReplicas":3,
				"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}`+metrics+`}}`)
		}
		return []any{scaler("").code, scaler(`,"metrics":[{"type":"External","external":{"metric":{"name":"m"},"target":{"type":"Value","value":"1"}}}]`).code}
	}, []any{422, 201}, []any{422, 422}},

	{features.CSIMigration, "1.17", func(a *api) []any {
		v := a.do("POST", attachments, `{"metadata":{"name":"a"},"spec":{"attacher":"d","nodeName":"n","source":{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"csi":{"driver":"d","volumeHandle":"h"}}}}}`)
		return []any{v.code, strings.Contains(string(v.raw), "must specify exactly one of inlineVolumeSpec and persistentVolumeName")}
	}, []any{201, false}, []any{422, true}},
}

// TestGates: each gate does what it says, on and off.
func TestGates(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range gates {
		seen[row.gate] = true
		for on, want := range map[bool][]any{true: row.on, false: row.off} {
			t.Run(row.gate+map[bool]string{true: " on", false: " off"}[on], func(t *testing.T) {
				t.Parallel()
				s := servertest.New(t, func(b *server.Builder) {
					b.Release, b.Features = row.release, map[string]bool{row.gate: on}
					b.Serving.GzipFrom = 1
					b.RunControllers = []string{"envtest"}
					b.AdmissionOptions.Disable = []string{"ServiceAccount"}
				})
				assert.Equal(t, want, row.show(inProcess(t, s)))
			})
		}
	}
	seen[features.ExcludeAdmissionWebhookVirtualResources] = true // see TestReviewsAreExempt of package webhook
	for _, f := range gatedFields {
		seen[f.gate] = true // see TestFieldsOfFeaturesThatAreOff
	}
	for _, g := range features.Gates() {
		assert.True(t, seen[g.Name], "%s has no row", g.Name)
	}
}

// restarts returns what makes a server over the objects that the last one left.
func restarts(t *testing.T) func(configure func(*server.Builder)) *api {
	store := memstore.New(memstore.Options{})
	return func(configure func(*server.Builder)) *api {
		return inProcess(t, servertest.New(t, configure, func(b *server.Builder) {
			store = store.Fork()
			b.Storage = store
		}))
	}
}

// volumeFeatures returns what makes such a server with features of claims on or off.
func volumeFeatures(t *testing.T) func(on bool) *api {
	restart := restarts(t)
	return func(on bool) *api {
		return restart(func(b *server.Builder) {
			b.Release, b.Features = "1.24", map[string]bool{features.AnyVolumeDataSource: on, features.RecoverVolumeExpansionFailure: on}
		})
	}
}

// TestFeatureSwitchedOff: what an object has of a feature stays when that is switched off,
// while others do not get it, and it is found where it was when the feature is on again.
func TestFeatureSwitchedOff(t *testing.T) {
	build := volumeFeatures(t)
	a := build(true)
	const ref = `,"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x"}`
	a.must(201, "POST", claims, claimOf("has", ref))
	a.must(200, "PATCH", claims+"/has/status", `{"status":{"allocatedResources":{"storage":"5Gi"}}}`)

	a = build(false)
	a.must(201, "POST", claims, claimOf("hasnot", ref))
	source := func(name string) string {
		return text(a.must(200, "GET", claims+"/"+name, nil).body, "spec", "dataSourceRef", "name")
	}
	assert.Equal(t, "x", source("has"))
	assert.Empty(t, source("hasnot"))
	for _, name := range []string{"has", "hasnot"} {
		a.must(200, "PATCH", claims+"/"+name, `{"metadata":{"labels":{"a":"b"}}}`)
		a.must(200, "PATCH", claims+"/"+name+"/status", `{"status":{"allocatedResources":{"storage":"6Gi"}}}`)
	}
	assert.Equal(t, "x", source("has"))
	has, hasnot := a.must(200, "GET", claims+"/has", nil).body, a.must(200, "GET", claims+"/hasnot", nil).body
	assert.Equal(t, "6Gi", text(has, "status", "allocatedResources", "storage"))
	assert.NotContains(t, hasnot["status"], "allocatedResources")

	a = build(true)
	assert.Equal(t, "x", source("has"))
	a.must(200, "PATCH", claims+"/hasnot", `{"metadata":{"labels":{"a":"c"}}}`) // the spec is as it was, for the rules, too
}

// TestDroppedFieldsHaveNoOwner: nobody owns what was not written.
func TestDroppedFieldsHaveNoOwner(t *testing.T) {
	s := servertest.New(t, func(b *server.Builder) {
		b.Release, b.Features = "1.24", map[string]bool{features.AnyVolumeDataSource: false}
	})
	c := inProcess(t, s).must(201, "POST", claims, claimOf("c", `,"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x"}`))
	assert.Contains(t, string(c.raw), "f:accessModes")
	assert.NotContains(t, string(c.raw), "f:dataSourceRef")
}

// Signal is a kind of a program with a feature of its own.
type Signal struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	Color string `json:"color,omitempty"`
	Every *int   `json:"every,omitempty" schema:"gate=Blink,default=3"`
}

func signals() *registry.Kind {
	return registry.Of(registry.Definition[Signal]{Group: "example.com", Version: "v1", Scope: registry.Cluster,
		Default: func(w *registry.Change[Signal]) {
			if w.Features.Enabled("Blink") && w.New.Color == "" {
				w.New.Color = "yellow"
			}
		}})
}

// TestGatesOfAProgram: a program's own gate drops fields of its kinds, hooks ask for it, and so
// does the program, before and after Build; two servers of a process do not share any.
func TestGatesOfAProgram(t *testing.T) {
	blink := features.Gate{Name: "Blink", Alpha: "0.0", Doc: "signals blink"}
	for on, want := range map[bool][]any{false: {nil, nil}, true: {"yellow", 3.0}} {
		b := &server.Builder{Authorizer: auth.AllowAll, Gates: []features.Gate{blink}, Features: map[string]bool{"Blink": on}}
		assert.Equal(t, on, b.Enabled("Blink"))
		b.Register(signals())
		s, err := b.Build(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
		assert.Equal(t, on, b.Enabled("Blink"))
		assert.False(t, b.Enabled("Nothing"))
		a := &api{t, "http://in-process", &http.Client{Transport: s.Transport()}}
		made := a.must(201, "POST", "/apis/example.com/v1/signals", `{"metadata":{"name":"s"}}`).body
		assert.Equal(t, want, []any{made["color"], made["every"]})
		got := a.must(200, "PATCH", "/apis/example.com/v1/signals/s", `{"every":9}`).body
		assert.Equal(t, map[bool]any{false: nil, true: 9.0}[on], got["every"])
		line := `orch_feature_enabled{name="Blink",stage="ALPHA"} ` + map[bool]string{false: "0", true: "1"}[on]
		assert.Contains(t, string(a.must(200, "GET", "/metrics", nil).raw), line)
	}
}

// TestGateFaults: what is wrong with gates fails Build, with its place.
func TestGateFaults(t *testing.T) {
	b := &server.Builder{Authorizer: auth.AllowAll, Release: "1.34",
		Features: map[string]bool{"WatchLits": true, features.AnyVolumeDataSource: false, features.ExpandCSIVolumes: false, features.CSIMigration: true},
		Gates:    []features.Gate{{Name: "Blnk", Beta: "0.0"}, {Name: "WatchList", Beta: "0.0"}}}
	b.Register(signals())
	_, err := b.Build(t.Context())
	for _, want := range []string{
		`Features["WatchLits"]: unknown feature gate; did you mean "WatchList"?`,
		`Features["AnyVolumeDataSource"]: the feature is stable since release 1.33 and cannot be turned off`,
		`Features["ExpandCSIVolumes"]: the gate was removed in release 1.27 and its feature is always on: remove the setting`,
		`Features["CSIMigration"]: the gate was removed in release 1.27 and its feature is always on: remove the setting`,
		`Gates[1] (WatchList): duplicate gate name`,
		`kind Signal.example.com, version "v1": a field has the gate "Blink", which the server does not have; did you mean "Blnk"?`,
	} {
		assert.ErrorContains(t, err, want)
	}
	b = &server.Builder{Authorizer: auth.AllowAll, Release: "new"}
	_, err = b.Build(t.Context())
	assert.ErrorContains(t, err, `Release: "new" is no release`)
}

// TestGatesAreTold: in metrics, by their stages, and in the log to who sets one in vain.
func TestGatesAreTold(t *testing.T) {
	log := &logs{}
	s := servertest.New(t, func(b *server.Builder) {
		b.Release = "1.34"
		b.Features = map[string]bool{features.AnyVolumeDataSource: true, features.WatchList: false, "AllAlpha": true}
		b.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	lines := string(inProcess(t, s).must(200, "GET", "/metrics", nil).raw)
	for _, want := range []string{
		`kubernetes_feature_enabled{name="AnyVolumeDataSource",stage=""} 1`,
		`kubernetes_feature_enabled{name="WatchList",stage="BETA"} 0`,
		`kubernetes_feature_enabled{name="APIResponseCompression",stage="BETA"} 1`,
		`kubernetes_feature_enabled{name="CrossNamespaceVolumeDataSource",stage="ALPHA"} 1`,
	} {
		assert.Contains(t, lines, want+"\n")
	}
	assert.NotContains(t, lines, `name="APIListChunking"`, "it is gone by then")
	assert.Contains(t, log.String(), `msg="the feature gate is deprecated: it has no effect and will be removed; remove the setting" gate=AnyVolumeDataSource set=true`)
	assert.NotContains(t, log.String(), "WatchList")
}

// formerSignal is a Signal of another shape.
type formerSignal struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	Color  string `json:"color,omitempty"`
	Period *int   `json:"period,omitempty" schema:"gate=Flash"`
}

// TestGatesOfOlderVersions: a version of another shape has gates of its own, of fields that
// the hub has without.
func TestGatesOfOlderVersions(t *testing.T) {
	restart := restarts(t)
	build := func(on bool) *api {
		return restart(func(b *server.Builder) {
			b.Gates, b.Features = []features.Gate{{Name: "Blink", Beta: "0.0"}, {Name: "Flash", Beta: "0.0"}}, map[string]bool{"Flash": on}
			k := registry.Of(registry.Definition[Signal]{Group: "example.com", Version: "v1", Scope: registry.Cluster,
				Versions: []registry.VersionOf[Signal]{registry.Spoke[formerSignal, Signal]{Version: "v1beta1",
					ToHub:   func(in *formerSignal, out *Signal) error { out.Color, out.Every = in.Color, in.Period; return nil },
					FromHub: func(in *Signal, out *formerSignal) error { out.Color, out.Period = in.Color, in.Every; return nil },
				}}})
			b.Register(k)
		})
	}
	const now, former = "/apis/example.com/v1/signals", "/apis/example.com/v1beta1/signals"
	a := build(true)
	a.must(201, "POST", former, `{"metadata":{"name":"has"},"color":"red","period":7}`)
	a = build(false)
	period := func(body map[string]any) any { return body["period"] }
	assert.Equal(t, 3.0, period(a.must(201, "POST", former, `{"metadata":{"name":"hasnot"},"color":"red","period":7}`).body), "the hub's default")
	assert.Equal(t, 8.0, period(a.must(200, "PATCH", former+"/has", `{"period":8}`).body), "an object that has it keeps it")
	assert.Equal(t, 9.0, a.must(200, "PATCH", now+"/hasnot", `{"every":9}`).body["every"], "the gate is the older version's alone")
}

// TestWhoAppliesOwnsNothingThatWasDropped: not the field, which he did not get, nor what
// another version calls it; and what he had before stays his.
func TestWhoAppliesOwnsNothingThatWasDropped(t *testing.T) {
	build := volumeFeatures(t)
	apply := func(a *api, code int, name, more string) answer {
		body := `{"apiVersion":"v1","kind":"PersistentVolumeClaim",` + claimOf(name, more)[1:]
		return a.must(code, "PATCH", claims+"/"+name+"?fieldManager=m", body, "Content-Type", "application/apply-patch+yaml")
	}
	const ref = `,"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x"}`
	a := build(true)
	assert.Contains(t, string(apply(a, 201, "has", ref).raw), "f:dataSourceRef")
	a = build(false)
	first := apply(a, 201, "hasnot", ref)
	assert.Contains(t, string(first.raw), "f:accessModes")
	assert.NotContains(t, string(first.raw), "dataSourceRef")
	assert.Equal(t, first.version(), apply(a, 200, "hasnot", ref).version(), "to apply the same again changes nothing")
	has := apply(a, 200, "has", ref)
	assert.Contains(t, string(has.raw), "f:dataSourceRef")
	assert.Equal(t, "x", text(has.body, "spec", "dataSourceRef", "name"))
	body := `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"hasnot"},"status":{"phase":"Bound","allocatedResources":{"storage":"6Gi"}}}`
	status := a.must(200, "PATCH", claims+"/hasnot/status?fieldManager=m", body, "Content-Type", "application/apply-patch+yaml")
	assert.Contains(t, string(status.raw), "f:phase")
	assert.NotContains(t, string(status.raw), "llocatedResources")
}
