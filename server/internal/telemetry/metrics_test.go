package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/audit"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/server/serving"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

var updateMetrics = flag.Bool("update-metrics", false, "rewrite the list of metrics")

// metricsServer returns a server with every part that has metrics.
func metricsServer(t *testing.T, configure ...func(*server.Builder)) (*server.Server, *prometheus.Registry) {
	reg := prometheus.NewRegistry()
	policy, err := audit.ParsePolicy([]byte("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}"), names.Kubernetes)
	require.NoError(t, err)
	log, err := audit.Open(audit.Config{Policy: policy, Sinks: []audit.Sink{audit.Writer{W: &apitest.LogBuffer{}}}, Names: names.Kubernetes})
	require.NoError(t, err)
	ca, err := serving.NewAuthority("clients")
	require.NoError(t, err)
	b := &server.Builder{Names: names.Kubernetes, Metrics: reg, Audit: log}
	b.Register(builtin.Kinds()...)
	for _, c := range configure {
		c(b)
	}
	require.NoError(t, access.Setup(b, access.Config{ClientCAs: ca.Pool(), Authenticators: []auth.Authenticator{auth.AuthenticatorFunc(rootOf)}}))
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		assert.NoError(t, s.Shutdown(context.Background()))
		assert.NoError(t, <-ended)
		assert.NoError(t, log.Close(context.Background()))
	})
	<-s.Running()
	return s, reg
}

// rootOf authenticates root, and returns an error for the user bad.
func rootOf(r *http.Request) (*auth.User, error) {
	switch r.Header.Get("X-Caller") {
	case "root":
		return &auth.User{Name: "root@example.com", Groups: []string{auth.Masters}}, nil
	case "bad":
		return nil, errors.New("no such caller")
	}
	return nil, nil
}

// send sends a request as root.
func send(s http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
	r.Header.Set("X-Caller", "root")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	s.ServeHTTP(w, r)
	return w
}

