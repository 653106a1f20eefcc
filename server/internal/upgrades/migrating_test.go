package upgrades_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/formertest"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// The changes of behavior between versions, each in a release that serves both versions.

func TestEventV1IsStricter(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/events.k8s.io/" + version + "/namespaces/default/events"
	}
	event := func(name, more string) string {
		return `{"metadata":{"name":"` + name + `"},"regarding":{"kind":"Pod","name":"p","namespace":"default"},"note":"n"` + more + `}`
	}
	whole := `,"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"example.com/c","reportingInstance":"i","action":"A","reason":"R"`
	for name, c := range map[string]struct{ more, fault string }{
		"odd type":   {whole + `,"type":"Odd"`, "type"},
		"old fields": {whole + `,"type":"Normal","deprecatedCount":2,"deprecatedSource":{"component":"c"}`, "count"},
		"no time":    {`,"type":"Normal","reportingController":"example.com/c","reportingInstance":"i","action":"A","reason":"R"`, "eventTime"},
	} {
		at := strings.ReplaceAll(name, " ", "-")
		assert.Contains(t, string(a.Must(422, "POST", path("v1"), event(at, c.more)).Raw), `"field":"`+c.fault, name)
		a.Must(201, "POST", path("v1beta1"), event(at, c.more))
	}
	for _, missing := range []string{"reportingController", "reportingInstance", "action", "reason"} {
		body := strings.Replace(event("missing", whole+`,"type":"Normal"`), `"`+missing+`":`, `"x":`, 1)
		a.Must(422, "POST", path("v1"), body)
	}
	a.Must(201, "POST", path("v1"), event("good", whole+`,"type":"Normal"`))
	assert.Equal(t, "p", apitest.NestedString(a.Must(200, "GET", "/api/v1/namespaces/default/events/good", nil).Body, "involvedObject", "name"))
	old := a.Must(200, "GET", path("v1")+"/old-fields", nil)
	assert.EqualValues(t, 2, apitest.Nested(old.Body, "deprecatedCount"))
}

func TestEndpointSliceTopology(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/discovery.k8s.io/" + version + "/namespaces/default/endpointslices"
	}
	endpoint := func(got apitest.Response) any { return apitest.Nested(got.Body, "endpoints").([]any)[0] }
	a.Must(201, "POST", path("v1beta1"), `{"metadata":{"name":"old"},"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],
		"topology":{"kubernetes.io/hostname":"n","topology.kubernetes.io/zone":"z","example.com/rack":"r"},"nodeName":"n"}]}`)
	e := endpoint(a.Must(200, "GET", path("v1")+"/old", nil))
	assert.Equal(t, "z", apitest.NestedString(e, "zone"))
	assert.Equal(t, "n", apitest.NestedString(e, "nodeName"))
	assert.Equal(t, map[string]any{"example.com/rack": "r"}, apitest.Nested(e, "deprecatedTopology"))

	a.Must(201, "POST", path("v1"), `{"metadata":{"name":"new"},"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],
		"deprecatedTopology":{"example.com/rack":"r"},"nodeName":"n","zone":"z"}]}`)
	assert.Nil(t, apitest.Nested(endpoint(a.Must(200, "GET", path("v1")+"/new", nil)), "deprecatedTopology"), "it is read-only")
	e = endpoint(a.Must(200, "GET", path("v1beta1")+"/new", nil))
	assert.Equal(t, map[string]any{"kubernetes.io/hostname": "n", "topology.kubernetes.io/zone": "z"}, apitest.Nested(e, "topology"))
}

func TestBudgetsWithEmptySelectors(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/policy/" + version + "/namespaces/default/poddisruptionbudgets"
	}
	selector := func(version, name string) any {
		return apitest.Nested(a.Must(200, "GET", path(version)+"/"+name, nil).Body, "spec", "selector")
	}
	label := func(operator string) any {
		return map[string]any{"matchExpressions": []any{map[string]any{"key": "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", "operator": operator}}}
	}
	a.Must(201, "POST", path("v1beta1"), `{"metadata":{"name":"none"},"spec":{"minAvailable":1,"selector":{}}}`)
	a.Must(201, "POST", path("v1"), `{"metadata":{"name":"all"},"spec":{"minAvailable":1,"selector":{}}}`)
	a.Must(201, "POST", path("v1"), `{"metadata":{"name":"unset"},"spec":{"minAvailable":1}}`)
	assert.Equal(t, map[string]any{}, selector("v1beta1", "none"))
	assert.Equal(t, label("Exists"), selector("v1", "none"))
	assert.Equal(t, map[string]any{}, selector("v1", "all"))
	assert.Equal(t, label("DoesNotExist"), selector("v1beta1", "all"))
	assert.Nil(t, selector("v1", "unset"))
	assert.Nil(t, selector("v1beta1", "unset"))
}

