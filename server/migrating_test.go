package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/formertest"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// The changes of behaviour that who migrates has to know, each in a release that serves
// both versions.

func TestEventV1IsStricter(t *testing.T) {
	a := inRelease(t, "1.21")
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
		assert.Contains(t, string(a.must(422, "POST", path("v1"), event(at, c.more)).raw), `"field":"`+c.fault, name)
		a.must(201, "POST", path("v1beta1"), event(at, c.more))
	}
	for _, missing := range []string{"reportingController", "reportingInstance", "action", "reason"} {
		body := strings.Replace(event("missing", whole+`,"type":"Normal"`), `"`+missing+`":`, `"x":`, 1)
		a.must(422, "POST", path("v1"), body)
	}
	a.must(201, "POST", path("v1"), event("good", whole+`,"type":"Normal"`))
	assert.Equal(t, "p", text(a.must(200, "GET", "/api/v1/namespaces/default/events/good", nil).body, "involvedObject", "name"))
	old := a.must(200, "GET", path("v1")+"/old-fields", nil)
	assert.EqualValues(t, 2, at(old.body, "deprecatedCount"))
}

func TestEndpointSliceTopology(t *testing.T) {
	a := inRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/discovery.k8s.io/" + version + "/namespaces/default/endpointslices"
	}
	endpoint := func(got answer) any { return at(got.body, "endpoints").([]any)[0] }
	a.must(201, "POST", path("v1beta1"), `{"metadata":{"name":"old"},"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],
		"topology":{"kubernetes.io/hostname":"n","topology.kubernetes.io/zone":"z","example.com/rack":"r"},"nodeName":"n"}]}`)
	e := endpoint(a.must(200, "GET", path("v1")+"/old", nil))
	assert.Equal(t, "z", text(e, "zone"))
	assert.Equal(t, "n", text(e, "nodeName"))
	assert.Equal(t, map[string]any{"example.com/rack": "r"}, at(e, "deprecatedTopology"))

	a.must(201, "POST", path("v1"), `{"metadata":{"name":"new"},"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],
		"deprecatedTopology":{"example.com/rack":"r"},"nodeName":"n","zone":"z"}]}`)
	assert.Nil(t, at(endpoint(a.must(200, "GET", path("v1")+"/new", nil)), "deprecatedTopology"), "it is read-only")
	e = endpoint(a.must(200, "GET", path("v1beta1")+"/new", nil))
	assert.Equal(t, map[string]any{"kubernetes.io/hostname": "n", "topology.kubernetes.io/zone": "z"}, at(e, "topology"))
}

func TestBudgetsWithEmptySelectors(t *testing.T) {
	a := inRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/policy/" + version + "/namespaces/default/poddisruptionbudgets"
	}
	selector := func(version, name string) any {
		return at(a.must(200, "GET", path(version)+"/"+name, nil).body, "spec", "selector")
	}
	label := func(operator string) any {
		return map[string]any{"matchExpressions": []any{map[string]any{"key": "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", "operator": operator}}}
	}
	a.must(201, "POST", path("v1beta1"), `{"metadata":{"name":"none"},"spec":{"minAvailable":1,"selector":{}}}`)
	a.must(201, "POST", path("v1"), `{"metadata":{"name":"all"},"spec":{"minAvailable":1,"selector":{}}}`)
	a.must(201, "POST", path("v1"), `{"metadata":{"name":"unset"},"spec":{"minAvailable":1}}`)
	assert.Equal(t, map[string]any{}, selector("v1beta1", "none"))
	assert.Equal(t, label("Exists"), selector("v1", "none"))
	assert.Equal(t, map[string]any{}, selector("v1", "all"))
	assert.Equal(t, label("DoesNotExist"), selector("v1beta1", "all"))
	assert.Nil(t, selector("v1", "unset"))
	assert.Nil(t, selector("v1beta1", "unset"))
}

