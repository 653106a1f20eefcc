package upgrades_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestFormerScales: versions with a Scale kind of their own accept and return that kind, and discovery
// lists it; all other versions use autoscaling/v1.
func TestFormerScales(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.15")
	for _, c := range []struct{ version, plural, more string }{
		{"extensions/v1beta1", "deployments", ""},
		{"extensions/v1beta1", "replicasets", ""},
		{"apps/v1beta1", "deployments", ""},
		{"apps/v1beta1", "statefulsets", `,"serviceName":"s"`},
		{"apps/v1beta2", "deployments", ""},
		{"apps/v1beta2", "replicasets", ""},
		{"apps/v1beta2", "statefulsets", `,"serviceName":"s"`},
	} {
		t.Run(c.version+" "+c.plural, func(t *testing.T) {
			a := apitest.NewClient(t, a.Base, a.HTTP)
			name := "a" + strings.NewReplacer("/", "-").Replace(c.version)
			all := "/apis/" + c.version + "/namespaces/default/" + c.plural
			a.Must(201, "POST", all, `{"metadata":{"name":"`+name+`"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"a"}},"template":`+podTemplate+c.more+`}}`)
			a.Must(200, "PATCH", all+"/"+name+"/status", `{"status":{"replicas":1}}`, "Content-Type", "application/merge-patch+json")
			scale := all + "/" + name + "/scale"
			got := a.Must(200, "GET", scale, nil)
			assert.Equal(t, c.version, got.Body["apiVersion"])
			assert.Equal(t, "Scale", got.Body["kind"])
			assert.EqualValues(t, 2, apitest.Nested(got.Body, "spec", "replicas"))
			assert.Equal(t, map[string]any{"replicas": 1.0, "selector": map[string]any{"app": "a"}, "targetSelector": "app=a"}, got.Body["status"])

			a.Must(200, "PUT", scale, strings.Replace(string(got.Raw), `"replicas":2`, `"replicas":5`, 1))
			patched := a.Must(200, "PATCH", scale, `{"spec":{"replicas":7}}`, "Content-Type", "application/merge-patch+json")
			assert.Equal(t, c.version, patched.Body["apiVersion"])
			assert.EqualValues(t, 7, apitest.Nested(patched.Body, "spec", "replicas"))
			applied := a.Must(200, "PATCH", scale+"?fieldManager=m&force=true", `{"apiVersion":"`+c.version+`","kind":"Scale","metadata":{"name":"`+name+`"},"spec":{"replicas":3}}`,
				"Content-Type", "application/apply-patch+yaml")
			assert.Equal(t, c.version, applied.Body["apiVersion"])
			a.Must(400, "PUT", scale, `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"`+name+`"},"spec":{"replicas":4}}`)

			now := a.Must(200, "GET", "/apis/apps/v1/namespaces/default/"+c.plural+"/"+name+"/scale", nil)
			assert.Equal(t, "autoscaling/v1", now.Body["apiVersion"])
			assert.Equal(t, map[string]any{"replicas": 1.0, "selector": "app=a"}, now.Body["status"])
			assert.EqualValues(t, 3, apitest.Nested(now.Body, "spec", "replicas"))
			group, version, _ := strings.Cut(c.version, "/")
			assertKind(t, a, c.version, c.plural+"/scale", group, version, "Scale")
			assertKind(t, a, "apps/v1", c.plural+"/scale", "autoscaling", "v1", "Scale")
		})
	}
	const all = "/apis/extensions/v1beta1/namespaces/default/deployments"
	a.Must(201, "POST", all, `{"metadata":{"name":"more"},"spec":{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]},"template":`+podTemplate+`}}`)
	got := a.Must(200, "GET", all+"/more/scale", nil)
	assert.Equal(t, map[string]any{"replicas": 0.0, "targetSelector": "app"}, got.Body["status"], "labels cannot say it")
}

