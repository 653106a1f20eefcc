package telemetry_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
)

// servedPaths returns paths of all resources and subresources in the discovery documents: of
// collections, across namespaces and in a namespace, of items, and below items. versions and
// subresources are the numbers of each.
func servedPaths(t *testing.T, s http.Handler) (paths []string, versions, subresources int) {
	groups := []string{"/api/v1"}
	var list struct {
		Groups []struct {
			Versions []struct{ GroupVersion string }
		}
	}
	require.NoError(t, json.Unmarshal(send(s, "GET", "/apis", "").Body.Bytes(), &list))
	for _, g := range list.Groups {
		for _, v := range g.Versions {
			groups = append(groups, "/apis/"+v.GroupVersion)
		}
	}
	for _, group := range groups {
		var doc struct {
			Resources []struct {
				Name       string
				Namespaced bool
			}
		}
		require.NoError(t, json.Unmarshal(send(s, "GET", group, "").Body.Bytes(), &doc))
		for _, r := range doc.Resources {
			name, sub, below := strings.Cut(r.Name, "/")
			inside := group
			if r.Namespaced {
				inside += "/namespaces/default"
			}
			if below {
				subresources++
				paths = append(paths, inside+"/"+name+"/x/"+sub)
				continue
			}
			versions++
			paths = append(paths, group+"/"+name, inside+"/"+name, inside+"/"+name+"/x", group+"/"+name+"/x", group+"/watch/"+name, inside+"/"+name+"/x/nothing")
		}
	}
	return paths, versions, subresources
}

// labelSets returns the number of label sets of each family, and the number of those with a
// resource.
func labelSets(t *testing.T, reg prometheus.Gatherer) (all, typed map[string]int) {
	all, typed = map[string]int{}, map[string]int{}
	for name, f := range gathered(t, reg) {
		all[name] = len(f.Metric)
		for _, m := range f.Metric {
			if labelsOf(m)["resource"] != "" {
				typed[name]++
			}
		}
	}
	return all, typed
}

// requestFamilies are the families with labels of requests.
var requestFamilies = []string{
	"apiserver_request_total", "apiserver_request_duration_seconds", "apiserver_request_sli_duration_seconds", "apiserver_response_sizes",
	"apiserver_request_body_size_bytes", "apiserver_request_terminations_total", "apiserver_request_aborts_total", "apiserver_longrunning_requests",
}

// everyMethod lists the methods of hostile requests.
var everyMethod = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "GRAB"}

// TestUnauthorizedRequestsCreateNoMetricSeries checks that unauthorized requests create no series
// with a resource and do not count as use of deprecated versions.
func TestUnauthorizedRequestsCreateNoMetricSeries(t *testing.T) {
	t.Parallel()
	s, reg := metricsServer(t, func(b *server.Builder) {
		b.Kind("apps", "Deployment").Versions[0].Deprecated = "it is old"
	})
	paths, _, _ := servedPaths(t, s)
	_, before := labelSets(t, reg)
	sent := 0
	for _, path := range append(paths, "/nothing", "/metrics", "/apis", "/apis/nothing.io/v1/things", "/api/v1/nothing") {
		for _, method := range everyMethod {
			for i, caller := range []string{"bad", "nobody"} {
				query := []string{"", "?dryRun=All", "?dryRun=no", "?watch=1"}[(sent+i)%4]
				kind := []string{"application/json", "application/apply-patch+yaml"}[sent/4%2]
				code := send(s, method, path+query, "{}", "X-Caller", caller, "User-Agent", fmt.Sprint("agent", sent), "Content-Type", kind).Code
				require.Contains(t, []int{401, 403}, code, "%s %s", method, path)
				sent++
			}
		}
	}
	all, after := labelSets(t, reg)
	for _, name := range requestFamilies {
		assert.Equal(t, before[name], after[name], name)
		assert.LessOrEqual(t, all[name]-after[name], 60, "%s after %d requests", name, sent)
	}
	assert.Zero(t, all["apiserver_requested_deprecated_apis"])
	page := send(s, "GET", "/metrics", "").Body.String()
	assert.Contains(t, page, `apiserver_request_total{code="403",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="LIST",version=""}`)
	send(s, "GET", "/apis/apps/v1/deployments", "")
	all, _ = labelSets(t, reg)
	assert.Equal(t, 1, all["apiserver_requested_deprecated_apis"], "an authorized request counts")
}

// TestRequestSeriesAreBounded checks that the number of series depends only on the served types,
// even for requests of a user with all permissions.
func TestRequestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	s, reg := metricsServer(t)
	paths, versions, subresources := servedPaths(t, s)
	require.Greater(t, versions, 50)
	require.Greater(t, subresources, 20)
	for i, path := range append(paths, "/nothing", "/metrics", "/livez", "/version", "/api/v1/nothing") {
		for j, method := range everyMethod {
			for k, query := range []string{"", "&dryRun=All", "&dryRun=no", "&watch=1"} {
				if testing.Short() && (i+j+k)%5 != 0 {
					continue
				}
				kind := []string{"application/json", "application/apply-patch+yaml", "application/merge-patch+json", "no/thing"}[(i+j+k)%4]
				send(s, method, path+"?resourceVersion=none"+query, "{}", "Content-Type", kind, "User-Agent", fmt.Sprint("agent", i, j, k))
			}
		}
	}
	all, _ := labelSets(t, reg)
	most := func(v, sub, more int) int { return v*versions + sub*subresources + more }
	durations := most(24, 13, 15)
	assert.LessOrEqual(t, all["apiserver_request_duration_seconds"], durations)
	assert.LessOrEqual(t, all["apiserver_request_sli_duration_seconds"], most(12, 5, 15))
	assert.LessOrEqual(t, all["apiserver_response_sizes"], most(3, 1, 8))
	byCode := map[string]int{}
	for _, m := range gathered(t, reg)["apiserver_request_total"].Metric {
		byCode[labelsOf(m)["code"]]++
	}
	for code, n := range byCode {
		assert.LessOrEqual(t, n, durations, code)
	}
	verbs := map[string]bool{}
	for _, m := range gathered(t, reg)["apiserver_request_total"].Metric {
		verbs[labelsOf(m)["verb"]] = true
	}
	for verb := range verbs {
		assert.Contains(t, []string{"GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "APPLY", "DELETE", "CONNECT", "other"}, verb)
	}
}
