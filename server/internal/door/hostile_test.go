package door_test

import (
	"net/url"

	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"

	"orch.io/controlplane/server/internal/apitest"
)

// refused checks that a response is a 4xx Status of bounded size.
func refused(t testing.TB, got apitest.Response, what ...any) {
	t.Helper()
	about := fmt.Sprint(what...)
	if len(about) > 200 {
		about = about[:200]
	}
	assert.True(t, got.Code >= 400 && got.Code < 500, "%s: %d %.300s", about, got.Code, got.Raw)
	if got.Body == nil {
		assert.Fail(t, "no Status", "%s: %d %.300q", about, got.Code, got.Raw)
		return
	}
	assert.Equal(t, "Status", got.Body["kind"], about)
	assert.EqualValues(t, got.Code, got.Body["code"], about)
	assert.Less(t, len(got.Raw), 4<<20, about)
}

// invalidBodies returns bodies that no verb accepts.
func invalidBodies() map[string]string {
	deep := func(open, end string, n int) string {
		return `{"metadata":{"name":"x"},"data":` + strings.Repeat(open, n) + "1" + strings.Repeat(end, n) + "}"
	}
	return map[string]string{
		"cut":               `{"metadata":{"name":"x"`,
		"trailing":          `{"metadata":{"name":"x"}} {}`,
		"array":             `[1]`,
		"number":            `7`,
		"string":            `"x"`,
		"true":              `true`,
		"comma":             `{"a":1,}`,
		"comment":           `{"a":1 /* no */}`,
		"single quotes":     `{'a':1}`,
		"NaN":               `{"data":{"a":NaN}}`,
		"NUL":               "\x00\x00\x00",
		"NUL in text":       "{\"metadata\":{\"name\":\"x\x00y\"}}",
		"control character": "{\"metadata\":{\"name\":\"x\ny\"}}",
		"bad escape":        `{"metadata":{"name":"\x41"}}`,
		"not UTF-8":         "\xff\xfe{\"a\":1}",
		"UTF-16":            "\xff\xfe{\x00}\x00",
		"deep arrays":       deep("[", "]", 100_000),
		"deep objects":      deep(`{"a":`, "}", 100_000),
		"unclosed":          strings.Repeat("[", 1_000_000),
		"unclosed objects":  strings.Repeat(`{"a":`, 300_000),
		"wrong type":        `{"metadata":{"name":"x"},"data":[1,2]}`,
		"wrong metadata":    `{"metadata":"x"}`,
		"wrong name":        `{"metadata":{"name":{"a":1}}}`,
		"wrong labels":      `{"metadata":{"name":"x","labels":{"a":{}}}}`,
		"wrong kind":        `{"kind":"Secret","metadata":{"name":"x"}}`,
		"wrong version":     `{"apiVersion":"v9","metadata":{"name":"x"}}`,
		"kind of no string": `{"kind":7,"metadata":{"name":"x"}}`,
		"huge number":       `{"metadata":{"name":"x","generation":1e999999}}`,
		"YAML bomb":         "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g]\n",
		"YAML cycle":        "a: &a\n  b: *a\n",
		"YAML tag":          "a: !!python/object:os.system x\n",
		"YAML tabs":         "a:\n\t- b\n",
		"YAML keys":         "? [a, b]\n: c\n",
		"YAML documents":    "a: b\n---\nc: d\n",
		"protobuf garbage":  "k8s\x00" + strings.Repeat("\xff", 1000),
		"protobuf length":   "k8s\x00\x12\xff\xff\xff\xff\x0f",
		"protobuf groups":   "k8s\x00\x12\xd0\x0f" + strings.Repeat("\x0b", 2000),
		"protobuf cut":      "k8s",
		"protobuf encoding": "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x00\x1a\x04gzip",
		"owners of numbers": `{"metadata":{"name":"x","ownerReferences":[1,2,3]}}`,
		"many bad labels":   `{"metadata":{"name":"x","labels":{` + many(50_000, `"%d!":"!"`) + `}}}`,
		"many items":        `{"metadata":{"name":"x"},"data":{` + many(50_000, `"k%d":""`) + `}}`,
		"many owners":       `{"metadata":{"name":"x","ownerReferences":[` + many(4_000, `{"uid":"%d"}`) + `]}}`,
		"many finalizers":   `{"metadata":{"name":"x","finalizers":[` + many(50_000, `"%d"`) + `]}}`,
		"many entries":      `{"metadata":{"name":"x","managedFields":[` + many(5_000, `{"manager":"m%d"}`) + `]}}`,
		"wild entries":      `{"metadata":{"name":"x","managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":` + strings.Repeat(`{"f:a":`, 900) + "{}" + strings.Repeat("}", 900) + `}}]}}`,
	}
}