// TestExtensionsServesScaleOfReplicationControllers: the group extensions had the scale of
// replication controllers, but not the controllers themselves. Discovery and the OpenAPI
// documents show that.
func TestExtensionsServesScaleOfReplicationControllers(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.15")
	const all = "/api/v1/namespaces/default/replicationcontrollers"
	a.Must(201, "POST", all, `{"metadata":{"name":"a"},"spec":{"replicas":2,"template":`+podTemplate+`}}`)
	scale := strings.Replace(all, "/api/v1", "/apis/extensions/v1beta1", 1) + "/a/scale"
	got := a.Must(200, "PATCH", scale, `{"spec":{"replicas":3}}`)
	assert.Equal(t, "extensions/v1beta1", got.Body["apiVersion"])
	assert.Equal(t, map[string]any{"replicas": 0.0, "selector": map[string]any{"app": "a"}, "targetSelector": "app=a"}, got.Body["status"])
	assert.EqualValues(t, 3, apitest.Nested(a.Must(200, "GET", all+"/a", nil).Body, "spec", "replicas"))

	assertKind(t, a, "extensions/v1beta1", "replicationcontrollers/scale", "extensions", "v1beta1", "Scale")
	assertKind(t, a, "v1", "replicationcontrollers/scale", "autoscaling", "v1", "Scale")
	for _, r := range a.Must(200, "GET", "/apis/extensions/v1beta1", nil).Body["resources"].([]any) {
		if apitest.NestedString(r, "name") == "replicationcontrollers" {
			assert.Equal(t, map[string]any{"name": "replicationcontrollers", "singularName": "replicationcontroller", "namespaced": true,
				"kind": "ReplicationControllerDummy", "verbs": []any{}}, r)
		}
	}
	paths := a.Must(200, "GET", "/openapi/v2", nil).Body["paths"].(map[string]any)
	const of = "/apis/extensions/v1beta1/namespaces/{namespace}/replicationcontrollers"
	assert.Equal(t, "readExtensionsV1beta1NamespacedReplicationControllerDummyScale", apitest.Nested(paths, of+"/{name}/scale", "get", "operationId"))
	for _, none := range []string{of, of + "/{name}", "/apis/extensions/v1beta1/replicationcontrollers"} {
		assert.NotContains(t, paths, none)
	}
	a.Must(404, "GET", of, nil)
	apitest.NewInRelease(t, "1.16").Must(404, "GET", scale, nil)
}

// period is the body of a subresource, and formerPeriod is its older version, in words.
type period struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	Every int `json:"every"`
}

type formerPeriod struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	Often string `json:"often"`
}

// TestBodyHasVersionOfRequest: the body of a subresource has the version of the request if the
// body kind has a version of that name. A body that cannot be converted to the hub is refused.
func TestBodyHasVersionOfRequest(t *testing.T) {
	t.Parallel()
	body := registry.Of(registry.Definition[period]{Group: "example.com", Version: "v1", Kind: "Period",
		Versions: []registry.VersionOf[period]{registry.Spoke[formerPeriod, period]{Version: "v1beta1",
			ToHub: func(in *formerPeriod, out *period) error {
				switch _, err := fmt.Sscanf(in.Often, "every %d", &out.Every); {
				case in.Often == "never":
					var f check.Violations
					f.Forbidden(check.At("often"), "it has to be")
					return f.Err()
				case err != nil:
					return errors.New("nobody knows how often that is")
				}
				return nil
			},
			FromHub: func(in *period, out *formerPeriod) error { out.Often = fmt.Sprintf("every %d", in.Every); return nil },
		}}})
	s := servertest.New(t, func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[apitest.Signal]{Group: "example.com", Version: "v1", Scope: registry.Cluster,
			Versions: []registry.VersionOf[apitest.Signal]{registry.Spoke[apitest.Signal, apitest.Signal]{Version: "v1beta1"}, registry.Spoke[apitest.Signal, apitest.Signal]{Version: "v1alpha1"}},
			Subresources: []registry.Subresource{{
				Name: "period", Body: body,
				Show: func(o *meta.Object) *meta.Object {
					return meta.NewObject(map[string]any{"apiVersion": "example.com/v1", "kind": "Period",
						"metadata": map[string]any{"name": o.Name(), "resourceVersion": o.ResourceVersion()}, "every": o.Int("every")})
				},
				Merge: func(obj, in *meta.Object) { obj.Set(in.Int("every"), "every") },
			}}}))
		b.Gates = []features.Gate{{Name: "Blink", Beta: "0.0"}}
	})
	a := apitest.InProcess(t, s)
	const of = "/apis/example.com/%s/signals"
	a.Must(201, "POST", fmt.Sprintf(of, "v1"), `{"metadata":{"name":"s"},"every":4}`)
	path := func(version string) string { return fmt.Sprintf(of, version) + "/s/period" }
	for version, kind := range map[string]string{"v1": "v1", "v1beta1": "v1beta1", "v1alpha1": "v1"} {
		assert.Equal(t, "example.com/"+kind, a.Must(200, "GET", path(version), nil).Body["apiVersion"])
		assertKind(t, a, "example.com/"+version, "signals/period", "example.com", kind, "Period")
	}
	old := a.Must(200, "GET", path("v1beta1"), nil)
	assert.Equal(t, "every 4", old.Body["often"])
	assert.NotContains(t, old.Body, "every")
	put := a.Must(200, "PUT", path("v1beta1"), strings.Replace(string(old.Raw), "every 4", "every 5", 1))
	assert.Equal(t, "every 5", put.Body["often"])
	assert.Equal(t, "every 6", a.Must(200, "PATCH", path("v1beta1"), `{"often":"every 6"}`).Body["often"])
	assert.EqualValues(t, 6, a.Must(200, "GET", path("v1"), nil).Body["every"])
	assert.EqualValues(t, 7, a.Must(200, "PATCH", path("v1alpha1"), `{"every":7}`).Body["every"])
	a.Must(400, "PUT", path("v1beta1"), `{"apiVersion":"example.com/v1","kind":"Period","metadata":{"name":"s"},"every":8}`)
	assert.Contains(t, string(a.Must(400, "PATCH", path("v1beta1"), `{"often":"now and then"}`).Raw), "nobody knows how often that is")
	assert.Contains(t, string(a.Must(422, "PATCH", path("v1beta1"), `{"often":"never"}`).Raw), `"field":"often"`)
	assert.EqualValues(t, 7, a.Must(200, "GET", path("v1"), nil).Body["every"])
}

