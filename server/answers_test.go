package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/servertest"
)

const (
	namespaces   = "/api/v1/namespaces"
	leases       = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	clusterRoles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
)

// TestAnswers: what callers get for odd options, bodies and paths, as clients
// know it. Each row has a server to itself, as far as names go: it makes the
// objects it needs.
func TestAnswers(t *testing.T) {
	a := inProcess(t, servertest.New(t))
	a.must(201, "POST", configMaps, newConfigMap("a"))
	a.must(201, "POST", clusterRoles, `{"metadata":{"name":"r"},"rules":[]}`)
	a.must(201, "POST", leases, `{"metadata":{"name":"l"}}`)
	a.must(201, "POST", configMaps, `{"metadata":{"name":"held","finalizers":["x.io/f"],"generation":7}}`)
	a.must(200, "DELETE", configMaps+"/held", nil)
	const merge, strategic = "application/merge-patch+json", "application/strategic-merge-patch+json"
	for _, c := range []struct {
		method, path, body, media string
		code                      int
		want                      string // reason, and the fields of the causes
	}{
		// Options of lists and watches.
		{"GET", configMaps + "?limit=", "", "", 400, "BadRequest"},
		{"GET", configMaps + "?timeoutSeconds=", "", "", 400, "BadRequest"},
		{"GET", configMaps + "?timeout=soon", "", "", 400, "BadRequest"},
		{"GET", configMaps + "?timeout=0s", "", "", 200, ""},
		{"GET", configMaps + "?timeout=10h", "", "", 200, ""},
		{"GET", configMaps + "?timeout=30s", "", "", 200, ""},
		{"GET", configMaps + "?sendInitialEvents=1&resourceVersionMatch=Exact", "", "", 422, "Invalid Forbidden:resourceVersionMatch Forbidden:sendInitialEvents"},
		{"GET", configMaps + "?resourceVersionMatch=Exact&fieldSelector=data%3Dx", "", "", 422, "Invalid Forbidden:resourceVersionMatch"},
		{"GET", configMaps + "?watch=1&resourceVersionMatch=Exact&resourceVersion=1", "", "", 422, "Invalid Forbidden:resourceVersionMatch NotSupported:resourceVersionMatch"},
		{"GET", configMaps + "?watch=1&sendInitialEvents=1&resourceVersionMatch=Exact", "", "", 422, "Invalid Forbidden:resourceVersionMatch NotSupported:resourceVersionMatch"},
		{"GET", configMaps + "?watch=1&sendInitialEvents=0", "", "", 422, "Invalid Forbidden:resourceVersionMatch"},
		{"GET", configMaps + "?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&continue=x", "", "", 422, "Invalid Forbidden:resourceVersionMatch"},
		{"GET", configMaps + "?watch=1&continue=x", "", "", 422, "Invalid Forbidden:resourceVersionMatch"},
		{"GET", clusterRoles + "?fieldSelector=metadata.namespace%3Dx", "", "", 200, ""},
		{"GET", namespaces + "?fieldSelector=metadata.namespace%3Dx", "", "", 400, "BadRequest"},
		{"DELETE", configMaps + "?limit=x", `{"propagationPolicy":"Sideways"}`, "", 400, "BadRequest"},

		// The old paths of watches only watch; the name there and in a selector agree.
		{"POST", "/api/v1/watch/namespaces/default/configmaps", `{"metadata":{"name":"w"}}`, "", 405, "MethodNotAllowed"},
		{"DELETE", "/api/v1/watch/namespaces/default/configmaps/a", "", "", 405, "MethodNotAllowed"},
		{"GET", "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db", "", "", 400, "BadRequest"},
		{"GET", "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.namespace%3Ddefault", "", "", 400, "BadRequest"},

		// No namespace is in a namespace.
		{"GET", namespaces + "/default/namespaces", "", "", 404, "NotFound"},
		{"GET", namespaces + "/default/namespaces/kube-system", "", "", 404, "NotFound"},
		{"GET", namespaces + "/default/namespaces/default", "", "", 404, "NotFound"},
		{"DELETE", namespaces + "/default/namespaces/kube-system", "", "", 404, "NotFound"},
		{"GET", namespaces + "/default/namespaces/default", "", "", 404, "NotFound"},
		{"DELETE", namespaces + "/default/namespaces/default", "", "", 404, "NotFound"},
		{"GET", namespaces + "/default/status/more", "", "", 404, "NotFound"},
		{"GET", namespaces + "/default/namespaces?watch=1", "", "", 404, "NotFound"},

		// Bodies.
		{"POST", configMaps, `null`, "", 422, "Invalid Required:metadata.name"},
		{"POST", configMaps, ``, "application/yaml", 422, "Invalid Required:metadata.name"},
		{"POST", configMaps, `# nothing`, "application/yaml", 422, "Invalid Required:metadata.name"},
		{"PUT", configMaps + "/a", `null`, "", 400, "BadRequest"},
		{"PATCH", configMaps + "/a", `null`, merge, 400, "BadRequest"},
		{"PATCH", configMaps + "/a?fieldManager=m", `null`, "application/apply-patch+yaml", 400, "BadRequest"},
		{"PATCH", configMaps + "/a?dryRun=Some&fieldValidation=Odd", `{}`, "application/apply-patch+yaml", 422, "Invalid Required:fieldManager NotSupported:dryRun NotSupported:fieldValidation"},
		{"PATCH", configMaps + "/a?dryRun=Some&force=true", `{}`, merge, 422, "Invalid Forbidden:force NotSupported:dryRun"},
		{"POST", leases + "?dryRun=All", `{"metadata":{"name":"z"},"spec":{"renewTime":"2024-01-02T03:04:05Z"}}`, "", 400, "BadRequest"},
		{"POST", leases + "?dryRun=All", `{"metadata":{"name":"z"},"spec":{"renewTime":"2024-01-02T03:04:05.000006+01:00"}}`, "", 201, ""},
		{"POST", "/api/v1/namespaces/default/serviceaccounts?dryRun=All", `{"metadata":{"name":"z"},"secrets":[{"name":"x"},{}]}`, "", 201, ""},
		{"POST", configMaps, `{"kind":5}`, "", 400, "BadRequest"},
		{"POST", configMaps, `{"apiVersion":[],"metadata":{"name":"x"}}`, "", 400, "BadRequest"},
		{"PATCH", configMaps + "/a", `{"metadata":null}`, merge, 400, "BadRequest"},
		{"PATCH", configMaps + "/none", `{`, merge, 404, "NotFound"},
		{"PATCH", configMaps + "/a?dryRun=All", `{"kind":0}`, strategic, 422, "Invalid Invalid:patch"},
		{"PATCH", configMaps + "/a?dryRun=All", `{"apiVersion":{"a":null}}`, strategic, 422, "Invalid Invalid:patch"},
		{"PATCH", configMaps + "/a?dryRun=All", `{"apiVersion":"x","kind":null}`, strategic, 200, ""},
		{"POST", configMaps + "?dryRun=All", `{"metadata":{"name":"z","resourceVersion":"0"}}`, "", 201, ""},

		// The version in the body of a create comes after what is wrong with the
		// object, and counts only where something is kept; that of an update comes first.
		{"POST", configMaps + "?dryRun=All", `{"metadata":{"name":"z","resourceVersion":"7"}}`, "", 201, ""},
		{"POST", configMaps + "?dryRun=All", `{"metadata":{"generateName":"z","resourceVersion":"7"}}`, "", 201, ""},
		{"POST", configMaps + "?dryRun=All", `{"metadata":{"name":"z","resourceVersion":"seven"}}`, "", 201, ""},
		{"POST", configMaps + "?dryRun=All", `{"metadata":{"name":"a","resourceVersion":"7"}}`, "", 409, "AlreadyExists"},
		{"POST", configMaps, `{"metadata":{"name":"z","resourceVersion":"7"}}`, "", 400, "BadRequest"},
		{"POST", configMaps, `{"metadata":{"name":"a","resourceVersion":"7"}}`, "", 400, "BadRequest"},
		{"POST", configMaps, `{"metadata":{"generateName":"z","resourceVersion":"7"}}`, "", 400, "BadRequest"},
		{"POST", configMaps, `{"metadata":{"name":"Z","resourceVersion":"7"}}`, "", 422, "Invalid Invalid:metadata.name"},
		{"POST", configMaps, `{"metadata":{"name":"z","resourceVersion":"7","labels":{"a b":""}}}`, "", 422, "Invalid Invalid:metadata.labels"},
		{"PUT", configMaps + "/a", `{"metadata":{"name":"a","resourceVersion":"1","labels":{"a b":""}}}`, "", 409, "Conflict"},
		{"PATCH", configMaps + "/a", `{"metadata":{"resourceVersion":"1","labels":{"a b":""}}}`, merge, 409, "Conflict"},
		{"POST", clusterRoles + "?dryRun=All", `{"metadata":{"name":"z","namespace":"any"}}`, "", 201, ""},
		{"PUT", clusterRoles + "/r", `{"metadata":{"name":"r","namespace":"any"}}`, "", 200, ""},

		// Preconditions of PUT: 0 is no version, another's uid is a conflict, also
		// if nobody has the name and PUT creates.
		{"PUT", configMaps + "/a", `{"metadata":{"name":"a","resourceVersion":"0"}}`, "", 200, ""},
		{"PUT", configMaps + "/none", `{"metadata":{"name":"none","resourceVersion":"5"}}`, "", 404, "NotFound"},
		{"PUT", configMaps + "/none", `{"metadata":{"name":"none","uid":"u"}}`, "", 404, "NotFound"},
		{"PUT", leases + "/none?dryRun=All", `{"metadata":{"name":"none","uid":"u"}}`, "", 409, "Conflict"},
		{"PUT", leases + "/none?dryRun=All", `{"metadata":{"name":"none","resourceVersion":"5"}}`, "", 201, ""},
		{"PUT", "/api/v1/namespaces/default/services/none?dryRun=All", `{"metadata":{"name":"none","uid":"u"},"spec":{"ports":[{"port":80}]}}`, "", 409, "Conflict"},
		{"PUT", "/api/v1/namespaces/default/services/none?dryRun=All", `{"metadata":{"name":"none"},"spec":{"ports":[{"port":80}]}}`, "", 201, ""},
		{"PUT", leases + "/l", `{"metadata":{"name":"l","resourceVersion":"0"}}`, "", 422, "Invalid Invalid:metadata.resourceVersion"},

		// Metadata of an object that is being deleted, and invalid labels.
		{"PUT", configMaps + "/held", `{"metadata":{"name":"held","finalizers":["x.io/f"],"deletionTimestamp":"2001-01-01T00:00:00Z"}}`, "", 200, ""},
		{"PUT", configMaps + "/a", `{"metadata":{"name":"a","labels":{"a b":""}}}`, "", 422, "Invalid Invalid:metadata.labels"},
		{"PATCH", leases + "/l", `{"metadata":{"labels":{"a b":""}}}`, merge, 422, "Invalid Invalid:metadata.labels"},
		{"PUT", clusterRoles + "/r", `{"metadata":{"name":"r","labels":{"a b":""}}}`, "", 422, "Invalid Invalid:metadata.labels"},
		{"PATCH", namespaces + "/default/status", `{"metadata":{"labels":{"a b":""}}}`, merge, 422, "Invalid Invalid:metadata.labels"},

		// Options of deletes: what is given but empty is given.
		{"DELETE", configMaps + "/a?propagationPolicy=", "", "", 422, "Invalid NotSupported:propagationPolicy"},
		{"DELETE", configMaps + "/a", `{"propagationPolicy":""}`, "", 422, "Invalid NotSupported:propagationPolicy"},
		{"DELETE", configMaps + "/a", `{"propagationPolicy":"X","orphanDependents":true,"dryRun":["Some"]}`, "", 422, "Invalid Invalid:propagationPolicy NotSupported:propagationPolicy NotSupported:dryRun"},
		{"DELETE", configMaps + "/a?gracePeriodSeconds=", "", "", 400, "BadRequest"},
		{"DELETE", configMaps + "/a", `{"preconditions":{"uid":""}}`, "", 409, "Conflict"},
		{"DELETE", configMaps + "/a", `{"preconditions":{"resourceVersion":""}}`, "", 409, "Conflict"},
		{"DELETE", configMaps + "/a", `null`, "", 200, ""},

		// Namespaces.
		{"PUT", namespaces + "/default/status", `{"metadata":{"name":"default"},"status":{"phase":"Terminating"}}`, "", 422, "Invalid Invalid:status.Phase"},
		{"PUT", namespaces + "/default/status", `{"metadata":{"name":"default"},"status":{}}`, "", 200, ""},
		{"GET", namespaces + "/default/finalize", "", "", 405, "MethodNotAllowed"},
		{"POST", namespaces, `{"metadata":{"name":"n"},"spec":{"finalizers":["bad"]}}`, "", 422, "Invalid Invalid:spec.finalizers"},
		{"PUT", namespaces + "/default/finalize", `{"metadata":{"name":"default"},"spec":{"finalizers":["bad"]}}`, "", 422, "Invalid Invalid:spec.finalizers[0]"},

		// Methods that HTTP does not have.
		{"get", configMaps + "/held", "", "", 405, "MethodNotAllowed"},
		{"WATCH", configMaps, "", "", 405, "MethodNotAllowed"},
	} {
		var headers []string
		if c.media != "" {
			headers = []string{"Content-Type", c.media}
		}
		var body any
		if c.body != "" {
			body = c.body
		}
		got := a.do(c.method, c.path, body, headers...)
		name := c.method + " " + c.path + " " + c.body
		if !assert.Equal(t, c.code, got.code, "%s: %.300s", name, got.raw) || c.code < 300 {
			continue
		}
		got.wantStatus(t)
		words := []string{text(got.body, "reason")}
		causes, _ := at(got.body, "details", "causes").([]any)
		for _, cause := range causes {
			if field := text(cause, "field"); field != "" {
				words = append(words, strings.TrimPrefix(text(cause, "reason"), "FieldValue")+":"+field)
			}
		}
		assert.Equal(t, c.want, strings.Join(words, " "), name)
	}
	for _, accept := range []string{"text/html", "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1", "application/*"} {
		got := a.must(406, "GET", "/apis", nil, "Accept", accept)
		assert.Equal(t, "application/json", got.header.Get("Content-Type"), accept)
	}
	assert.Equal(t, 404, a.do("GET", "/apis//", nil).code)
	assert.EqualValues(t, 8, at(a.must(200, "GET", configMaps+"/held", nil).body, "metadata", "generation"), "a deletion counts")
	drivers := "/apis/storage.k8s.io/v1/csidrivers"
	assert.Nil(t, at(a.must(201, "POST", drivers, `{"metadata":{"name":"d"}}`).body, "metadata", "generation"))
	changed := a.must(200, "PATCH", drivers+"/d", `{"spec":{"storageCapacity":true}}`, "Content-Type", "application/merge-patch+json")
	assert.EqualValues(t, 1, at(changed.body, "metadata", "generation"), "the first change of a driver")
	a.must(403, "DELETE", namespaces+"/default?uid=other", nil)
	a.must(201, "POST", namespaces, `{"metadata":{"name":"n"}}`)
	a.must(201, "POST", "/api/v1/namespaces/default/events", `{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"}}`)
	assert.Equal(t, "Status", text(a.must(200, "DELETE", "/api/v1/namespaces/default/events/e?propagationPolicy=Orphan", nil).body, "kind"), "an event has no dependents")
	a.must(200, "PUT", namespaces+"/n", `{"metadata":{"name":"n","labels":{"a":"b"}}}`)
	finalized := a.must(200, "PUT", namespaces+"/n/finalize", `{"metadata":{"name":"n","labels":{"c":"d"}},"spec":{"finalizers":["kubernetes"]}}`)
	broken := a.must(201, "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s"},"type":"kubernetes.io/tls","data":{"tls.crt":"YQ==","tls.key":"YQ=="}}`)
	assert.Contains(t, broken.header.Get("Warning"), "certificate")
	assert.Equal(t, map[string]any{"c": "d", "kubernetes.io/metadata.name": "n"}, at(finalized.body, "metadata", "labels"))
	assert.Equal(t, "namespaces", at(a.must(409, "DELETE", namespaces+"/n?uid=other", nil).body, "details", "kind"))
}
