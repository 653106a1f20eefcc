package requestinfo

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOfParsesUnusualPaths checks the attributes of conventional paths, and of unusual spellings that must not bypass
// authorization.
func TestOfParsesUnusualPaths(t *testing.T) {
	type want struct {
		verb, group, version, resource, namespace, name, sub string
	}
	for _, c := range []struct {
		method, path string
		want         want // zero if the path is not a resource path
	}{
		{"GET", "/api/v1/configmaps", want{"list", "", "v1", "configmaps", "", "", ""}},
		{"GET", "/api/v1/namespaces/ns/configmaps", want{"list", "", "v1", "configmaps", "ns", "", ""}},
		{"GET", "/api/v1/namespaces/ns/configmaps/a", want{"get", "", "v1", "configmaps", "ns", "a", ""}},
		{"GET", "/api/v1/namespaces/ns/configmaps?watch=true", want{"watch", "", "v1", "configmaps", "ns", "", ""}},
		{"GET", "/api/v1/namespaces/ns/configmaps?watch", want{"watch", "", "v1", "configmaps", "ns", "", ""}},
		{"GET", "/api/v1/namespaces/ns/configmaps?watch=0", want{"list", "", "v1", "configmaps", "ns", "", ""}},
		{"GET", "/api/v1/namespaces/ns/configmaps/a?watch=true", want{"get", "", "v1", "configmaps", "ns", "a", ""}},
		{"GET", "/api/v1/watch/namespaces/ns/configmaps", want{"watch", "", "v1", "configmaps", "ns", "", ""}},
		{"GET", "/api/v1/watch/namespaces/ns/configmaps/a", want{"watch", "", "v1", "configmaps", "ns", "a", ""}},
		{"HEAD", "/api/v1/namespaces/ns/configmaps/a", want{"get", "", "v1", "configmaps", "ns", "a", ""}},
		{"HEAD", "/api/v1/configmaps", want{"list", "", "v1", "configmaps", "", "", ""}},
		{"POST", "/api/v1/namespaces/ns/configmaps", want{"create", "", "v1", "configmaps", "ns", "", ""}},
		{"PUT", "/api/v1/namespaces/ns/configmaps/a", want{"update", "", "v1", "configmaps", "ns", "a", ""}},
		{"PATCH", "/api/v1/namespaces/ns/configmaps/a", want{"patch", "", "v1", "configmaps", "ns", "a", ""}},
		{"DELETE", "/api/v1/namespaces/ns/configmaps/a", want{"delete", "", "v1", "configmaps", "ns", "a", ""}},
		{"DELETE", "/api/v1/namespaces/ns/configmaps", want{"deletecollection", "", "v1", "configmaps", "ns", "", ""}},
		{"OPTIONS", "/api/v1/namespaces/ns/configmaps", want{"", "", "v1", "configmaps", "ns", "", ""}},
		{"get", "/api/v1/namespaces/ns/configmaps", want{"", "", "v1", "configmaps", "ns", "", ""}},
		{"WATCH", "/api/v1/namespaces/ns/configmaps", want{"", "", "v1", "configmaps", "ns", "", ""}},
		{"DELETE", "/api/v1/watch/namespaces/ns/configmaps/a", want{"watch", "", "v1", "configmaps", "ns", "a", ""}},
		{"GET", "/api/v1/watch/namespaces/proxy/pods", want{"watch", "", "v1", "pods", "proxy", "", ""}},
		{"GET", "/api/v1/watch/namespaces/proxy/pods/a", want{"watch", "", "v1", "pods", "proxy", "a", ""}},
		{"GET", "/api/v1/watch/namespaces/ns/pods/proxy", want{"watch", "", "v1", "pods", "ns", "proxy", ""}},
		{"GET", "/api/v1/watch/namespaces/proxy", want{"watch", "", "v1", "namespaces", "proxy", "proxy", ""}},
		{"GET", "/apis/apps/v1/watch/namespaces/proxy/deployments", want{"watch", "apps", "v1", "deployments", "proxy", "", ""}},
		{"GET", "/api/v1/namespaces/proxy/pods", want{"list", "", "v1", "pods", "proxy", "", ""}},
		{"GET", "/api/v1/namespaces/proxy/pods/proxy/proxy/a/proxy/b", want{"get", "", "v1", "pods", "proxy", "proxy", "proxy"}},
		{"GET", "/api/v1/namespaces/proxy/pods/a/log", want{"get", "", "v1", "pods", "proxy", "a", "log"}},
		{"GET", "/api/v1/namespaces/log/pods/exec", want{"get", "", "v1", "pods", "log", "exec", ""}},
		{"GET", "/api/v1/namespaces/status/pods/scale/status", want{"get", "", "v1", "pods", "status", "scale", "status"}},
		{"GET", "/api/v1/namespaces/status/status", want{"get", "", "v1", "namespaces", "status", "status", "status"}},
		{"GET", "/api/v1/namespaces/watch/pods/watch", want{"get", "", "v1", "pods", "watch", "watch", ""}},
		{"GET", "/api/v1/namespaces/namespaces/pods", want{"list", "", "v1", "pods", "namespaces", "", ""}},
		{"GET", "/api/v1/nodes/proxy/proxy/x", want{"get", "", "v1", "nodes", "", "proxy", "proxy"}},
		{"GET", "/api/v1/namespaces", want{"list", "", "v1", "namespaces", "", "", ""}},
		{"GET", "/api/v1/namespaces/ns", want{"get", "", "v1", "namespaces", "ns", "ns", ""}},
		{"PUT", "/api/v1/namespaces/ns/finalize", want{"update", "", "v1", "namespaces", "ns", "ns", "finalize"}},
		{"LIST", "/api/v1/namespaces/ns/secrets", want{"", "", "v1", "secrets", "ns", "", ""}},
		{"DELETECOLLECTION", "/api/v1/namespaces/ns/secrets/x", want{"", "", "v1", "secrets", "ns", "x", ""}},
		{"delete", "/api/v1/namespaces/ns/secrets", want{"", "", "v1", "secrets", "ns", "", ""}},
		{"GET", "/api/v1/namespaces/ns/status", want{"get", "", "v1", "namespaces", "ns", "ns", "status"}},
		{"GET", "/apis/apps/v1/namespaces/ns/deployments/d/scale", want{"get", "apps", "v1", "deployments", "ns", "d", "scale"}},
		{"GET", "/apis/example.com/v1/widgets", want{"list", "example.com", "v1", "widgets", "", "", ""}},
		{"GET", "/apis/example.com/v1/widgets/", want{"list", "example.com", "v1", "widgets", "", "", ""}},
		{"GET", "/api/v1/namespaces/ns/configmaps/a/b/c", want{"get", "", "v1", "configmaps", "ns", "a", "b"}},
		{"GET", "/api", want{}},
		{"GET", "/api/v1", want{}},
		{"GET", "/apis/apps/v1", want{}},
		{"GET", "/api/v1/namespaces//", want{"list", "", "v1", "namespaces", "", "", ""}},
		{"GET", "/api//v1/namespaces/ns/secrets", want{}},
		{"GET", "//api/v1/namespaces/ns/secrets", want{}},
		{"POST", "///api/v1/namespaces", want{}},
		{"GET", "//apis/apps/v1/deployments", want{}},
		{"GET", "/api/v1/namespaces//secrets/x", want{}},
		{"GET", "/api/v1/namespaces/ns/../other/secrets", want{}},
		{"GET", "/api/v1/namespaces/./secrets", want{}},
		{"GET", "/API/v1/configmaps", want{}},
		{"GET", "/healthz", want{}},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			r := Parse(httptest.NewRequest(c.method, c.path, nil))
			got := want{r.Verb, r.Group, r.APIVersion, r.Resource, r.Namespace, r.Name, r.Subresource}
			if c.want == (want{}) {
				require.False(t, r.IsResource, "%+v", got)
				require.Empty(t, got.resource)
				return
			}
			require.True(t, r.IsResource)
			require.Equal(t, c.want, got)
		})
	}
}