var descPattern = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", unit: "[^"]*", constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}\}$`)

// TestMetricFamilies compares the families, with their stability and labels, with
// testdata/metrics.txt. A changed stability or label breaks the dashboards of operators.
func TestMetricFamilies(t *testing.T) {
	t.Parallel()
	_, reg := metricsServer(t)
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		reg.Describe(descs)
	}()
	var list []string
	for d := range descs {
		m := descPattern.FindStringSubmatch(d.String())
		require.NotNil(t, m, d.String())
		if strings.HasPrefix(m[1], "go_") || strings.HasPrefix(m[1], "process_") {
			continue // metrics of Go and the process depend on the platform
		}
		class, _, ok := strings.Cut(m[2], "] ")
		require.True(t, ok, "%s has no class: %s", m[1], m[2])
		notice := regexp.MustCompile(`\(Deprecated since [^)]*\)`).FindString(m[2])
		labels := strings.Split(m[3], ",")
		slices.Sort(labels)
		list = append(list, strings.TrimSpace(fmt.Sprintf("%-62s %-7s {%s} %s", m[1], strings.TrimPrefix(class, "["), strings.Join(labels, ","), notice)))
	}
	slices.Sort(list)
	got, file := strings.Join(list, "\n")+"\n", filepath.Join("testdata", "metrics.txt")
	if *updateMetrics {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test -run TestMetricFamilies -update-metrics rewrites it")
}

// TestMetricsOfDashboards checks that the metrics exist which the alerts, rules and dashboards of
// kubernetes-mixin query of an API server, except those of aggregation.
func TestMetricsOfDashboards(t *testing.T) {
	t.Parallel()
	s, reg := metricsServer(t)
	send(s, "GET", "/api/v1/namespaces/default/configmaps", "")
	send(s, "GET", "/api/v1/namespaces/default/configmaps/none", "")
	families := gathered(t, reg)
	for _, name := range []string{
		"apiserver_request_total", "apiserver_request_duration_seconds", "apiserver_request_sli_duration_seconds",
		"workqueue_adds_total", "workqueue_depth", "workqueue_queue_duration_seconds",
		"process_resident_memory_bytes", "process_cpu_seconds_total", "go_goroutines", "kubernetes_build_info",
		"apiserver_admission_controller_admission_duration_seconds", "apiserver_admission_step_admission_duration_seconds",
		"apiserver_current_inflight_requests", "apiserver_flowcontrol_nominal_limit_seats", "apiserver_flowcontrol_current_executing_seats",
		"apiserver_flowcontrol_request_wait_duration_seconds", "etcd_request_duration_seconds", "apiserver_resource_objects", "apiserver_audit_event_total",
	} {
		assert.NotNil(t, families[name], name)
	}
	// Families without series until the first event: they are registered, as the list of families
	// shows.
	list, err := os.ReadFile(filepath.Join("testdata", "metrics.txt"))
	require.NoError(t, err)
	for _, name := range []string{"apiserver_client_certificate_expiration_seconds", "apiserver_request_terminations_total", "apiserver_admission_webhook_admission_duration_seconds"} {
		assert.Contains(t, "\n"+string(list), "\n"+name+" ")
	}
	bounds := map[float64]bool{} // that burn rates use
	for _, b := range families["apiserver_request_sli_duration_seconds"].Metric[0].Histogram.Bucket {
		bounds[b.GetUpperBound()] = true
	}
	for _, le := range []float64{1, 5, 30} {
		assert.True(t, bounds[le], le)
	}
	var scopes []string
	for _, m := range families["apiserver_request_sli_duration_seconds"].Metric {
		if l := labelsOf(m); l["resource"] == "configmaps" {
			scopes = append(scopes, l["verb"]+" "+l["scope"])
		}
	}
	assert.ElementsMatch(t, []string{"LIST namespace", "GET resource"}, scopes)
}

func gathered(t *testing.T, reg prometheus.Gatherer) map[string]*dto.MetricFamily {
	t.Helper()
	list, err := reg.Gather()
	require.NoError(t, err)
	families := map[string]*dto.MetricFamily{}
	for _, f := range list {
		families[f.GetName()] = f
	}
	return families
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.Label {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// TestMetricsAreWellFormed checks the conventions of Prometheus: each family has a help text with
// its stability, counters end in _total, and units are base units.
func TestMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
	s, reg := metricsServer(t)
	hostileRequests(s, 500)
	odd := map[string]bool{ // names of the field's API server
		"authentication_attempts": true, "authenticated_user_requests": true, "apiserver_admission_webhook_rejection_count": true, "apiserver_admission_webhook_fail_open_count": true,
	}
	for name, f := range gathered(t, reg) {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		assert.Regexp(t, `^\[(ALPHA|BETA|STABLE)\] (\(Deprecated since 1\.\d+\.0\) )?\S.*\.$`, f.GetHelp(), name)
		if f.GetType() == dto.MetricType_COUNTER && !odd[name] {
			assert.True(t, strings.HasSuffix(name, "_total"), "the counter %s", name)
		}
		assert.NotRegexp(t, `_(milliseconds|ms|kilobytes|percent)(_|$)`, name)
	}
}

// hostileRequests sends n different requests with random methods, paths, queries, bodies and
// headers.
func hostileRequests(s http.Handler, n int) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("w%x", r.Uint64()) }
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}
	for i := range n {
		method := methods[r.IntN(len(methods))]
		if r.IntN(10) == 0 {
			method = strings.ToUpper(word())
		}
		path := []string{
			"/" + word(), "/livez/" + word(), "/metrics/" + word(), "/api/v1/" + word(), "/api/" + word() + "/pods", "/apis/" + word() + "/v1/things/" + word(),
			"/apis/apps/" + word() + "/deployments", "/api/v1/namespaces/" + word() + "/configmaps", "/api/v1/namespaces/" + word() + "/configmaps/" + word(),
			"/api/v1/namespaces/default/pods/" + word() + "/" + word(), "/api/v1/namespaces/default/pods/" + word() + "/proxy/" + word(), "/api/v1/watch/" + word(),
			"/api/v1/namespaces/default/serviceaccounts/" + word() + "/token", "/apis/apps/v1/namespaces/default/deployments/" + word() + "/scale", "/version", "/livez", "/openapi/v3/" + word(),
		}[r.IntN(17)]
		query := []string{"", "?dryRun=" + word(), "?dryRun=All", "?dryRun=All&dryRun=" + word(), "?" + word() + "=" + word(), "?fieldManager=" + word(), "?labelSelector=" + word(), "?timeout=1ms", "?limit=" + word()}[r.IntN(9)]
		body := []string{"", "{}", word(), `{"metadata":{"name":"` + word() + `"}}`, strings.Repeat("x", r.IntN(1000))}[r.IntN(5)]
		headers := []string{"User-Agent", word(), "Accept", []string{"*/*", word(), "application/json;as=" + word()}[r.IntN(3)],
			"Content-Type", []string{"application/json", word() + "/" + word(), "application/merge-patch+json", "application/apply-patch+yaml", ""}[r.IntN(5)]}
		switch i % 7 {
		case 0:
			headers = append(headers, "X-Caller", "bad")
		case 1:
			headers = append(headers, "X-Caller", word()) // not authenticated
		case 2:
			headers = append(headers, "Impersonate-User", word())
		}
		send(s, method, path+query, body, headers...)
	}
}

// TestMetricLabelsAreBounded checks that the number of series does not depend on the content of
// requests.
func TestMetricLabelsAreBounded(t *testing.T) {
	t.Parallel()
	s, reg := metricsServer(t)
	count := func() (n int, all map[string]int) {
		all = map[string]int{}
		for name, f := range gathered(t, reg) {
			all[name] = len(f.Metric)
			n += len(f.Metric)
			for _, m := range f.Metric {
				for _, v := range labelsOf(m) {
					require.NotRegexp(t, `(?i)w[0-9a-f]{12,}`, v, "%s has a label that a caller chose", name)
				}
			}
		}
		return n, all
	}
	before, _ := count()
	many := 10_000
	if testing.Short() {
		many = 2_000
	}
	hostileRequests(s, many)
	after, families := count()
	assert.Less(t, after-before, 3000)
	assert.Less(t, families["apiserver_request_total"], 1000)
	hostileRequests(s, many) // the same requests
	again, _ := count()
	assert.InDelta(t, after, again, 20)
}

// TestMetricsOfRemovedTypes checks that the series of a type are removed with its definition, even
// if a watch was open until then.
func TestMetricsOfRemovedTypes(t *testing.T) {
	t.Parallel()
	s, reg := metricsServer(t)
	series := func() (n int) {
		for _, f := range gathered(t, reg) {
			for _, m := range f.Metric {
				if strings.Contains(labelsOf(m)["resource"]+labelsOf(m)["crd_name"], "widgets") {
					n++
				}
			}
		}
		return n
	}
	for range 3 {
		require.Equal(t, 201, send(s, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`)).Code)
		require.NoError(t, s.Settle(t.Context()))
		require.Equal(t, 201, send(s, "POST", apitest.WidgetsPath, apitest.NewWidget("x", `{"a":"b"}`)).Code)
		require.Equal(t, 200, send(s, "GET", apitest.WidgetsPath+"/x", "").Code)
		watch, ended := startWatch(s, apitest.WidgetsPath+"?watch=true&resourceVersion=0")
		<-watch
		assert.Greater(t, series(), 20)
		require.Equal(t, 200, send(s, "DELETE", apitest.WidgetDefinitionPath, "").Code)
		<-ended
		for send(s, "GET", apitest.WidgetDefinitionPath, "").Code != 404 {
			require.NoError(t, s.Settle(t.Context()))
		}
		require.Equal(t, 404, send(s, "GET", apitest.WidgetsPath+"/x", "").Code)
		require.Equal(t, 201, send(s, "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"generateName":"a"}}`).Code) // refreshes the series of the store
		assert.Zero(t, series())
	}
}

