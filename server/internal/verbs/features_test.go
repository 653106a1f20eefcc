package verbs_test

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
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

const attachments = "/apis/storage.k8s.io/v1/volumeattachments"

// claimOf returns a claim with additional fields in its spec.
func claimOf(name, more string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"5Gi"}}` + more + `}}`
}

// show returns the observable effects of a feature, to be compared with its gate on and off.
type show func(a *apitest.Client) []any

// gates has a row for each gate of the documents, and for those that the server has beside
// them: a release in which it may be set, and what requests come to, on and off.
var gates = []struct {
	gate, release string
	show          show
	on, off       []any
}{
	{features.APIListChunking, "1.24", func(a *apitest.Client) []any {
		for _, name := range []string{"a", "b", "c"} {
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(name))
		}
		page := a.Must(200, "GET", apitest.ConfigMapsPath+"?limit=1", nil).Body
		again := a.Do("GET", apitest.ConfigMapsPath+"?continue=nonsense", nil)
		a.Must(200, "DELETE", apitest.ConfigMapsPath+"?limit=1", nil)
		left := a.Must(200, "GET", apitest.ConfigMapsPath, nil).Body
		return []any{len(page["items"].([]any)), apitest.NestedString(page, "metadata", "continue") != "", again.Code, len(left["items"].([]any))}
	}, []any{1, true, 400, 2}, []any{3, false, 200, 0}},

	{features.RemainingItemCount, "1.24", func(a *apitest.Client) []any {
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("b"))
		return []any{a.Must(200, "GET", apitest.ConfigMapsPath+"?limit=1", nil).Body["metadata"].(map[string]any)["remainingItemCount"]}
	}, []any{1.0}, []any{nil}},

	{features.APIResponseCompression, "1.36", func(a *apitest.Client) []any {
		return []any{a.Must(200, "GET", "/api/v1/namespaces", nil, "Accept-Encoding", "gzip").Header.Get("Content-Encoding")}
	}, []any{"gzip"}, []any{""}},

	{features.WatchBookmark, "1.16", func(a *apitest.Client) []any {
		return []any{strings.Contains(string(a.Must(200, "GET", apitest.ConfigMapsPath+"?watch=1&allowWatchBookmarks=1&timeoutSeconds=1", nil).Raw), "BOOKMARK")}
	}, []any{true}, []any{false}},

	{features.WatchList, "1.36", func(a *apitest.Client) []any {
		res := a.Do("GET", apitest.ConfigMapsPath+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&timeoutSeconds=1", nil)
		return []any{res.Code, strings.Contains(string(res.Raw), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")}
	}, []any{200, false}, []any{422, true}},

	{features.AnyVolumeDataSource, "1.24", func(a *apitest.Client) []any {
		image := a.Must(201, "POST", claims, claimOf("any", `,"dataSourceRef":{"apiGroup":"example.com","kind":"Image","name":"i"}`)).Body
		old := a.Must(201, "POST", claims, claimOf("old", `,"dataSource":{"kind":"PersistentVolumeClaim","name":"any"}`)).Body
		return []any{apitest.NestedString(image, "spec", "dataSource", "kind"), apitest.NestedString(image, "spec", "dataSourceRef", "kind"), apitest.NestedString(old, "spec", "dataSource", "kind"), apitest.NestedString(old, "spec", "dataSourceRef", "kind")}
	}, []any{"Image", "Image", "PersistentVolumeClaim", "PersistentVolumeClaim"}, []any{"", "", "PersistentVolumeClaim", ""}},

	{features.CrossNamespaceVolumeDataSource, "1.36", func(a *apitest.Client) []any {
		ref := `,"dataSourceRef":{"apiGroup":"example.com","kind":"Image","name":"i","namespace":"other"}`
		far := a.Must(201, "POST", claims, claimOf("far", ref)).Body
		both := a.Do("POST", claims, claimOf("both", ref+`,"dataSource":{"kind":"PersistentVolumeClaim","name":"c"}`))
		return []any{apitest.NestedString(far, "spec", "dataSourceRef", "namespace"), apitest.NestedString(far, "spec", "dataSource", "kind"), both.Code}
	}, []any{"other", "", 422}, []any{"", "", 201}},

	{features.RecoverVolumeExpansionFailure, "1.32", func(a *apitest.Client) []any {
		a.Must(201, "POST", claims, claimOf("c", `,"volumeName":"v","storageClassName":"s"`))
		a.Must(201, "POST", "/apis/storage.k8s.io/v1/storageclasses", `{"metadata":{"name":"s"},"provisioner":"p","allowVolumeExpansion":true}`)
		status := a.Must(200, "PATCH", claims+"/c/status", `{"status":{"phase":"Bound","capacity":{"storage":"2Gi"},"allocatedResources":{"storage":"5Gi"},"resizeStatus":"x","allocatedResourceStatuses":{"storage":"NodeResizePending"}}}`).Body["status"].(map[string]any)
		less := a.Do("PATCH", claims+"/c", `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
		return []any{len(status), less.Code, strings.Contains(string(less.Raw), "spec.resources.requests.storage: Forbidden: field can not be less than previous value"),
			a.Do("PATCH", claims+"/c", `{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`).Code}
	}, []any{5, 200, false, 422}, []any{2, 422, true, 422}},

	{features.ExpandCSIVolumes, "1.16", func(a *apitest.Client) []any {
		v := a.Must(201, "POST", volumes, `{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"5Gi"},
			"csi":{"driver":"d","volumeHandle":"h","controllerExpandSecretRef":{"name":"s","namespace":"n"}}}}`).Body
		return []any{apitest.NestedString(v, "spec", "csi", "controllerExpandSecretRef", "name"), apitest.NestedString(v, "spec", "csi", "driver")}
	}, []any{"s", "d"}, []any{"", "d"}},

	{features.HPAScaleToZero, "1.37", func(a *apitest.Client) []any {
		scaler := func(metrics string) apitest.Response {
			return a.Do("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", `{"metadata":{"name":"h"},"spec":{"minReplicas":0,"maxReplicas":3,
				"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}`+metrics+`}}`)
		}
		return []any{scaler("").Code, scaler(`,"metrics":[{"type":"External","external":{"metric":{"name":"m"},"target":{"type":"Value","value":"1"}}}]`).Code}
	}, []any{422, 201}, []any{422, 422}},

	{features.CSIMigration, "1.17", func(a *apitest.Client) []any {
		v := a.Do("POST", attachments, `{"metadata":{"name":"a"},"spec":{"attacher":"d","nodeName":"n","source":{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"csi":{"driver":"d","volumeHandle":"h"}}}}}`)
		return []any{v.Code, strings.Contains(string(v.Raw), "must specify exactly one of inlineVolumeSpec and persistentVolumeName")}
	}, []any{201, false}, []any{422, true}},
}