func many(n int, item string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, item, i)
	}
	return b.String()
}

// TestHostileBodies sends every invalid body to every verb with every media type. Nothing is
// stored, and nothing fails.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x", "v", "1"))
	version := a.Must(200, "GET", apitest.ConfigMapsPath+"/x", nil).ResourceVersion()
	types := []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}
	patches := []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"}
	for name, body := range invalidBodies() {
		t.Run(name, func(t *testing.T) {
			for _, r := range []struct {
				method, path string
				types        []string
			}{
				{"POST", apitest.ConfigMapsPath, types}, {"PUT", apitest.ConfigMapsPath + "/x", types},
				{"PATCH", apitest.ConfigMapsPath + "/x?fieldManager=m", patches},
				{"POST", "/apis/apps/v1/namespaces/default/deployments", types},
				{"POST", "/api/v1/namespaces", types},
			} {
				for _, typ := range r.types {
					got := a.Do(r.method, r.path, body, "Content-Type", typ)
					if got.Code < 300 {
						continue // valid in this media type
					}
					refused(t, got, name, r.method, r.path, typ)
				}
			}
			got := a.Do("DELETE", apitest.ConfigMapsPath+"/none", body)
			refused(t, got, name, "DELETE")
		})
	}
	for _, n := range a.Must(200, "GET", apitest.ConfigMapsPath, nil).Names() {
		assert.Equal(t, "x", n)
	}
	assert.GreaterOrEqual(t, apitest.Revision(t, a.Must(200, "GET", apitest.ConfigMapsPath+"/x", nil).ResourceVersion()), apitest.Revision(t, version))
}