func TestWebhookDefaults(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/admissionregistration.k8s.io/" + version + "/validatingwebhookconfigurations"
	}
	body := func(name, more string) string {
		h := `{"name":"a.example.com","clientConfig":{"url":"https://example.com/"}` + more + `}`
		return `{"metadata":{"name":"` + name + `"},"webhooks":[` + h + `]}`
	}
	first := func(got apitest.Response) map[string]any {
		return apitest.Nested(got.Body, "webhooks").([]any)[0].(map[string]any)
	}
	assert.Subset(t, first(a.Must(201, "POST", path("v1beta1"), body("old", ""))), map[string]any{
		"failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": 30.0, "sideEffects": "Unknown", "admissionReviewVersions": []any{"v1beta1"}})
	assert.Subset(t, first(a.Must(200, "GET", path("v1")+"/old", nil)), map[string]any{"failurePolicy": "Ignore", "timeoutSeconds": 30.0, "sideEffects": "Unknown"})
	refused := a.Must(422, "POST", path("v1"), body("new", ""))
	assert.Contains(t, string(refused.Raw), "webhooks[0].sideEffects")
	assert.Contains(t, string(refused.Raw), "webhooks[0].admissionReviewVersions")
	a.Must(422, "POST", path("v1"), body("new", `,"sideEffects":"Some","admissionReviewVersions":["v1"]`))
	assert.Subset(t, first(a.Must(201, "POST", path("v1"), body("new", `,"sideEffects":"None","admissionReviewVersions":["v1"]`))), map[string]any{
		"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10.0})
	twice := func(version string) apitest.Response {
		h := `{"name":"a.example.com","clientConfig":{"url":"https://example.com/"},"sideEffects":"None","admissionReviewVersions":["v1"]}`
		return a.Do("POST", path(version), `{"metadata":{"name":"twice"},"webhooks":[`+h+`,`+h+`]}`)
	}
	assert.Equal(t, 422, twice("v1").Code)
	assert.Equal(t, 201, twice("v1beta1").Code)
}

func TestDefinitionV1beta1(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/apiextensions.k8s.io/" + version + "/customresourcedefinitions"
	}
	names := `"group":"example.com","names":{"plural":"%s","kind":"%s"}`
	of := func(plural, kind string) string {
		return `{"metadata":{"name":"` + plural + `.example.com"},"spec":{` + strings.NewReplacer(`"plural":"%s"`, `"plural":"`+plural+`"`, `"kind":"%s"`, `"kind":"`+kind+`"`).Replace(names)
	}
	a.Must(201, "POST", path("v1beta1"), of("plains", "Plain")+`,"version":"v1"}}`)
	a.Must(201, "POST", path("v1beta1"), of("sheets", "Sheet")+`,"versions":[{"name":"v1","served":true,"storage":true},{"name":"v2","served":true,"storage":false}],
		"validation":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}}}}}},
		"subresources":{"status":{}},"additionalPrinterColumns":[{"name":"N","type":"integer","JSONPath":".spec.n"}],
		"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://example.com/"}}}}`)
	old := a.Must(200, "GET", path("v1beta1")+"/sheets.example.com", nil).Body
	assert.Equal(t, "v1", apitest.NestedString(old, "spec", "version"))
	assert.Equal(t, "Namespaced", apitest.NestedString(old, "spec", "scope"))
	assert.Equal(t, true, apitest.Nested(old, "spec", "preserveUnknownFields"))
	assert.NotNil(t, apitest.Nested(old, "spec", "validation"))
	assert.Equal(t, []any{"v1beta1"}, apitest.Nested(old, "spec", "conversion", "conversionReviewVersions"))
	now := a.Must(200, "GET", path("v1")+"/sheets.example.com", nil).Body
	for _, field := range []string{"version", "validation", "subresources", "additionalPrinterColumns"} {
		assert.Nil(t, apitest.Nested(now, "spec", field), field)
	}
	for _, v := range apitest.Nested(now, "spec", "versions").([]any) {
		assert.NotNil(t, apitest.Nested(v, "schema", "openAPIV3Schema"))
		assert.NotNil(t, apitest.Nested(v, "subresources", "status"))
		assert.Equal(t, ".spec.n", apitest.NestedString(apitest.Nested(v, "additionalPrinterColumns").([]any)[0], "jsonPath"))
	}
	assert.Equal(t, "https://example.com/", apitest.NestedString(now, "spec", "conversion", "webhook", "clientConfig", "url"))

	// What there is of it keeps fields that nothing names.
	a.AwaitEstablished("plains.example.com")
	plain := "/apis/example.com/v1/namespaces/default/plains"
	got := a.Must(201, "POST", plain, `{"apiVersion":"example.com/v1","kind":"Plain","metadata":{"name":"a"},"any":{"thing":1}}`)
	assert.EqualValues(t, 1, apitest.Nested(got.Body, "any", "thing"))

	// Version v1 wants more.
	for more, field := range map[string]string{
		`,"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]`:                                                "spec.scope",
		`,"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true}]`:                                                                             "spec.versions[0].schema.openAPIV3Schema",
		`,"scope":"Cluster","preserveUnknownFields":true,"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]`: "spec.preserveUnknownFields",
	} {
		assert.Contains(t, string(a.Must(422, "POST", path("v1"), of("news", "New")+more+`}}`).Raw), `"field":"`+field+`"`)
	}
}