// TestFeatureGates: each gate has its documented effect, on and off.
func TestFeatureGates(t *testing.T) {
	t.Parallel()
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
				assert.Equal(t, want, row.show(apitest.InProcess(t, s)))
			})
		}
	}
	seen[features.ExcludeAdmissionWebhookVirtualResources] = true // see TestReviewsAreExempt of package webhook
	for _, f := range gatedFields {
		seen[f.gate] = true // see TestFieldsOfDisabledFeatures
	}
	for _, g := range features.Gates() {
		assert.True(t, seen[g.Name], "%s has no row", g.Name)
	}
}

// restarts returns a function that starts a server over the objects of the previous one.
func restarts(t *testing.T) func(configure func(*server.Builder)) *apitest.Client {
	store := memstore.New(memstore.Options{})
	return func(configure func(*server.Builder)) *apitest.Client {
		return apitest.InProcess(t, servertest.New(t, configure, func(b *server.Builder) {
			store = store.Fork()
			b.Storage = store
		}))
	}
}

// volumeFeatures returns a function that starts such a server with features of claims on or off.
func volumeFeatures(t *testing.T) func(on bool) *apitest.Client {
	restart := restarts(t)
	return func(on bool) *apitest.Client {
		return restart(func(b *server.Builder) {
			b.Release, b.Features = "1.24", map[string]bool{features.AnyVolumeDataSource: on, features.RecoverVolumeExpansionFailure: on}
		})
	}
}