// flushed is a recorder that signals the first flush.
type flushed struct {
	*httptest.ResponseRecorder
	first chan struct{}
}

func (f *flushed) Flush() {
	select {
	case <-f.first:
	default:
		close(f.first)
	}
}

// startWatch starts a watch. The channels are closed when it has begun and ended.
func startWatch(s http.Handler, path string) (begun, ended chan struct{}) {
	w := &flushed{httptest.NewRecorder(), make(chan struct{})}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("X-Caller", "root")
		s.ServeHTTP(w, r)
	}()
	return w.first, ended
}

// TestHiddenMetrics checks that hidden metrics can only be shown for the previous release, and that
// a request for deprecated metrics is logged once.
func TestHiddenMetrics(t *testing.T) {
	t.Parallel()
	const old = "apiserver_flowcontrol_request_concurrency_limit"
	build := func(show string) (*server.Server, *bytes.Buffer, error) {
		var logged bytes.Buffer
		b := &server.Builder{Authorizer: auth.AllowAll, Serving: server.Serving{ShowHiddenMetricsFor: show}, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
		b.Register(builtin.Kinds()...)
		s, err := b.Build(t.Context())
		return s, &logged, err
	}
	for show, want := range map[string]bool{"": false, "1.36": true} {
		s, logged, err := build(show)
		require.NoError(t, err)
		page := send(s, "GET", "/metrics", "").Body.String()
		assert.Equal(t, want, strings.Contains(page, "# HELP "+old+" [ALPHA] (Deprecated since 1.30.0) "), show)
		assert.Equal(t, want, strings.Contains(page, "# HELP apiserver_storage_objects [STABLE] (Deprecated since 1.34.0) "), show)
		send(s, "GET", "/metrics", "")
		assert.Equal(t, want, strings.Count(logged.String(), "deprecated metrics") == 1, logged.String())
		require.NoError(t, s.Shutdown(t.Context()))
	}
	for _, show := range []string{"1.37", "1.35", "yes"} {
		_, _, err := build(show)
		assert.ErrorContains(t, err, "Serving.ShowHiddenMetricsFor: ", show)
		assert.ErrorContains(t, err, "only for version 1.36", show)
	}
}

// TestRegistryAfterFailedBuild checks that the registry of a failed Build can be used again, but
// not the registry of another server.
func TestRegistryAfterFailedBuild(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	_, err := (&server.Builder{Metrics: reg}).Build(t.Context())
	require.ErrorContains(t, err, "Authorizer")
	s, err := (&server.Builder{Metrics: reg, Authorizer: auth.AllowAll}).Build(t.Context())
	require.NoError(t, err)
	_, err = (&server.Builder{Metrics: reg, Authorizer: auth.AllowAll}).Build(t.Context())
	require.Error(t, err)
	assert.True(t, strings.Contains(send(s, "GET", "/metrics", "").Body.String(), "apiserver_storage_size_bytes"), "the metrics of the first server stay")
	require.NoError(t, s.Shutdown(t.Context()))
}

// linesOf returns the lines of a page that begin with name.
func linesOf(page, name string) (lines string) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, name) {
			lines += line
		}
	}
	return lines
}