// assertKind compares the kind that discovery shows for a subresource with the kind of its body. Discovery leaves the
// group and the version out if they are those of the resource.
func assertKind(t *testing.T, a *apitest.Client, apiVersion, name, group, version, kind string) {
	t.Helper()
	path := "/apis/" + apiVersion
	if apiVersion == "v1" {
		path = "/api/v1"
	}
	for _, r := range a.Must(200, "GET", path, nil).Body["resources"].([]any) {
		if apitest.NestedString(r, "name") == name {
			if meta.ParseAPIVersion(apiVersion) == (meta.GroupVersion{Group: group, Version: version}) {
				group, version = "", ""
			}
			assert.Equal(t, []string{group, version, kind}, []string{apitest.NestedString(r, "group"), apitest.NestedString(r, "version"), apitest.NestedString(r, "kind")}, "%s of %s", name, apiVersion)
			return
		}
	}
	assert.Fail(t, "not in discovery", "%s of %s", name, apiVersion)
}

// TestRollback: a rollback request writes the revision and the annotations to record into the
// deployment, for its controller.
func TestRollbackIsWrittenToDeployment(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.15")
	for _, version := range []string{"extensions/v1beta1", "apps/v1beta1"} {
		name := "a" + strings.NewReplacer("/", "-").Replace(version)
		all := "/apis/" + version + "/namespaces/default/deployments"
		item, roll := all+"/"+name, all+"/"+name+"/rollback"
		body := `{"apiVersion":"` + version + `","kind":"DeploymentRollback","name":"` + name + `","updatedAnnotations":{"why":"broken"},"rollbackTo":{"revision":3}}`
		a.Must(404, "POST", roll, body)
		a.Must(201, "POST", all, `{"metadata":{"name":"`+name+`","annotations":{"own":"yes"}},"spec":{"template":`+podTemplate+`}}`)
		a.Must(201, "POST", roll+"?dryRun=All", body)
		assert.Nil(t, apitest.Nested(a.Must(200, "GET", item, nil).Body, "spec", "rollbackTo"))
		done := a.Must(201, "POST", roll, body)
		assert.Equal(t, "Success", done.Body["status"])
		got := a.Must(200, "GET", item, nil)
		assert.Equal(t, map[string]any{"revision": 3.0}, apitest.Nested(got.Body, "spec", "rollbackTo"))
		assert.Equal(t, map[string]any{"own": "yes", "why": "broken"}, apitest.Nested(got.Body, "metadata", "annotations"))
		now := "/apis/apps/v1/namespaces/default/deployments/" + name
		assert.Equal(t, "3", apitest.NestedString(a.Must(200, "GET", now, nil).Body, "metadata", "annotations", "deprecated.deployment.rollback.to"))

		a.Must(201, "POST", roll, `{"name":"`+name+`"}`)
		assert.Equal(t, map[string]any{}, apitest.Nested(a.Must(200, "GET", item, nil).Body, "spec", "rollbackTo"), "the last revision")
		a.Must(400, "POST", roll, `{"name":"other"}`)
		assert.Contains(t, string(a.Must(422, "POST", roll, `{}`).Raw), "name is required")
		a.Must(422, "POST", roll, `{"name":"`+name+`","rollbackTo":{"revision":-1}}`)
		a.Must(422, "POST", roll, `{"name":"`+name+`","updatedAnnotations":{"no key":"v"}}`)
		a.Must(405, "GET", roll, nil)
		for _, without := range []string{"apps/v1", "apps/v1beta2"} {
			a.Must(404, "POST", "/apis/"+without+"/namespaces/default/deployments/"+name+"/rollback", `{"name":"`+name+`"}`)
		}
		group, v, _ := strings.Cut(version, "/")
		assertKind(t, a, version, "deployments/rollback", group, v, "DeploymentRollback")
	}
}