// TestFieldsOfDisabledFeatureAreKept: an object keeps the fields of a feature that is disabled, but no other object
// can get them. They are still there when the feature is enabled again.
func TestFieldsOfDisabledFeatureAreKept(t *testing.T) {
	t.Parallel()
	build := volumeFeatures(t)
	a := build(true)
	const ref = `,"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x"}`
	a.Must(201, "POST", claims, claimOf("has", ref))
	a.Must(200, "PATCH", claims+"/has/status", `{"status":{"allocatedResources":{"storage":"5Gi"}}}`)

	a = build(false)
	a.Must(201, "POST", claims, claimOf("hasnot", ref))
	source := func(name string) string {
		return apitest.NestedString(a.Must(200, "GET", claims+"/"+name, nil).Body, "spec", "dataSourceRef", "name")
	}
	assert.Equal(t, "x", source("has"))
	assert.Empty(t, source("hasnot"))
	for _, name := range []string{"has", "hasnot"} {
		a.Must(200, "PATCH", claims+"/"+name, `{"metadata":{"labels":{"a":"b"}}}`)
		a.Must(200, "PATCH", claims+"/"+name+"/status", `{"status":{"allocatedResources":{"storage":"6Gi"}}}`)
	}
	assert.Equal(t, "x", source("has"))
	has, hasnot := a.Must(200, "GET", claims+"/has", nil).Body, a.Must(200, "GET", claims+"/hasnot", nil).Body
	assert.Equal(t, "6Gi", apitest.NestedString(has, "status", "allocatedResources", "storage"))
	assert.NotContains(t, hasnot["status"], "allocatedResources")

	a = build(true)
	assert.Equal(t, "x", source("has"))
	a.Must(200, "PATCH", claims+"/hasnot", `{"metadata":{"labels":{"a":"c"}}}`) // the validation rules also see the unchanged spec
}

// TestDroppedFieldsHaveNoOwner: a manager does not own a field that was dropped.
func TestDroppedFieldsHaveNoOwner(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) {
		b.Release, b.Features = "1.24", map[string]bool{features.AnyVolumeDataSource: false}
	})
	c := apitest.InProcess(t, s).Must(201, "POST", claims, claimOf("c", `,"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x"}`))
	assert.Contains(t, string(c.Raw), "f:accessModes")
	assert.NotContains(t, string(c.Raw), "f:dataSourceRef")
}

func signals() *registry.Kind {
	return registry.Of(registry.Definition[apitest.Signal]{Group: "example.com", Version: "v1", Scope: registry.Cluster,
		Default: func(w *registry.Change[apitest.Signal]) {
			if w.Features.Enabled("Blink") && w.New.Color == "" {
				w.New.Color = "yellow"
			}
		}})
}

// TestGatesOfEmbeddingProgram: a gate of the embedding program drops fields of its kinds. Hooks and the program can
// read it, before and after Build. Two servers in a process do not share gates.
func TestGatesOfEmbeddingProgram(t *testing.T) {
	t.Parallel()
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
		a := apitest.NewClient(t, "http://in-process", &http.Client{Transport: s.Transport()})
		made := a.Must(201, "POST", "/apis/example.com/v1/signals", `{"metadata":{"name":"s"}}`).Body
		assert.Equal(t, want, []any{made["color"], made["every"]})
		got := a.Must(200, "PATCH", "/apis/example.com/v1/signals/s", `{"every":9}`).Body
		assert.Equal(t, map[bool]any{false: nil, true: 9.0}[on], got["every"])
		line := `orch_feature_enabled{name="Blink",stage="ALPHA"} ` + map[bool]string{false: "0", true: "1"}[on]
		assert.Contains(t, string(a.Must(200, "GET", "/metrics", nil).Raw), line)
	}
}

// TestInvalidGatesFailBuild: Build reports each invalid gate with its place.
func TestInvalidGatesFailBuild(t *testing.T) {
	t.Parallel()
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
		`kind Signal.example.com, version "v1": unknown feature gate "Blink" of a field; did you mean "Blnk"?`,
	} {
		assert.ErrorContains(t, err, want)
	}
	b = &server.Builder{Authorizer: auth.AllowAll, Release: "new"}
	_, err = b.Build(t.Context())
	assert.ErrorContains(t, err, `Release: invalid release "new"`)
}