func TestReviewGroups(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	ask := func(version, field string) apitest.Response {
		return a.Must(201, "POST", "/apis/authorization.k8s.io/"+version+"/subjectaccessreviews", `{`+anyReview+`,"`+field+`":["g"]}}`)
	}
	old, now := ask("v1beta1", "group"), ask("v1", "groups")
	assert.Equal(t, []any{"g"}, apitest.Nested(old.Body, "spec", "group"))
	assert.Equal(t, []any{"g"}, apitest.Nested(now.Body, "spec", "groups"))
	assert.Equal(t, true, apitest.Nested(old.Body, "status", "allowed"))
	for version, field := range map[string]string{"v1beta1": "groups", "v1": "group"} {
		a.Must(422, "POST", "/apis/authorization.k8s.io/"+version+"/subjectaccessreviews", `{`+anyReview+`,"`+field+`":["g"]}}`)
	}
}

func TestSigningRequestDefaults(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/certificates.k8s.io/" + version + "/certificatesigningrequests"
	}
	request := formertest.SigningRequest(t)
	body := func(name, more string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"request":"` + request + `"` + more + `}}`
	}
	old := a.Must(201, "POST", path("v1beta1"), body("old", ""))
	assert.Equal(t, "kubernetes.io/legacy-unknown", apitest.NestedString(old.Body, "spec", "signerName"))
	assert.Equal(t, []any{"digital signature", "key encipherment"}, apitest.Nested(old.Body, "spec", "usages"))
	a.Must(201, "POST", path("v1beta1"), body("twice", `,"usages":["any","any"]`))
	for name, more := range map[string]string{
		"no signer": `,"usages":["any"]`, "no usages": `,"signerName":"example.com/s"`,
		"legacy": `,"usages":["any"],"signerName":"kubernetes.io/legacy-unknown"`,
		"twice":  `,"usages":["any","any"],"signerName":"example.com/s"`, "unknown": `,"usages":["odd"],"signerName":"example.com/s"`,
	} {
		assert.Equal(t, 422, a.Do("POST", path("v1"), body("new", more)).Code, name)
	}
	a.Must(201, "POST", path("v1"), body("new", `,"usages":["any"],"signerName":"example.com/s"`))
	approved := a.Must(200, "PUT", path("v1beta1")+"/old/approval", `{"metadata":{"name":"old"},"spec":{"request":"`+request+`"},"status":{"conditions":[{"type":"Approved"}]}}`)
	assert.Equal(t, "True", apitest.NestedString(apitest.Nested(approved.Body, "status", "conditions").([]any)[0], "status"))
	a.Must(422, "PUT", path("v1")+"/new/approval", `{"metadata":{"name":"new"},"spec":{"request":"`+request+`","signerName":"example.com/s"},"status":{"conditions":[{"type":"Approved"}]}}`)
	a.Must(422, "PUT", path("v1")+"/new/status", `{"metadata":{"name":"new"},"status":{"certificate":"`+request+`"}}`)
}

func TestIngressBackends(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	body := `{"metadata":{"name":"i"},"spec":{"backend":{"serviceName":"s","servicePort":80},"rules":[{"http":{"paths":[
		{"path":"/a","backend":{"serviceName":"b","servicePort":"web"}}]}}]}}`
	old := "/apis/networking.k8s.io/v1beta1/namespaces/default/ingresses"
	v1 := "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
	a.Must(201, "POST", old, body)
	now := a.Must(200, "GET", v1+"/i", nil).Body
	assert.Equal(t, map[string]any{"service": map[string]any{"name": "s", "port": map[string]any{"number": 80.0}}}, apitest.Nested(now, "spec", "defaultBackend"))
	way := apitest.Nested(apitest.Nested(now, "spec", "rules").([]any)[0], "http", "paths").([]any)[0]
	assert.Equal(t, map[string]any{"name": "b", "port": map[string]any{"name": "web"}}, apitest.Nested(way, "backend", "service"))
	assert.Equal(t, "ImplementationSpecific", apitest.NestedString(way, "pathType"))
	assert.Equal(t, "b", apitest.NestedString(apitest.Nested(apitest.Nested(a.Must(200, "GET", "/apis/extensions/v1beta1/namespaces/default/ingresses/i", nil).Body, "spec", "rules").([]any)[0], "http", "paths").([]any)[0], "backend", "serviceName"))
	refused := a.Must(422, "POST", v1, `{"metadata":{"name":"j"},"spec":{"rules":[{"http":{"paths":[{"path":"/a","backend":{"service":{"name":"b","port":{"number":80}}}}]}}]}}`)
	assert.Contains(t, string(refused.Raw), "pathType must be specified")
}

func TestWorkloadDefaults(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.15")
	spec := func(version, plural, more string) map[string]any {
		name := strings.ReplaceAll(version, "/", "-")
		got := a.Must(201, "POST", "/apis/"+version+"/namespaces/default/"+plural, `{"metadata":{"name":"`+name+`"},"spec":{"template":`+podTemplate+more+`}}`)
		item := "/apis/" + version + "/namespaces/default/" + plural + "/" + name
		again := a.Do("PATCH", item, `{"spec":{"selector":{"matchLabels":{"app":"b"}},"template":{"metadata":{"labels":{"app":"b"}}}}}`)
		want := map[bool]int{true: 200, false: 422}[strings.HasSuffix(version, "v1beta1") && plural != "statefulsets"]
		assert.Equal(t, want, again.Code, "%s %s: a change of the selector", version, plural)
		return apitest.Nested(got.Body, "spec").(map[string]any)
	}
	selector := `,"selector":{"matchLabels":{"app":"a"}}`
	for _, plural := range []string{"deployments", "daemonsets", "statefulsets", "replicasets"} {
		a.Must(422, "POST", "/apis/apps/v1/namespaces/default/"+plural, `{"metadata":{"name":"none"},"spec":{"template":`+podTemplate+`}}`)
	}
	old, first, now := spec("extensions/v1beta1", "deployments", `,"rollbackTo":{"revision":3}`), spec("apps/v1beta1", "deployments", ""), spec("apps/v1", "deployments", selector)
	assert.Equal(t, map[string]any{"app": "a"}, apitest.Nested(old, "selector", "matchLabels"))
	for _, c := range []struct {
		spec              map[string]any
		history, deadline any
		surge             any
	}{{old, 2147483647.0, 2147483647.0, 1.0}, {first, 2.0, 600.0, "25%"}, {now, 10.0, 600.0, "25%"}} {
		assert.Equal(t, c.history, apitest.Nested(c.spec, "revisionHistoryLimit"))
		assert.Equal(t, c.deadline, apitest.Nested(c.spec, "progressDeadlineSeconds"))
		assert.Equal(t, c.surge, apitest.Nested(c.spec, "strategy", "rollingUpdate", "maxSurge"))
		assert.Equal(t, c.surge, apitest.Nested(c.spec, "strategy", "rollingUpdate", "maxUnavailable"))
	}
	assert.EqualValues(t, 3, apitest.Nested(old, "rollbackTo", "revision"))
	rolled := a.Must(200, "GET", "/apis/apps/v1/namespaces/default/deployments/extensions-v1beta1", nil)
	assert.Nil(t, apitest.Nested(rolled.Body, "spec", "rollbackTo"))
	assert.Equal(t, "3", apitest.NestedString(rolled.Body, "metadata", "annotations", "deprecated.deployment.rollback.to"))

	daemon := spec("extensions/v1beta1", "daemonsets", "")
	assert.Equal(t, "OnDelete", apitest.NestedString(daemon, "updateStrategy", "type"))
	assert.EqualValues(t, 1, apitest.Nested(daemon, "templateGeneration"))
	daemon = spec("apps/v1", "daemonsets", selector)
	assert.Equal(t, "RollingUpdate", apitest.NestedString(daemon, "updateStrategy", "type"))
	assert.Nil(t, apitest.Nested(daemon, "templateGeneration"))
	assert.Equal(t, "OnDelete", apitest.NestedString(spec("apps/v1beta1", "statefulsets", `,"serviceName":"s"`), "updateStrategy", "type"))
	assert.Equal(t, "RollingUpdate", apitest.NestedString(spec("apps/v1", "statefulsets", `,"serviceName":"s"`+selector), "updateStrategy", "type"))
}

// TestBuildRejectsInvalidRelease: Build fails if Release is malformed or unknown.
func TestBuildRejectsInvalidRelease(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]string{
		"1.14": "Release: unknown release 1.14: supported are 1.15 to 1.37", "1.99": "Release: unknown release 1.99: supported are 1.15 to 1.37",
		"v1.22": `Release: invalid release "v1.22": must have a form like 1.37`, "1.22.3": `Release: invalid release "1.22.3": must have a form like 1.37`,
		"1.022": `Release: invalid release "1.022": must have a form like 1.37`, "x": `Release: invalid release "x": must have a form like 1.37`,
	} {
		_, err := (&server.Builder{Release: release}).Build(t.Context())
		assert.ErrorContains(t, err, want, release)
	}
	a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Release = "1.22" }))
	version := a.Must(200, "GET", "/version", nil).Body
	assert.Equal(t, []any{"1", "22", "v1.22.0"}, []any{version["major"], version["minor"], version["gitVersion"]})
}

// TestVersionWithoutStatusWritesStatusWithObject: in a version without the subresource, the
// status is written with the rest of the object, and in other versions only through the
// subresource.
func TestVersionWithoutStatusWritesStatusWithObject(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	schema := `"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`
	a.Must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com","scope":"Cluster",
		"names":{"plural":"lamps","kind":"Lamp"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},`+schema+`},{"name":"v1beta1","served":true,"storage":false,`+schema+`}]}}`)
	a.AwaitEstablished("lamps.example.com")
	for of, body := range map[string]string{
		"/apis/storage.k8s.io/%s/volumeattachments": `"spec":{"attacher":"example.com","nodeName":"n","source":{"persistentVolumeName":"v"}},"status":{"attached":true}`,
		"/apis/example.com/%s/lamps":                `"apiVersion":"example.com/VERSION","kind":"Lamp","status":{"attached":true}`,
	} {
		former, now := fmt.Sprintf(of, "v1beta1"), fmt.Sprintf(of, "v1")
		create := func(version, path, name string) {
			a.Must(201, "POST", path, `{"metadata":{"name":"`+name+`"},`+strings.ReplaceAll(body, "VERSION", version)+`}`)
		}
		attached := func(name string) any {
			return apitest.Nested(a.Must(200, "GET", now+"/"+name, nil).Body, "status", "attached")
		}
		create("v1beta1", former, "old")
		create("v1", now, "new")
		assert.Equal(t, true, attached("old"), of)
		assert.NotEqual(t, true, attached("new"), of)
		a.Must(404, "GET", former+"/old/status", nil)
		a.Must(200, "GET", now+"/old/status", nil)
		a.Must(200, "PATCH", now+"/old", `{"status":{"attached":false}}`)
		assert.Equal(t, true, attached("old"), of)
		was := apitest.Nested(a.Must(200, "GET", now+"/old", nil).Body, "metadata", "generation")
		a.Must(200, "PATCH", former+"/old", `{"status":{"attached":false}}`)
		assert.Equal(t, false, attached("old"), of)
		if is := apitest.Nested(a.Must(200, "GET", now+"/old", nil).Body, "metadata", "generation"); was != nil {
			assert.Equal(t, was.(float64)+1, is, of)
		}
		a.Must(200, "PATCH", now+"/old/status", `{"status":{"attached":true}}`)
		assert.Equal(t, true, attached("old"), of)
	}
}
