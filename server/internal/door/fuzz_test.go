package door_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
)

// FuzzRequest sends arbitrary requests. No response is a 5xx except a timeout, every error is a
// Status, and nothing panics or hangs.
func FuzzRequest(f *testing.F) {
	s, log := apitest.NewErrorFree(f, func(b *server.Builder) {
		b.Limits.FutureWait, b.Limits.RequestTime, b.Limits.Body = time.Millisecond, 20*time.Second, 64<<10
	})
	fill := func(t testing.TB) {
		a := apitest.InProcess(t, s)
		a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x", "v", "1"))
		a.Do("POST", "/apis/apps/v1/namespaces/default/deployments", `{"metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	}
	for _, seed := range []struct{ method, path, query, typ, accept, body string }{
		{"GET", apitest.ConfigMapsPath, "limit=1&resourceVersion=1", "", "", ""},
		{"GET", apitest.ConfigMapsPath + "/x", "pretty=1", "", "application/yaml", ""},
		{"GET", apitest.ConfigMapsPath, "labelSelector=a+in+(b),!c&fieldSelector=metadata.name!=y", "", "application/json;as=Table;g=meta.k8s.io;v=v1", ""},
		{"GET", apitest.ConfigMapsPath, "watch=1&timeoutSeconds=1&resourceVersion=1&allowWatchBookmarks=1", "", "application/vnd.kubernetes.protobuf", ""},
		{"GET", apitest.ConfigMapsPath, "continue=eyJydiI6MSwic3RhcnQiOiJkZWZhdWx0L2EifQ", "", "", ""},
		{"POST", apitest.ConfigMapsPath, "dryRun=All&fieldManager=m&fieldValidation=Strict", "application/json", "", `{"metadata":{"generateName":"n"},"data":{"a":"b"}}`},
		{"POST", apitest.ConfigMapsPath, "", "application/yaml", "", "metadata: {name: y}\ndata: {a: b}\n"},
		{"POST", apitest.ConfigMapsPath, "", "application/vnd.kubernetes.protobuf", "", "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01z"},
		{"POST", "/apis/apps/v1/namespaces/default/deployments", "", "application/json", "", `{"metadata":{"name":"y"},"spec":{"replicas":-1,"strategy":{"rollingUpdate":{"maxSurge":"1%"}},"template":{}}}`},
		{"POST", "/api/v1/namespaces/default/serviceaccounts/default/token", "", "application/json", "", `{"spec":{"audiences":["a"]}}`},
		{"PUT", apitest.ConfigMapsPath + "/x", "", "application/json", "", `{"metadata":{"name":"x","resourceVersion":"1","ownerReferences":[{"uid":"u"}]}}`},
		{"PUT", "/api/v1/namespaces/default/finalize", "", "application/json", "", `{"metadata":{"name":"default"},"spec":{"finalizers":["x"]}}`},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", "", "application/json", "", `{"metadata":{"name":"l"},"spec":{"renewTime":"2020-01-01T00:00:00.000001Z"}}`},
		{"PATCH", apitest.ConfigMapsPath + "/x", "", "application/json-patch+json", "", `[{"op":"add","path":"/data/a~1b","value":"c"},{"op":"test","path":"/data/v","value":"1"}]`},
		{"PATCH", apitest.ConfigMapsPath + "/x", "", "application/merge-patch+json", "", `{"metadata":{"managedFields":[{}],"labels":{"a":null}}}`},
		{"PATCH", "/apis/apps/v1/namespaces/default/deployments/x", "", "application/strategic-merge-patch+json", "", `{"spec":{"template":{"spec":{"containers":[{"name":"c","$patch":"delete"},{"name":"d","image":"e"}],"$setElementOrder/containers":[{"name":"d"}]}}}}`},
		{"PATCH", "/apis/apps/v1/namespaces/default/deployments/x", "fieldManager=m&force=1", "application/apply-patch+yaml", "", `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[{"name":"c","ports":[{"containerPort":1}]}]}}}}`},
		{"PATCH", "/apis/apps/v1/namespaces/default/deployments/x/scale", "", "application/merge-patch+json", "", `{"spec":{"replicas":2}}`},
		{"DELETE", apitest.ConfigMapsPath + "/x", "propagationPolicy=Foreground", "application/json", "", `{"preconditions":{"uid":"u"}}`},
		{"DELETE", apitest.ConfigMapsPath, "labelSelector=a&gracePeriodSeconds=0&orphanDependents=1", "", "", ""},
		{"GET", "/apis", "", "", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", ""},
		{"GET", "/openapi/v3/api/v1", "hash=x", "", "", ""},
		{"GET", "/readyz/ping", "verbose&exclude=log", "", "", ""},
		{"HEAD", "/api/v1/watch/namespaces/default/configmaps/x", "", "", "", ""},
		{"OPTIONS", "/apis/apps/v1/deployments", "watch=true&sendInitialEvents=1", "", "", ""},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.typ, seed.accept, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, method, path, query, typ, accept string, body []byte) {
		fill(t)
		ctx, cancel := context.WithTimeout(t.Context(), apitest.Timeout)
		defer cancel()
		watching := strings.Contains(query+path, "watch")
		r := (&http.Request{
			Method: method, URL: &url.URL{Scheme: "http", Host: "in-process", Path: path, RawQuery: query},
			Header: http.Header{"Content-Type": {typ}, "Accept": {accept}},
		}).WithContext(ctx)
		if len(body) > 0 {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
		}
		res, err := s.Transport().RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode == http.StatusOK && watching {
			return // the watch may not end
		}
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if errors := log.Take(); len(errors) > 0 {
			t.Fatalf("logged: %q", errors)
		}
		checkResponse(t, res, method, raw)
	})
}

// checkResponse checks the invariants of every response.
func checkResponse(t *testing.T, res *http.Response, method string, raw []byte) {
	code := res.StatusCode
	if code < 400 || method == http.MethodHead {
		return
	}
	if code >= 500 && code != http.StatusGatewayTimeout {
		t.Fatalf("%d: %s", code, raw)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		return // another format, or the plain 404 of a path that is not part of the API
	}
	var st struct {
		Kind, Status, Reason, Message string
		Code                          int
	}
	if err := json.Unmarshal(raw, &st); err != nil || st.Kind != "Status" || st.Status != "Failure" || st.Code != code || st.Message == "" || st.Reason == "" {
		t.Fatalf("%d is no Status: %v %s", code, err, raw)
	}
}