// TestFeatureGatesInMetricsAndLog: feature gates are in the metrics with their stages, and setting
// one without effect is logged.
func TestFeatureGatesInMetricsAndLog(t *testing.T) {
	t.Parallel()
	log := &apitest.LogBuffer{}
	s := servertest.New(t, func(b *server.Builder) {
		b.Release = "1.34"
		b.Features = map[string]bool{features.AnyVolumeDataSource: true, features.WatchList: false, "AllAlpha": true}
		b.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	lines := string(apitest.InProcess(t, s).Must(200, "GET", "/metrics", nil).Raw)
	for _, want := range []string{
		`kubernetes_feature_enabled{name="AnyVolumeDataSource",stage=""} 1`,
		`kubernetes_feature_enabled{name="WatchList",stage="BETA"} 0`,
		`kubernetes_feature_enabled{name="APIResponseCompression",stage="BETA"} 1`,
		`kubernetes_feature_enabled{name="CrossNamespaceVolumeDataSource",stage="ALPHA"} 1`,
	} {
		assert.Contains(t, lines, want+"\n")
	}
	assert.NotContains(t, lines, `name="APIListChunking"`, "the gate does not exist in this release")
	assert.Contains(t, log.String(), `msg="the feature gate is deprecated: it has no effect and will be removed; remove the setting" gate=AnyVolumeDataSource set=true`)
	assert.NotContains(t, log.String(), "WatchList")
}

// formerSignal is a Signal with a different shape.
type formerSignal struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	Color  string `json:"color,omitempty"`
	Period *int   `json:"period,omitempty" schema:"gate=Flash"`
}

// TestGatesOfOlderVersions: a version with a different shape has its own gates, for fields that do not have a gate in
// the hub.
func TestGatesOfOlderVersions(t *testing.T) {
	t.Parallel()
	restart := restarts(t)
	build := func(on bool) *apitest.Client {
		return restart(func(b *server.Builder) {
			b.Gates, b.Features = []features.Gate{{Name: "Blink", Beta: "0.0"}, {Name: "Flash", Beta: "0.0"}}, map[string]bool{"Flash": on}
			k := registry.Of(registry.Definition[apitest.Signal]{Group: "example.com", Version: "v1", Scope: registry.Cluster,
				Versions: []registry.VersionOf[apitest.Signal]{registry.Spoke[formerSignal, apitest.Signal]{Version: "v1beta1",
					ToHub: func(in *formerSignal, out *apitest.Signal) error {
						out.Color, out.Every = in.Color, in.Period
						return nil
					},
					FromHub: func(in *apitest.Signal, out *formerSignal) error {
						out.Color, out.Period = in.Color, in.Every
						return nil
					},
				}}})
			b.Register(k)
		})
	}
	const now, former = "/apis/example.com/v1/signals", "/apis/example.com/v1beta1/signals"
	a := build(true)
	a.Must(201, "POST", former, `{"metadata":{"name":"has"},"color":"red","period":7}`)
	a = build(false)
	period := func(body map[string]any) any { return body["period"] }
	assert.Equal(t, 3.0, period(a.Must(201, "POST", former, `{"metadata":{"name":"hasnot"},"color":"red","period":7}`).Body), "the default of the hub")
	assert.Equal(t, 8.0, period(a.Must(200, "PATCH", former+"/has", `{"period":8}`).Body), "an object that has the field keeps it")
	assert.Equal(t, 9.0, a.Must(200, "PATCH", now+"/hasnot", `{"every":9}`).Body["every"], "only the older version has the gate")
}

// TestApplyDoesNotOwnDroppedFields: a manager that applies a field of a disabled feature owns it
// in no version, and keeps what it owned before.
func TestApplyDoesNotOwnDroppedFields(t *testing.T) {
	t.Parallel()
	build := volumeFeatures(t)
	apply := func(a *apitest.Client, code int, name, more string) apitest.Response {
		body := `{"apiVersion":"v1","kind":"PersistentVolumeClaim",` + claimOf(name, more)[1:]
		return a.Must(code, "PATCH", claims+"/"+name+"?fieldManager=m", body, "Content-Type", "application/apply-patch+yaml")
	}
	const ref = `,"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x"}`
	a := build(true)
	assert.Contains(t, string(apply(a, 201, "has", ref).Raw), "f:dataSourceRef")
	a = build(false)
	first := apply(a, 201, "hasnot", ref)
	assert.Contains(t, string(first.Raw), "f:accessModes")
	assert.NotContains(t, string(first.Raw), "dataSourceRef")
	assert.Equal(t, first.ResourceVersion(), apply(a, 200, "hasnot", ref).ResourceVersion(), "applying the same again must not change the object")
	has := apply(a, 200, "has", ref)
	assert.Contains(t, string(has.Raw), "f:dataSourceRef")
	assert.Equal(t, "x", apitest.NestedString(has.Body, "spec", "dataSourceRef", "name"))
	body := `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"hasnot"},"status":{"phase":"Bound","allocatedResources":{"storage":"6Gi"}}}`
	status := a.Must(200, "PATCH", claims+"/hasnot/status?fieldManager=m", body, "Content-Type", "application/apply-patch+yaml")
	assert.Contains(t, string(status.Raw), "f:phase")
	assert.NotContains(t, string(status.Raw), "llocatedResources")
}