// TestMetricsCountRequests makes a request of each kind and checks its metrics.
func TestMetricsCountRequests(t *testing.T) {
	t.Parallel()
	s, reg := metricsServer(t)
	const maps = "/api/v1/namespaces/default/configmaps"
	apply := []string{"Content-Type", "application/apply-patch+yaml"}
	for _, r := range []struct {
		method, path, body string
		code               int
		headers            []string
	}{
		{"POST", maps, `{"metadata":{"name":"a"},"data":{"k":"v"}}`, 201, nil},
		{"POST", maps + "?dryRun=All", `{"metadata":{"name":"b"}}`, 201, nil},
		{"PUT", maps + "/a", `{"metadata":{"name":"a"},"data":{"k":"w"}}`, 200, nil},
		{"PATCH", maps + "/a", `{"data":{"k":"x"}}`, 200, []string{"Content-Type", "application/merge-patch+json"}},
		{"PATCH", maps + "/a?fieldManager=m&force=true", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"y"}}`, 200, apply},
		{"GET", maps + "/a", "", 200, nil},
		{"GET", maps, "", 200, nil},
		{"GET", "/api/v1/configmaps", "", 200, nil},
		{"GET", maps + "/none", "", 404, nil},
		{"GET", maps + "/a", "", 401, []string{"X-Caller", "bad"}},
		{"GET", maps + "/a", "", 403, []string{"X-Caller", "nobody"}},
		{"POST", "/api/v1/namespaces/kube-nothing/configmaps", `{"metadata":{"name":"a"}}`, 404, nil}, // refused by NamespaceLifecycle
		{"GET", "/api/v1/namespaces/default/pods/p/log", "", 404, nil},
		{"GET", "/livez", "", 200, nil},
		{"DELETE", maps + "/a", "", 200, nil},
	} {
		require.Equal(t, r.code, send(s, r.method, r.path, r.body, r.headers...).Code, "%s %s", r.method, r.path)
	}
	page := send(s, "GET", "/metrics", "").Body.String()
	request := func(code, dry, resource, scope, sub, verb, version string) string {
		return fmt.Sprintf(`apiserver_request_total{code=%q,component="apiserver",dry_run=%q,group="",resource=%q,scope=%q,subresource=%q,verb=%q,version=%q} 1`,
			code, dry, resource, scope, sub, verb, version)
	}
	about := `component="apiserver",group="",resource="configmaps",scope="resource",subresource="",verb="GET",version="v1"`
	for _, line := range []string{
		request("201", "", "configmaps", "resource", "", "POST", "v1"), request("201", "All", "configmaps", "resource", "", "POST", "v1"),
		request("200", "", "configmaps", "resource", "", "PUT", "v1"), request("200", "", "configmaps", "resource", "", "PATCH", "v1"),
		request("200", "", "configmaps", "resource", "", "APPLY", "v1"), request("200", "", "configmaps", "resource", "", "DELETE", "v1"),
		request("200", "", "configmaps", "resource", "", "GET", "v1"), request("200", "", "configmaps", "namespace", "", "LIST", "v1"),
		request("200", "", "configmaps", "cluster", "", "LIST", "v1"), request("404", "", "configmaps", "resource", "", "GET", "v1"),
		request("401", "", "", "", "", "GET", ""), request("403", "", "", "", "", "GET", ""),
		request("404", "", "pods", "resource", "log", "CONNECT", "v1"), request("200", "", "", "", "/livez", "GET", ""),
		`apiserver_response_sizes_count{` + about + `} 2`, `apiserver_request_sli_duration_seconds_count{` + about + `} 2`,
		`apiserver_request_body_size_bytes_count{group="",resource="configmaps",verb="create"} 3`,
		`authentication_attempts{result="error"} 1`, `authorization_attempts_total{result="no-opinion"} 1`, `authenticated_user_requests{username="email_id"} 14`,
		`apiserver_admission_step_admission_duration_seconds_count{operation="CREATE",rejected="true",type="admit"} 1`,
		`apiserver_admission_step_admission_duration_seconds_count{operation="DELETE",rejected="false",type="validate"} 1`,
		`apiserver_admission_controller_admission_duration_seconds_count{name="NamespaceLifecycle",operation="CREATE",rejected="true",type="admit"} 1`,
		`etcd_requests_total{group="",operation="create",resource="configmaps"} `, `etcd_requests_total{group="",operation="delete",resource="configmaps"} 1`,
		`etcd_request_duration_seconds_count{group="",operation="update",resource="configmaps"} 3`,
		`apiserver_current_inflight_requests{request_kind="readOnly"} 1`, `apiserver_current_inflight_requests{request_kind="mutating"} 0`,
		`apiserver_cache_list_total{group="",index="",resource="configmaps"} `, `apiserver_resource_objects{group="",resource="namespaces"} `,
		`workqueue_adds_total{name="namespace"} `, `apiserver_audit_level_total{level="Metadata"} `, `apiserver_audit_requests_rejected_total 0`,
		`apiserver_flowcontrol_current_limit_seats{priority_level="workload-low"} `, `apiserver_flowcontrol_request_execution_seconds_count{flow_schema="exempt",`,
		`kubernetes_build_info{build_date="1970-01-01T00:00:00Z",`, `serviceaccount_valid_tokens_total 0`, `apiserver_storage_size_bytes{storage_cluster_id="storage-0"} `,
	} {
		name, _, _ := strings.Cut(line, "{")
		assert.True(t, strings.Contains(page, "\n"+line), "%s\n%s", line, linesOf(page, name))
	}
	assert.NotNil(t, gathered(t, reg))
}

// failingStore is a store whose commits can fail.
type failingStore struct {
	storage.Backend
	err error
}

func (r *failingStore) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if r.err != nil {
		return 0, r.err
	}
	return r.Backend.Commit(ctx, ws...)
}

// TestMetricsOfStore checks the metrics of a store that fails, and of a full history.
func TestMetricsOfStore(t *testing.T) {
	t.Parallel()
	store := &failingStore{Backend: memstore.New(memstore.Options{})}
	a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Storage = store
		b.Limits.HistoryBytes = 100_000
	}))
	body := func(i int) string {
		return fmt.Sprintf(`{"metadata":{"name":"a"},"data":{"k":"%d%s"}}`, i, strings.Repeat("x", 20_000))
	}
	a.Must(201, "POST", apitest.ConfigMapsPath, body(0))
	page := func() string { return string(a.Must(200, "GET", "/metrics", nil).Raw) }
	const shortened = "apiserver_watch_cache_history_shortened_total"
	assert.Contains(t, linesOf(page(), shortened), `{group="",resource="configmaps"} 0`)
	for i := range 20 {
		a.Must(200, "PUT", apitest.ConfigMapsPath+"/a", body(i+1))
	}
	assert.NotContains(t, linesOf(page(), shortened), `{group="",resource="configmaps"} 0`)
	assert.Regexp(t, `^apiserver_watch_cache_history_used_ratio (0\.[4-9]\d*|1)\n$`, linesOf(page(), "apiserver_watch_cache_history_used_ratio"))
	store.err = errors.New("the disk is gone")
	a.Must(500, "PUT", apitest.ConfigMapsPath+"/a", body(99))
	store.err = nil
	assert.Regexp(t, `\{group="",operation="update",resource="configmaps"\} [1-9]`, linesOf(page(), "etcd_request_errors_total"))
}
