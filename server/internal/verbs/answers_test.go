package verbs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

const (
	leases       = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	clusterRoles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
)

// TestResponsesToUnusualRequests: the responses to unusual options, bodies and paths are those that clients expect.
// Each row creates the objects that it needs.
func TestResponsesToUnusualRequests(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
	a.Must(201, "POST", clusterRoles, `{"metadata":{"name":"r"},"rules":[]}`)
	a.Must(201, "POST", leases, `{"metadata":{"name":"l"}}`)
	a.Must(201, "POST", apitest.ConfigMapsPath, `{"metadata":{"name":"held","finalizers":["x.io/f"],"generation":7}}`)
	a.Must(200, "DELETE", apitest.ConfigMapsPath+"/held", nil)
	const merge, strategic = "application/merge-patch+json", "application/strategic-merge-patch+json"
	for _, c := range []struct {
		method, path, body, media string
		code                      int
		want                      string // reason, and the fields of the causes
	}{
		// Options of lists and watches.
		{"GET", apitest.ConfigMapsPath + "?limit=", "", "", 400, "BadRequest"},
		{"GET", apitest.ConfigMapsPath + "?timeoutSeconds=", "", "", 400, "BadRequest"},
		{"GET", apitest.ConfigMapsPath + "?timeout=soon", "", "", 400, "BadRequest"},
		{"GET", apitest.ConfigMapsPath + "?timeout=0s", "", "", 200, ""},
		{"GET", apitest.ConfigMapsPath + "?timeout=10h", "", "", 200, ""},
		{"GET", apitest.ConfigMapsPath + "?timeout=30s", "", "", 200, ""},
		{"GET", apitest.ConfigMapsPath + "?sendInitialEvents=1&resourceVersionMatch=Exact", "", "", 422, "Invalid Forbidden:resourceVersionMatch Forbidden:sendInitialEvents"},
		{"GET", apitest.ConfigMapsPath + "?resourceVersionMatch=Exact&fieldSelector=data%3Dx", "", "", 422, "Invalid Forbidden:resourceVersionMatch"},
		{"GET", apitest.ConfigMapsPath + "?watch=1&resourceVersionMatch=Exact&resourceVersion=1", "", "", 422, "Invalid Forbidden:resourceVersionMatch NotSupported:resourceVersionMatch"},
		{"GET", apitest.ConfigMapsPath + "?watch=1&sendInitialEvents=1&resourceVersionMatch=Exact", "", "", 422, "Invalid Forbidden:resourceVersionMatch NotSupported:resourceVersionMatch"},
		{"GET", apitest.ConfigMapsPath + "?watch=1&sendInitialEvents=0", "", "", 422, "Invalid Forbidden:resourceVersionMatch"},
		{"GET", apitest.ConfigMapsPath + "?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&continue=x", "", "", 422, "Invalid Forbidden:resourceVersionMatch"},
		{"GET", apitest.ConfigMapsPath + "?watch=1&continue=x", "", "", 422, "Invalid Forbidden:resourceVersionMatch"},
		{"GET", clusterRoles + "?fieldSelector=metadata.namespace%3Dx", "", "", 200, ""},
		{"GET", apitest.NamespacesPath + "?fieldSelector=metadata.namespace%3Dx", "", "", 400, "BadRequest"},
		{"DELETE", apitest.ConfigMapsPath + "?limit=x", `{"propagationPolicy":"Sideways"}`, "", 400, "BadRequest"},

		// The deprecated watch paths only watch. A name in the path must agree with the selector.
		{"POST", "/api/v1/watch/namespaces/default/configmaps", `{"metadata":{"name":"w"}}`, "", 405, "MethodNotAllowed"},
		{"DELETE", "/api/v1/watch/namespaces/default/configmaps/a", "", "", 405, "MethodNotAllowed"},
		{"GET", "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db", "", "", 400, "BadRequest"},
		{"GET", "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.namespace%3Ddefault", "", "", 400, "BadRequest"},

		// A namespace contains no Namespace objects.
		{"GET", apitest.NamespacesPath + "/default/namespaces", "", "", 404, "NotFound"},
		{"GET", apitest.NamespacesPath + "/default/namespaces/kube-system", "", "", 404, "NotFound"},
		{"GET", apitest.NamespacesPath + "/default/namespaces/default", "", "", 404, "NotFound"},
		{"DELETE", apitest.NamespacesPath + "/default/namespaces/kube-system", "", "", 404, "NotFound"},
		{"GET", apitest.NamespacesPath + "/default/namespaces/default", "", "", 404, "NotFound"},
		{"DELETE", apitest.NamespacesPath + "/default/namespaces/default", "", "", 404, "NotFound"},
		{"GET", apitest.NamespacesPath + "/default/status/more", "", "", 404, "NotFound"},
		{"GET", apitest.NamespacesPath + "/default/namespaces?watch=1", "", "", 404, "NotFound"},

		// Bodies.
		{"POST", apitest.ConfigMapsPath, `null`, "", 422, "Invalid Required:metadata.name"},
		{"POST", apitest.ConfigMapsPath, ``, "application/yaml", 422, "Invalid Required:metadata.name"},
		{"POST", apitest.ConfigMapsPath, `# nothing`, "application/yaml", 422, "Invalid Required:metadata.name"},
		{"PUT", apitest.ConfigMapsPath + "/a", `null`, "", 400, "BadRequest"},
		{"PATCH", apitest.ConfigMapsPath + "/a", `null`, merge, 400, "BadRequest"},
		{"PATCH", apitest.ConfigMapsPath + "/a?fieldManager=m", `null`, "application/apply-patch+yaml", 400, "BadRequest"},
		{"PATCH", apitest.ConfigMapsPath + "/a?dryRun=Some&fieldValidation=Odd", `{}`, "application/apply-patch+yaml", 422, "Invalid Required:fieldManager NotSupported:dryRun NotSupported:fieldValidation"},
		{"PATCH", apitest.ConfigMapsPath + "/a?dryRun=Some&force=true", `{}`, merge, 422, "Invalid Forbidden:force NotSupported:dryRun"},
		{"POST", leases + "?dryRun=All", `{"metadata":{"name":"z"},"spec":{"renewTime":"2024-01-02T03:04:05Z"}}`, "", 400, "BadRequest"},
		{"POST", leases + "?dryRun=All", `{"metadata":{"name":"z"},"spec":{"renewTime":"2024-01-02T03:04:05.000006+01:00"}}`, "", 201, ""},
		{"POST", "/api/v1/namespaces/default/serviceaccounts?dryRun=All", `{"metadata":{"name":"z"},"secrets":[{"name":"x"},{}]}`, "", 201, ""},
		{"POST", apitest.ConfigMapsPath, `{"kind":5}`, "", 400, "BadRequest"},
		{"POST", apitest.ConfigMapsPath, `{"apiVersion":[],"metadata":{"name":"x"}}`, "", 400, "BadRequest"},
		{"PATCH", apitest.ConfigMapsPath + "/a", `{"metadata":null}`, merge, 400, "BadRequest"},
		{"PATCH", apitest.ConfigMapsPath + "/none", `{`, merge, 404, "NotFound"},
		{"PATCH", apitest.ConfigMapsPath + "/a?dryRun=All", `{"kind":0}`, strategic, 422, "Invalid Invalid:patch"},
		{"PATCH", apitest.ConfigMapsPath + "/a?dryRun=All", `{"apiVersion":{"a":null}}`, strategic, 422, "Invalid Invalid:patch"},
		{"PATCH", apitest.ConfigMapsPath + "/a?dryRun=All", `{"apiVersion":"x","kind":null}`, strategic, 200, ""},
		{"POST", apitest.ConfigMapsPath + "?dryRun=All", `{"metadata":{"name":"z","resourceVersion":"0"}}`, "", 201, ""},

		// In a create, the resourceVersion is checked after the object is validated, and only if the object is
		// stored. In an update, it is checked first.
		{"POST", apitest.ConfigMapsPath + "?dryRun=All", `{"metadata":{"name":"z","resourceVersion":"7"}}`, "", 201, ""},
		{"POST", apitest.ConfigMapsPath + "?dryRun=All", `{"metadata":{"generateName":"z","resourceVersion":"7"}}`, "", 201, ""},
		{"POST", apitest.ConfigMapsPath + "?dryRun=All", `{"metadata":{"name":"z","resourceVersion":"seven"}}`, "", 201, ""},
		{"POST", apitest.ConfigMapsPath + "?dryRun=All", `{"metadata":{"name":"a","resourceVersion":"7"}}`, "", 409, "AlreadyExists"},
		{"POST", apitest.ConfigMapsPath, `{"metadata":{"name":"z","resourceVersion":"7"}}`, "", 400, "BadRequest"},
		{"POST", apitest.ConfigMapsPath, `{"metadata":{"name":"a","resourceVersion":"7"}}`, "", 400, "BadRequest"},
		{"POST", apitest.ConfigMapsPath, `{"metadata":{"generateName":"z","resourceVersion":"7"}}`, "", 400, "BadRequest"},
		{"POST", apitest.ConfigMapsPath, `{"metadata":{"name":"Z","resourceVersion":"7"}}`, "", 422, "Invalid Invalid:metadata.name"},
		{"POST", apitest.ConfigMapsPath, `{"metadata":{"name":"z","resourceVersion":"7","labels":{"a b":""}}}`, "", 422, "Invalid Invalid:metadata.labels"},
		{"PUT", apitest.ConfigMapsPath + "/a", `{"metadata":{"name":"a","resourceVersion":"1","labels":{"a b":""}}}`, "", 409, "Conflict"},
		{"PATCH", apitest.ConfigMapsPath + "/a", `{"metadata":{"resourceVersion":"1","labels":{"a b":""}}}`, merge, 409, "Conflict"},
		{"POST", clusterRoles + "?dryRun=All", `{"metadata":{"name":"z","namespace":"any"}}`, "", 201, ""},
		{"PUT", clusterRoles + "/r", `{"metadata":{"name":"r","namespace":"any"}}`, "", 200, ""},

		// Preconditions of PUT: "0" is not a version. Another uid is a conflict, even if the object does not exist
		// and PUT would create it.
		{"PUT", apitest.ConfigMapsPath + "/a", `{"metadata":{"name":"a","resourceVersion":"0"}}`, "", 200, ""},
		{"PUT", apitest.ConfigMapsPath + "/none", `{"metadata":{"name":"none","resourceVersion":"5"}}`, "", 404, "NotFound"},
		{"PUT", apitest.ConfigMapsPath + "/none", `{"metadata":{"name":"none","uid":"u"}}`, "", 404, "NotFound"},
		{"PUT", leases + "/none?dryRun=All", `{"metadata":{"name":"none","uid":"u"}}`, "", 409, "Conflict"},
		{"PUT", leases + "/none?dryRun=All", `{"metadata":{"name":"none","resourceVersion":"5"}}`, "", 201, ""},
		{"PUT", "/api/v1/namespaces/default/services/none?dryRun=All", `{"metadata":{"name":"none","uid":"u"},"spec":{"ports":[{"port":80}]}}`, "", 409, "Conflict"},
		{"PUT", "/api/v1/namespaces/default/services/none?dryRun=All", `{"metadata":{"name":"none"},"spec":{"ports":[{"port":80}]}}`, "", 201, ""},
		{"PUT", leases + "/l", `{"metadata":{"name":"l","resourceVersion":"0"}}`, "", 422, "Invalid Invalid:metadata.resourceVersion"},

		// Metadata of an object that is being deleted, and invalid labels.
		{"PUT", apitest.ConfigMapsPath + "/held", `{"metadata":{"name":"held","finalizers":["x.io/f"],"deletionTimestamp":"2001-01-01T00:00:00Z"}}`, "", 200, ""},
		{"PUT", apitest.ConfigMapsPath + "/a", `{"metadata":{"name":"a","labels":{"a b":""}}}`, "", 422, "Invalid Invalid:metadata.labels"},
		{"PATCH", leases + "/l", `{"metadata":{"labels":{"a b":""}}}`, merge, 422, "Invalid Invalid:metadata.labels"},
		{"PUT", clusterRoles + "/r", `{"metadata":{"name":"r","labels":{"a b":""}}}`, "", 422, "Invalid Invalid:metadata.labels"},
		{"PATCH", apitest.NamespacesPath + "/default/status", `{"metadata":{"labels":{"a b":""}}}`, merge, 422, "Invalid Invalid:metadata.labels"},

		// Options of deletes: an empty option counts as set.
		{"DELETE", apitest.ConfigMapsPath + "/a?propagationPolicy=", "", "", 422, "Invalid NotSupported:propagationPolicy"},
		{"DELETE", apitest.ConfigMapsPath + "/a", `{"propagationPolicy":""}`, "", 422, "Invalid NotSupported:propagationPolicy"},
		{"DELETE", apitest.ConfigMapsPath + "/a", `{"propagationPolicy":"X","orphanDependents":true,"dryRun":["Some"]}`, "", 422, "Invalid Invalid:propagationPolicy NotSupported:propagationPolicy NotSupported:dryRun"},
		{"DELETE", apitest.ConfigMapsPath + "/a?gracePeriodSeconds=", "", "", 400, "BadRequest"},
		{"DELETE", apitest.ConfigMapsPath + "/a", `{"preconditions":{"uid":""}}`, "", 409, "Conflict"},
		{"DELETE", apitest.ConfigMapsPath + "/a", `{"preconditions":{"resourceVersion":""}}`, "", 409, "Conflict"},
		{"DELETE", apitest.ConfigMapsPath + "/a", `null`, "", 200, ""},

		// Namespaces.
		{"PUT", apitest.NamespacesPath + "/default/status", `{"metadata":{"name":"default"},"status":{"phase":"Terminating"}}`, "", 422, "Invalid Invalid:status.Phase"},
		{"PUT", apitest.NamespacesPath + "/default/status", `{"metadata":{"name":"default"},"status":{}}`, "", 200, ""},
		{"GET", apitest.NamespacesPath + "/default/finalize", "", "", 405, "MethodNotAllowed"},
		{"POST", apitest.NamespacesPath, `{"metadata":{"name":"n"},"spec":{"finalizers":["bad"]}}`, "", 422, "Invalid Invalid:spec.finalizers"},
		{"PUT", apitest.NamespacesPath + "/default/finalize", `{"metadata":{"name":"default"},"spec":{"finalizers":["bad"]}}`, "", 422, "Invalid Invalid:spec.finalizers[0]"},

		// Unknown HTTP methods.
		{"get", apitest.ConfigMapsPath + "/held", "", "", 405, "MethodNotAllowed"},
		{"WATCH", apitest.ConfigMapsPath, "", "", 405, "MethodNotAllowed"},
	} {
		var headers []string
		if c.media != "" {
			headers = []string{"Content-Type", c.media}
		}
		var body any
		if c.body != "" {
			body = c.body
		}
		got := a.Do(c.method, c.path, body, headers...)
		name := c.method + " " + c.path + " " + c.body
		if !assert.Equal(t, c.code, got.Code, "%s: %.300s", name, got.Raw) || c.code < 300 {
			continue
		}
		got.RequireStatus(t)
		words := []string{apitest.NestedString(got.Body, "reason")}
		causes, _ := apitest.Nested(got.Body, "details", "causes").([]any)
		for _, cause := range causes {
			if field := apitest.NestedString(cause, "field"); field != "" {
				words = append(words, strings.TrimPrefix(apitest.NestedString(cause, "reason"), "FieldValue")+":"+field)
			}
		}
		assert.Equal(t, c.want, strings.Join(words, " "), name)
	}
	for _, accept := range []string{"text/html", "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1", "application/*"} {
		got := a.Must(406, "GET", "/apis", nil, "Accept", accept)
		assert.Equal(t, "application/json", got.Header.Get("Content-Type"), accept)
	}
	assert.Equal(t, 404, a.Do("GET", "/apis//", nil).Code)
	assert.EqualValues(t, 8, apitest.Nested(a.Must(200, "GET", apitest.ConfigMapsPath+"/held", nil).Body, "metadata", "generation"), "a deletion changes the generation")
	drivers := "/apis/storage.k8s.io/v1/csidrivers"
	assert.Nil(t, apitest.Nested(a.Must(201, "POST", drivers, `{"metadata":{"name":"d"}}`).Body, "metadata", "generation"))
	changed := a.Must(200, "PATCH", drivers+"/d", `{"spec":{"storageCapacity":true}}`, "Content-Type", "application/merge-patch+json")
	assert.EqualValues(t, 1, apitest.Nested(changed.Body, "metadata", "generation"), "the generation is set by the first change of a driver")
	a.Must(403, "DELETE", apitest.NamespacesPath+"/default?uid=other", nil)
	a.Must(201, "POST", apitest.NamespacesPath, `{"metadata":{"name":"n"}}`)
	a.Must(201, "POST", "/api/v1/namespaces/default/events", `{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"}}`)
	assert.Equal(t, "Status", apitest.NestedString(a.Must(200, "DELETE", "/api/v1/namespaces/default/events/e?propagationPolicy=Orphan", nil).Body, "kind"), "an event has no dependents")
	a.Must(200, "PUT", apitest.NamespacesPath+"/n", `{"metadata":{"name":"n","labels":{"a":"b"}}}`)
	finalized := a.Must(200, "PUT", apitest.NamespacesPath+"/n/finalize", `{"metadata":{"name":"n","labels":{"c":"d"}},"spec":{"finalizers":["kubernetes"]}}`)
	broken := a.Must(201, "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s"},"type":"kubernetes.io/tls","data":{"tls.crt":"YQ==","tls.key":"YQ=="}}`)
	assert.Contains(t, broken.Header.Get("Warning"), "certificate")
	assert.Equal(t, map[string]any{"c": "d", "kubernetes.io/metadata.name": "n"}, apitest.Nested(finalized.Body, "metadata", "labels"))
	assert.Equal(t, "namespaces", apitest.Nested(a.Must(409, "DELETE", apitest.NamespacesPath+"/n?uid=other", nil).Body, "details", "kind"))
}