// TestHostilePatches sends patches that would grow or loop.
func TestHostilePatches(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x", "v", "1"))
	item := apitest.ConfigMapsPath + "/x"
	for _, c := range []struct{ typ, body string }{
		{"application/json-patch+json", "[" + many(20_000, `{"op":"test","path":"/data/%d","value":1}`) + "]"},
		{"application/json-patch+json", "[" + strings.TrimSuffix(strings.Repeat(`{"op":"copy","from":"/data","path":"/data/v"},`, 60), ",") + "]"},
		{"application/json-patch+json", `[{"op":"add","path":"/data/v/-1","value":1}]`},
		{"application/json-patch+json", `[{"op":"add","path":"` + strings.Repeat("/a", 10_000) + `","value":1}]`},
		{"application/json-patch+json", `[{"op":"move","from":"/metadata","path":"/metadata/labels"}]`},
		{"application/json-patch+json", `[{"op":"remove","path":""}]`},
		{"application/json-patch+json", `[{"op":"replace","path":"","value":7}]`},
		{"application/json-patch+json", `[{"op":"replace","path":"/metadata","value":7}]`},
		{"application/json-patch+json", `[{"op":"remove","path":"/metadata"},{"op":"remove","path":"/kind"},{"op":"add","path":"/kind","value":[]}]`},
		{"application/json-patch+json", `[{"op":"add","path":"/metadata/ownerReferences","value":[{}]},{"op":"add","path":"/metadata/ownerReferences/99999999999999999999","value":1}]`},
		{"application/json-patch+json", `[{"op":"jump"}]`},
		{"application/json-patch+json", `{}`},
		{"application/json-patch+json", `[null]`},
		{"application/merge-patch+json", `{"metadata":{"name":"y"}}`},
		{"application/merge-patch+json", `{"metadata":{"namespace":"y"}}`},
		{"application/merge-patch+json", `{"metadata":null,"kind":"Secret"}`},
		{"application/merge-patch+json", `{"metadata":{"resourceVersion":7}}`},
		{"application/merge-patch+json", `{"metadata":{"uid":"00000000-0000-0000-0000-000000000000"}}`},
		{"application/strategic-merge-patch+json", `{"$patch":"explode"}`},
		{"application/json-patch+json", `[{"op":"replace","path":"/metadata/name","value":7}]`},
		{"application/strategic-merge-patch+json", `{"metadata":{"$retainKeys":"x","$deleteFromPrimitiveList/finalizers":7}}`},
		{"application/apply-patch+yaml", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{}]}}`},
		{"application/apply-patch+yaml", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"finalizers":["a/b","a/b"]}}`},
		{"application/apply-patch+yaml", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"ownerReferences":[{},{}]}}`},
		{"application/apply-patch+yaml", `{}`},
		{"application/apply-patch+yaml", ``},
		{"application/whatever", `{}`},
		{"", `{}`},
		{"application/Merge-Patch+json", `{}`},
	} {
		refused(t, a.Do("PATCH", item+"?fieldManager=m", c.body, "Content-Type", c.typ), c.typ, c.body)
	}
	assert.Equal(t, "1", apitest.NestedString(a.Must(200, "GET", item, nil).Body, "data", "v"))
}

// TestHostileSizes checks that a body above the limit is a 413, and that a body at the limit is
// not.
func TestHostileSizes(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t, func(b *server.Builder) { b.Limits.Body = 1 << 20 })
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
	big := `{"metadata":{"name":"x"},"data":{"v":"` + strings.Repeat("x", 2<<20) + `"}}`
	for _, r := range [][2]string{{"POST", apitest.ConfigMapsPath}, {"PUT", apitest.ConfigMapsPath + "/x"}, {"PATCH", apitest.ConfigMapsPath + "/x"}, {"DELETE", apitest.ConfigMapsPath + "/x"}} {
		a.Must(413, r[0], r[1], big)
		a.Must(413, r[0], r[1], io.MultiReader(strings.NewReader(big)))            // without Content-Length
		a.Must(413, r[0], r[1], io.MultiReader(strings.NewReader("{"), endless{})) // and without an end
	}
	fits := `{"metadata":{"name":"y"}}`
	a.Must(201, "POST", apitest.ConfigMapsPath, fits+strings.Repeat(" ", 1<<20-len(fits)))
	a.Must(413, "POST", apitest.ConfigMapsPath, fits+strings.Repeat(" ", 1<<20-len(fits)+1))
}

// endless is a reader without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// TestHostileEncodings checks that compressed bodies are refused without being decompressed.
func TestHostileEncodings(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t)
	a := apitest.InProcess(t, s)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(`{"metadata":{"name":"x"}}`))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	refused(t, a.Do("POST", apitest.ConfigMapsPath, packed.Bytes(), "Content-Encoding", "gzip"), "gzip")
	refused(t, a.Do("POST", apitest.ConfigMapsPath, packed.Bytes(), "Content-Encoding", "br"), "br")
	refused(t, a.Do("POST", apitest.ConfigMapsPath, `{"metadata":{"name":"x"}}`, "Content-Encoding", "gzip"), "gzip of nothing")
	assert.Empty(t, a.Must(200, "GET", apitest.ConfigMapsPath, nil).Names())
}

// TestHostileNames writes objects with names that have a meaning in paths, storage keys or files.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t)
	a := apitest.InProcess(t, s)
	for _, n := range []string{
		"", ".", "..", "a/b", "../x", "a\x00b", "\x00", "A", "a b", "a%2fb", "é", "\u202e", "-a", "a-", strings.Repeat("a", 254),
		strings.Repeat("a", 1<<20), "a\nb", "\xff", "a/", "/a", "a:b", "*", "a\\b", "~", "{}",
	} {
		kinds := []string{"configmaps", "secrets", "serviceaccounts"}
		if n == "" || n == "." || n == ".." || strings.ContainsAny(n, "/%") { // names of Events are path segments
			kinds = append(kinds, "events")
		}
		for _, kind := range kinds {
			refused(t, a.Do("POST", "/api/v1/namespaces/default/"+kind, map[string]any{"metadata": map[string]any{"name": n}}), n)
		}
		refused(t, a.Do("POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": n}}), n)
		refused(t, a.Do("POST", apitest.ConfigMapsPath, map[string]any{"metadata": map[string]any{"name": "x", "namespace": n + "!"}}), n)
		if n != "" && n != "a-" && len(n) < 200 && n != "~" {
			got := a.Do("POST", apitest.ConfigMapsPath, map[string]any{"metadata": map[string]any{"generateName": n}})
			if got.Code != 201 {
				refused(t, got, "generateName", n)
			}
		}
	}
	got := a.Must(201, "POST", apitest.ConfigMapsPath, map[string]any{"metadata": map[string]any{"generateName": strings.Repeat("a", 250)}})
	assert.Len(t, apitest.NestedString(got.Body, "metadata", "name"), 63)
}

// TestHostilePaths checks that unusual paths get a correct response.
func TestHostilePaths(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
	for _, path := range []string{
		"//api/v1/namespaces", "/api//v1/namespaces", "/api/v1//namespaces", "/api/v1/./namespaces", "/api/v1/../v1/namespaces",
		"/api/v1/namespaces/default/../default/configmaps", "/api/v1/namespaces/default/configmaps/%2e%2e", "/api/v1/namespaces/default/configmaps/x%00",
		"/api/v1/namespaces/default/configmaps/x%2fy", "/api/v1/namespaces/default%2fnones", "/api/v1/namespaces/default/configmaps/%ff%fe",
		"/api/v1/namespaces/%00/configmaps/x", "/api/v1/namespaces/default/configmaps/x/status", "/api/v1/namespaces/default/configmaps/x/y/z",
		"/api/v1/namespaces/default/configmaps/" + strings.Repeat("a", 100_000), "/api/v1/" + strings.Repeat("a/", 10_000),
		"/api/v1/namespaces/default/CONFIGMAPS", "/API/v1/namespaces", "/api/v1/configmap", "/api/v2/configmaps", "/apis/v1/configmaps",
		"/apis//v1/configmaps", "/apis/apps/v1/", "/apis/apps", "/apis/none", "/apis/none/v1", "/apis/none/v1/things", "/api/v1/watch", "/api/v1/watch/",
		"/api/v1/proxy/namespaces/default", "/api/v1/namespaces/default/namespaces/default", "/;/etc/passwd", "/openapi/v2/..", "/openapi/v3/apis/../../..",
		"/livez/../readyz", "/livez/ping/", "/metrics/", "/version/", "/%", "/api/v1/namespaces/default/configmaps/y?%", "/debug/pprof",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "SPLICE"} {
			r := &http.Request{Method: method, URL: rawURL(path), Header: http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}}}
			if method != "GET" && method != "HEAD" {
				r.Body = io.NopCloser(strings.NewReader("{}"))
			}
			res, err := a.HTTP.Transport.RoundTrip(r)
			require.NoError(t, err)
			raw, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			assert.Less(t, res.StatusCode, 500, "%s %.100s: %.200s", method, path, raw)
		}
	}
	assert.Equal(t, []string{"x"}, a.Must(200, "GET", apitest.ConfigMapsPath, nil).Names())
}

// TestHostileQueries sends many query parameters of any form.
func TestHostileQueries(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t, apitest.ShortFutureWait)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
	for query, code := range map[string]int{
		strings.Repeat("a=b&", 50_000):                                200,
		strings.Repeat("limit=1&", 10_000):                            200,
		"limit=9223372036854775807":                                   200,
		"limit=9223372036854775808":                                   400,
		"limit=-9223372036854775808":                                  200,
		"limit=%00":                                                   400,
		"limit=1e3":                                                   400,
		"timeoutSeconds=9223372036854775807":                          200,
		"timeoutSeconds=-1":                                           200,
		"resourceVersion=%00":                                         400,
		"resourceVersion=1%20":                                        400,
		"resourceVersion=%2B1":                                        400,
		"resourceVersion=0x1":                                         400,
		"resourceVersion=1_0":                                         400,
		"resourceVersion=00":                                          200,
		"continue=" + strings.Repeat("A", 500_000):                    400,
		"labelSelector=" + strings.Repeat("a,", 100_000):              400,
		"labelSelector=" + strings.Repeat("a=b,", 50_000) + "c":       200,
		"labelSelector=" + strings.Repeat("(", 100_000):               400,
		"labelSelector=a+in+(" + strings.Repeat("b,", 100_000) + "c)": 200,
		"labelSelector=%00":                                           400,
		"labelSelector=%ff":                                           400,
		"labelSelector=!":                                             400,
		"labelSelector=a%3D%3D%3Db":                                   400,
		"labelSelector=" + strings.Repeat("a", 400):                   400,
		"fieldSelector=" + strings.Repeat("metadata.name=a,", 50_000): 400,
		"fieldSelector=%00":                                           400,
		"fieldSelector==":                                             400,
		"fieldSelector=metadata.name":                                 400,
		"fieldSelector=data.v%3D1":                                    400,
		"pretty=%00":                                                  200,
		"watch=false":                                                 200,
		"resourceVersionMatch=%00&resourceVersion=1":                  422,
		"%zz=1": 200,
		"a;b":   200,
	} {
		got := a.Do("GET", apitest.ConfigMapsPath+"?"+query, nil)
		if strings.HasPrefix(query, "labelSelector=a+in") || strings.Contains(query, "metadata.name=a,") || strings.HasPrefix(query, "labelSelector=a=b,") {
			if got.Code != 200 {
				refused(t, got, query)
			}
			continue
		}
		assert.Equal(t, code, got.Code, "%.80s: %.200s", query, got.Raw)
		if code >= 400 {
			refused(t, got, query)
		}
	}
	for _, q := range []string{"fieldManager=" + strings.Repeat("m", 129), "fieldManager=%00", "fieldManager=%ff", "fieldValidation=Never", "dryRun=none", "dryRun=All&dryRun=x"} {
		refused(t, a.Do("POST", apitest.ConfigMapsPath+"?"+q, apitest.NewConfigMap("y")), q)
	}
	refused(t, a.Do("PATCH", apitest.ConfigMapsPath+"/x?force=true", `{}`), "force")
}

// TestHostileHeaders sends unusual headers of content negotiation, authentication and
// impersonation.
func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
	for _, h := range [][2]string{
		{"Accept", strings.Repeat("application/json,", 50_000)}, {"Accept", strings.Repeat("text/html;q=0.1,", 50_000) + "application/json"},
		{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io;" + strings.Repeat("a=b;", 50_000)}, {"Accept", "\x00"}, {"Accept", "*/*;q=\x7f"},
		{"Accept", ";;;"}, {"Accept", "application/json;as=Nothing"}, {"Accept", "application/json;q=2"}, {"Accept", "image/png"}, {"Accept", ","},
		{"User-Agent", strings.Repeat("u", 500_000)}, {"User-Agent", "\x00\xff/1"}, {"Impersonate-User", "\x00"}, {"Impersonate-Group", "x"},
		{"Authorization", strings.Repeat("Bearer ", 10_000)}, {"Content-Length", "-1"}, {"If-None-Match", strings.Repeat(`"x",`, 10_000)}, {"Host", "\x00"},
		{"X-Forwarded-For", strings.Repeat("1.1.1.1,", 10_000)}, {"Accept-Encoding", "gzip;q=nan,*;q=-1"}, {"Traceparent", "zz"},
	} {
		for _, path := range []string{apitest.ConfigMapsPath, apitest.ConfigMapsPath + "/x", "/api", "/apis", "/openapi/v2", "/openapi/v3", "/version", "/metrics"} {
			got := a.Do("GET", path, nil, h[0], h[1])
			assert.Less(t, got.Code, 500, "%s %s: %.100q: %.200s", path, h[0], h[1], got.Raw)
		}
		got := a.Do("PATCH", apitest.ConfigMapsPath+"/x", `{"data":{"a":"b"}}`, h[0], h[1])
		assert.Less(t, got.Code, 500, "%s: %.100q: %.200s", h[0], h[1], got.Raw)
	}
	a.Must(406, "GET", apitest.ConfigMapsPath, nil, "Accept", "image/png")
	a.Must(415, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("y"), "Content-Type", "image/png")
}

// rawURL returns a URL with the given path and query, decoded as by a server.
func rawURL(path string) *url.URL {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		u = &url.URL{Path: path}
	}
	u.Scheme, u.Host = "http", "in-process"
	return u
}