func TestWebhookDefaults(t *testing.T) {
	a := inRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/admissionregistration.k8s.io/" + version + "/validatingwebhookconfigurations"
	}
	body := func(name, more string) string {
		h := `{"name":"a.example.com","clientConfig":{"url":"https://example.com/"}` + more + `}`
		return `{"metadata":{"name":"` + name + `"},"webhooks":[` + h + `]}`
	}
	first := func(got answer) map[string]any { return at(got.body, "webhooks").([]any)[0].(map[string]any) }
	assert.Subset(t, first(a.must(201, "POST", path("v1beta1"), body("old", ""))), map[string]any{
		"failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": 30.0, "sideEffects": "Unknown", "admissionReviewVersions": []any{"v1beta1"}})
	assert.Subset(t, first(a.must(200, "GET", path("v1")+"/old", nil)), map[string]any{"failurePolicy": "Ignore", "timeoutSeconds": 30.0, "sideEffects": "Unknown"})
	refused := a.must(422, "POST", path("v1"), body("new", ""))
	assert.Contains(t, string(refused.raw), "webhooks[0].sideEffects")
	assert.Contains(t, string(refused.raw), "webhooks[0].admissionReviewVersions")
	a.must(422, "POST", path("v1"), body("new", `,"sideEffects":"Some","admissionReviewVersions":["v1"]`))
	assert.Subset(t, first(a.must(201, "POST", path("v1"), body("new", `,"sideEffects":"None","admissionReviewVersions":["v1"]`))), map[string]any{
		"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10.0})
	twice := func(version string) answer {
		h := `{"name":"a.example.com","clientConfig":{"url":"https://example.com/"},"sideEffects":"None","admissionReviewVersions":["v1"]}`
		return a.do("POST", path(version), `{"metadata":{"name":"twice"},"webhooks":[`+h+`,`+h+`]}`)
	}
	assert.Equal(t, 422, twice("v1").code)
	assert.Equal(t, 201, twice("v1beta1").code)
}

func TestDefinitionV1beta1(t *testing.T) {
	a := inRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/apiextensions.k8s.io/" + version + "/customresourcedefinitions"
	}
	names := `"group":"example.com","names":{"plural":"%s","kind":"%s"}`
	of := func(plural, kind string) string {
		return `{"metadata":{"name":"` + plural + `.example.com"},"spec":{` + strings.NewReplacer(`"plural":"%s"`, `"plural":"`+plural+`"`, `"kind":"%s"`, `"kind":"`+kind+`"`).Replace(names)
	}
	a.must(201, "POST", path("v1beta1"), of("plains", "Plain")+`,"version":"v1"}}`)
	a.must(201, "POST", path("v1beta1"), of("sheets", "Sheet")+`,"versions":[{"name":"v1","served":true,"storage":true},{"name":"v2","served":true,"storage":false}],
		"validation":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}}}}}},
		"subresources":{"status":{}},"additionalPrinterColumns":[{"name":"N","type":"integer","JSONPath":".spec.n"}],
		"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://example.com/"}}}}`)
	old := a.must(200, "GET", path("v1beta1")+"/sheets.example.com", nil).body
	assert.Equal(t, "v1", text(old, "spec", "version"))
	assert.Equal(t, "Namespaced", text(old, "spec", "scope"))
	assert.Equal(t, true, at(old, "spec", "preserveUnknownFields"))
	assert.NotNil(t, at(old, "spec", "validation"))
	assert.Equal(t, []any{"v1beta1"}, at(old, "spec", "conversion", "conversionReviewVersions"))
	now := a.must(200, "GET", path("v1")+"/sheets.example.com", nil).body
	for _, field := range []string{"version", "validation", "subresources", "additionalPrinterColumns"} {
		assert.Nil(t, at(now, "spec", field), field)
	}
	for _, v := range at(now, "spec", "versions").([]any) {
		assert.NotNil(t, at(v, "schema", "openAPIV3Schema"))
		assert.NotNil(t, at(v, "subresources", "status"))
		assert.Equal(t, ".spec.n", text(at(v, "additionalPrinterColumns").([]any)[0], "jsonPath"))
	}
	assert.Equal(t, "https://example.com/", text(now, "spec", "conversion", "webhook", "clientConfig", "url"))

	// What there is of it keeps fields that nothing names.
	a.established("plains.example.com")
	plain := "/apis/example.com/v1/namespaces/default/plains"
	got := a.must(201, "POST", plain, `{"apiVersion":"example.com/v1","kind":"Plain","metadata":{"name":"a"},"any":{"thing":1}}`)
	assert.EqualValues(t, 1, at(got.body, "any", "thing"))

	// Version v1 wants more.
	for more, field := range map[string]string{
		`,"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]`:                                                "spec.scope",
		`,"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true}]`:                                                                             "spec.versions[0].schema.openAPIV3Schema",
		`,"scope":"Cluster","preserveUnknownFields":true,"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]`: "spec.preserveUnknownFields",
	} {
		assert.Contains(t, string(a.must(422, "POST", path("v1"), of("news", "New")+more+`}}`).raw), `"field":"`+field+`"`)
	}
}