// TestEncodedSlashSeparatesSegments checks that an encoded slash separates segments for
// authorization as for routing.
func TestEncodedSlashSeparatesSegments(t *testing.T) {
	r := Parse(httptest.NewRequest("GET", "/api/v1/namespaces/ns%2Fsecrets%2Fx/configmaps", nil))
	require.Equal(t, "secrets", r.Resource)
	require.Equal(t, "configmaps", r.Subresource)
}

// TestSelectedName checks when a field selector restricts a request to a name.
func TestSelectedName(t *testing.T) {
	for query, name := range map[string]string{
		"fieldSelector=metadata.name%3Da":                         "a",
		"fieldSelector=metadata.name%3Da,metadata.namespace%3Dns": "a",
		"fieldSelector=metadata.name!%3Da":                        "",
		"labelSelector=x":                                         "",
	} {
		r := Parse(httptest.NewRequest("GET", "/api/v1/namespaces/ns/secrets?"+query, nil))
		require.Equal(t, name, r.Name+r.Selected, query)
		r = Parse(httptest.NewRequest("GET", "/api/v1/watch/namespaces/ns/secrets?"+query, nil))
		require.Empty(t, r.Name+r.Selected, "deprecated watch paths do not use the field selector")
		r = Parse(httptest.NewRequest("DELETE", "/api/v1/namespaces/ns/secrets?"+query, nil))
		require.Empty(t, r.Name+r.Selected, "deletecollection is never restricted to a name")
	}
}

func FuzzOf(f *testing.F) {
	for _, p := range []string{"/api/v1/configmaps", "/apis/a/b/namespaces/c/d/e/f", "//", "/api/v1/watch/x", "/apis/a/v1/namespaces/n"} {
		f.Add("GET", p, "watch=1&fieldSelector=metadata.name=x")
	}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		r := Parse(&http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}})
		if r.IsResource != (r.Resource != "" && r.APIVersion != "") || r.Name == "" && r.Subresource != "" {
			t.Fatalf("%q: %+v", path, r)
		}
	})
}