// TestUnreadableRevision: an annotation for the rollback revision that is not a number is kept when the
// object is written in a version that has a field for the revision.
func TestUnreadableRevision(t *testing.T) {
	t.Parallel()
	const annotation = "deprecated.deployment.rollback.to"
	a := apitest.NewInRelease(t, "1.15")
	for _, version := range []string{"extensions/v1beta1", "apps/v1beta1"} {
		name := "a" + strings.NewReplacer("/", "-").Replace(version)
		all := "/apis/apps/v1/namespaces/default/deployments"
		a.Must(201, "POST", all, `{"metadata":{"name":"`+name+`","annotations":{"`+annotation+`":"abc"}},"spec":{"selector":{"matchLabels":{"app":"a"}},"template":`+podTemplate+`}}`)
		former := "/apis/" + version + "/namespaces/default/deployments/" + name
		shown := a.Must(200, "GET", former, nil)
		assert.Equal(t, "abc", apitest.NestedString(shown.Body, "metadata", "annotations", annotation), version)
		a.Must(200, "PUT", former, shown.Raw)
		a.Must(200, "PATCH", former, `{"metadata":{"labels":{"seen":"yes"}}}`)
		assert.Equal(t, "abc", apitest.NestedString(a.Must(200, "GET", all+"/"+name, nil).Body, "metadata", "annotations", annotation), version)
		a.Must(200, "PATCH", former, `{"spec":{"rollbackTo":{"revision":4}}}`)
		assert.Equal(t, "4", apitest.NestedString(a.Must(200, "GET", all+"/"+name, nil).Body, "metadata", "annotations", annotation))
		assert.Empty(t, apitest.NestedString(a.Must(200, "GET", former, nil).Body, "metadata", "annotations", annotation))
	}
}

// TestEvictionsOfReleases: discovery of each release lists the Eviction version of that release, and the
// server accepts every version that the release accepted; v1beta1 is accepted by all.
func TestEvictionsOfReleases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		release, told string
		newer         int
	}{{"1.15", "v1beta1", 400}, {"1.21", "v1beta1", 400}, {"1.22", "v1", 201}, {"1.25", "v1", 201}, {"", "v1", 201}} {
		t.Run("release "+c.release, func(t *testing.T) {
			a := apitest.NewInRelease(t, c.release)
			assertKind(t, a, "v1", "pods/eviction", "policy", c.told, "Eviction")
			for version, code := range map[string]int{"policy/v1beta1": 201, "policy/v1": c.newer, "policy/v2": 400, "apps/v1": 400} {
				name := strings.ReplaceAll(version, "/", "-")
				a.Must(201, "POST", apitest.PodsPath, `{"metadata":{"name":"`+name+`"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
				body := `{"apiVersion":"` + version + `","kind":"Eviction","metadata":{"name":"` + name + `"},"deleteOptions":{"gracePeriodSeconds":0}}`
				a.Must(code, "POST", apitest.PodsPath+"/"+name+"/eviction", body)
				a.Must(map[bool]int{true: 404, false: 200}[code == 201], "GET", apitest.PodsPath+"/"+name, nil)
			}
		})
	}
}