// established waits until a definition is served.
func (a *api) established(name string) { a.establishedIn("v1", name) }

// establishedIn is established for a release that has a version of definitions.
func (a *api) establishedIn(version, name string) {
	a.t.Helper()
	w := a.watch("/apis/apiextensions.k8s.io/" + version + "/customresourcedefinitions?watch=1&fieldSelector=metadata.name%3D" + name)
	defer w.close()
	for {
		conditions, _ := at(w.next().Object, "status", "conditions").([]any)
		for _, c := range conditions {
			if text(c, "type") == "Established" && text(c, "status") == "True" {
				return
			}
		}
	}
}

func TestReviewGroups(t *testing.T) {
	a := inRelease(t, "1.21")
	ask := func(version, field string) answer {
		return a.must(201, "POST", "/apis/authorization.k8s.io/"+version+"/subjectaccessreviews", `{`+anyReview+`,"`+field+`":["g"]}}`)
	}
	old, now := ask("v1beta1", "group"), ask("v1", "groups")
	assert.Equal(t, []any{"g"}, at(old.body, "spec", "group"))
	assert.Equal(t, []any{"g"}, at(now.body, "spec", "groups"))
	assert.Equal(t, true, at(old.body, "status", "allowed"))
	for version, field := range map[string]string{"v1beta1": "groups", "v1": "group"} {
		a.must(422, "POST", "/apis/authorization.k8s.io/"+version+"/subjectaccessreviews", `{`+anyReview+`,"`+field+`":["g"]}}`)
	}
}

func TestSigningRequestDefaults(t *testing.T) {
	a := inRelease(t, "1.21")
	path := func(version string) string {
		return "/apis/certificates.k8s.io/" + version + "/certificatesigningrequests"
	}
	request := formertest.SigningRequest(t)
	body := func(name, more string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"request":"` + request + `"` + more + `}}`
	}
	old := a.must(201, "POST", path("v1beta1"), body("old", ""))
	assert.Equal(t, "kubernetes.io/legacy-unknown", text(old.body, "spec", "signerName"))
	assert.Equal(t, []any{"digital signature", "key encipherment"}, at(old.body, "spec", "usages"))
	a.must(201, "POST", path("v1beta1"), body("twice", `,"usages":["any","any"]`))
	for name, more := range map[string]string{
		"no signer": `,"usages":["any"]`, "no usages": `,"signerName":"example.com/s"`,
		"legacy": `,"usages":["any"],"signerName":"kubernetes.io/legacy-unknown"`,
		"twice":  `,"usages":["any","any"],"signerName":"example.com/s"`, "unknown": `,"usages":["odd"],"signerName":"example.com/s"`,
	} {
		assert.Equal(t, 422, a.do("POST", path("v1"), body("new", more)).code, name)
	}
	a.must(201, "POST", path("v1"), body("new", `,"usages":["any"],"signerName":"example.com/s"`))
	approved := a.must(200, "PUT", path("v1beta1")+"/old/approval", `{"metadata":{"name":"old"},"spec":{"request":"`+request+`"},"status":{"conditions":[{"type":"Approved"}]}}`)
	assert.Equal(t, "True", text(at(approved.body, "status", "conditions").([]any)[0], "status"))
	a.must(422, "PUT", path("v1")+"/new/approval", `{"metadata":{"name":"new"},"spec":{"request":"`+request+`","signerName":"example.com/s"},"status":{"conditions":[{"type":"Approved"}]}}`)
	a.must(422, "PUT", path("v1")+"/new/status", `{"metadata":{"name":"new"},"status":{"certificate":"`+request+`"}}`)
}

func TestIngressBackends(t *testing.T) {
	a := inRelease(t, "1.21")
	body := `{"metadata":{"name":"i"},"spec":{"backend":{"serviceName":"s","servicePort":80},"rules":[{"http":{"paths":[
		{"path":"/a","backend":{"serviceName":"b","servicePort":"web"}}]}}]}}`
	old := "/apis/networking.k8s.io/v1beta1/namespaces/default/ingresses"
	v1 := "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
	a.must(201, "POST", old, body)
	now := a.must(200, "GET", v1+"/i", nil).body
	assert.Equal(t, map[string]any{"service": map[string]any{"name": "s", "port": map[string]any{"number": 80.0}}}, at(now, "spec", "defaultBackend"))
	way := at(at(now, "spec", "rules").([]any)[0], "http", "paths").([]any)[0]
	assert.Equal(t, map[string]any{"name": "b", "port": map[string]any{"name": "web"}}, at(way, "backend", "service"))
	assert.Equal(t, "ImplementationSpecific", text(way, "pathType"))
	assert.Equal(t, "b", text(at(at(a.must(200, "GET", "/apis/extensions/v1beta1/namespaces/default/ingresses/i", nil).body, "spec", "rules").([]any)[0], "http", "paths").([]any)[0], "backend", "serviceName"))
	refused := a.must(422, "POST", v1, `{"metadata":{"name":"j"},"spec":{"rules":[{"http":{"paths":[{"path":"/a","backend":{"service":{"name":"b","port":{"number":80}}}}]}}]}}`)
	assert.Contains(t, string(refused.raw), "pathType must be specified")
}

func TestWorkloadDefaults(t *testing.T) {
	a := inRelease(t, "1.15")
	spec := func(version, plural, more string) map[string]any {
		name := strings.ReplaceAll(version, "/", "-")
		got := a.must(201, "POST", "/apis/"+version+"/namespaces/default/"+plural, `{"metadata":{"name":"`+name+`"},"spec":{"template":`+podTemplate+more+`}}`)
		item := "/apis/" + version + "/namespaces/default/" + plural + "/" + name
		again := a.do("PATCH", item, `{"spec":{"selector":{"matchLabels":{"app":"b"}},"template":{"metadata":{"labels":{"app":"b"}}}}}`)
		want := map[bool]int{true: 200, false: 422}[strings.HasSuffix(version, "v1beta1") && plural != "statefulsets"]
		assert.Equal(t, want, again.code, "%s %s: a change of the selector", version, plural)
		return at(got.body, "spec").(map[string]any)
	}
	selector := `,"selector":{"matchLabels":{"app":"a"}}`
	for _, plural := range []string{"deployments", "daemonsets", "statefulsets", "replicasets"} {
		a.must(422, "POST", "/apis/apps/v1/namespaces/default/"+plural, `{"metadata":{"name":"none"},"spec":{"template":`+podTemplate+`}}`)
	}
	old, first, now := spec("extensions/v1beta1", "deployments", `,"rollbackTo":{"revision":3}`), spec("apps/v1beta1", "deployments", ""), spec("apps/v1", "deployments", selector)
	assert.Equal(t, map[string]any{"app": "a"}, at(old, "selector", "matchLabels"))
	for _, c := range []struct {
		spec              map[string]any
		history, deadline any
		surge             any
	}{{old, 2147483647.0, 2147483647.0, 1.0}, {first, 2.0, 600.0, "25%"}, {now, 10.0, 600.0, "25%"}} {
		assert.Equal(t, c.history, at(c.spec, "revisionHistoryLimit"))
		assert.Equal(t, c.deadline, at(c.spec, "progressDeadlineSeconds"))
		assert.Equal(t, c.surge, at(c.spec, "strategy", "rollingUpdate", "maxSurge"))
		assert.Equal(t, c.surge, at(c.spec, "strategy", "rollingUpdate", "maxUnavailable"))
	}
	assert.EqualValues(t, 3, at(old, "rollbackTo", "revision"))
	rolled := a.must(200, "GET", "/apis/apps/v1/namespaces/default/deployments/extensions-v1beta1", nil)
	assert.Nil(t, at(rolled.body, "spec", "rollbackTo"))
	assert.Equal(t, "3", text(rolled.body, "metadata", "annotations", "deprecated.deployment.rollback.to"))

	daemon := spec("extensions/v1beta1", "daemonsets", "")
	assert.Equal(t, "OnDelete", text(daemon, "updateStrategy", "type"))
	assert.EqualValues(t, 1, at(daemon, "templateGeneration"))
	daemon = spec("apps/v1", "daemonsets", selector)
	assert.Equal(t, "RollingUpdate", text(daemon, "updateStrategy", "type"))
	assert.Nil(t, at(daemon, "templateGeneration"))
	assert.Equal(t, "OnDelete", text(spec("apps/v1beta1", "statefulsets", `,"serviceName":"s"`), "updateStrategy", "type"))
	assert.Equal(t, "RollingUpdate", text(spec("apps/v1", "statefulsets", `,"serviceName":"s"`+selector), "updateStrategy", "type"))
}

// TestReleaseFaults: what is no release, or none that is known, is a fault of Build.
func TestReleaseFaults(t *testing.T) {
	for release, want := range map[string]string{
		"1.14": "Release: 1.14 is not known: there are 1.15 to 1.37", "1.99": "Release: 1.99 is not known: there are 1.15 to 1.37",
		"v1.22": `Release: invalid release "v1.22": must have a form like 1.37`, "1.22.3": `Release: invalid release "1.22.3": must have a form like 1.37`,
		"1.022": `Release: invalid release "1.022": must have a form like 1.37`, "x": `Release: invalid release "x": must have a form like 1.37`,
	} {
		_, err := (&server.Builder{Release: release}).Build(t.Context())
		assert.ErrorContains(t, err, want, release)
	}
	a := inProcess(t, servertest.New(t, func(b *server.Builder) { b.Release = "1.22" }))
	version := a.must(200, "GET", "/version", nil).body
	assert.Equal(t, []any{"1", "22", "v1.22.0"}, []any{version["major"], version["minor"], version["gitVersion"]})
}

// TestStatusOfVersionsWithout: in a version that does not have the sub-resource the status is
// written with the rest of the object, and in others through it alone.
func TestStatusOfVersionsWithout(t *testing.T) {
	a := inRelease(t, "1.21")
	schema := `"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`
	a.must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com","scope":"Cluster",
		"names":{"plural":"lamps","kind":"Lamp"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},`+schema+`},{"name":"v1beta1","served":true,"storage":false,`+schema+`}]}}`)
	a.established("lamps.example.com")
	for of, body := range map[string]string{
		"/apis/storage.k8s.io/%s/volumeattachments": `"spec":{"attacher":"example.com","nodeName":"n","source":{"persistentVolumeName":"v"}},"status":{"attached":true}`,
		"/apis/example.com/%s/lamps":                `"apiVersion":"example.com/VERSION","kind":"Lamp","status":{"attached":true}`,
	} {
		former, now := fmt.Sprintf(of, "v1beta1"), fmt.Sprintf(of, "v1")
		create := func(version, path, name string) {
			a.must(201, "POST", path, `{"metadata":{"name":"`+name+`"},`+strings.ReplaceAll(body, "VERSION", version)+`}`)
		}
		attached := func(name string) any {
			return at(a.must(200, "GET", now+"/"+name, nil).body, "status", "attached")
		}
		create("v1beta1", former, "old")
		create("v1", now, "new")
		assert.Equal(t, true, attached("old"), of)
		assert.NotEqual(t, true, attached("new"), of)
		a.must(404, "GET", former+"/old/status", nil)
		a.must(200, "GET", now+"/old/status", nil)
		a.must(200, "PATCH", now+"/old", `{"status":{"attached":false}}`)
		assert.Equal(t, true, attached("old"), of)
		was := at(a.must(200, "GET", now+"/old", nil).body, "metadata", "generation")
		a.must(200, "PATCH", former+"/old", `{"status":{"attached":false}}`)
		assert.Equal(t, false, attached("old"), of)
		if is := at(a.must(200, "GET", now+"/old", nil).body, "metadata", "generation"); was != nil {
			assert.Equal(t, was.(float64)+1, is, of)
		}
		a.must(200, "PATCH", now+"/old/status", `{"status":{"attached":true}}`)
		assert.Equal(t, true, attached("old"), of)
	}
}
