// Package requestmetrics counts and times the requests of a server, with the metric names that the
// field's dashboards query.
package requestmetrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
)

// Metrics has the metrics of requests. The values of their labels are served types and fixed words,
// never text from clients, so that the number of series is bounded. The series of a type are
// removed when it is no longer served. Methods may be called concurrently.
type Metrics struct {
	types func() *resource.State
	table func() *aggregator.Table // returns nil if no other server serves versions

	requests, aborts, terminations *prometheus.CounterVec
	duration, sli, responseSizes   *prometheus.HistogramVec
	bodySizes, eventSizes          *prometheus.HistogramVec
	watchStarts                    *prometheus.HistogramVec
	events, slowWatchers           *prometheus.CounterVec
	running, deprecated            *prometheus.GaugeVec
	panics                         *prometheus.CounterVec
	waited                         prometheus.Observer
	authn                          outcomes // success, failure, error
	authz                          outcomes // allowed, denied, no-opinion, error
	users                          map[string]prometheus.Counter

	kept metrics.HandleCache[key, *handles]
	used map[typeLabels]bool // types with series; guarded by the lock of kept
}

// latencies are the buckets of request durations. Alerts depend on their bounds.
var latencies = []float64{.05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}

// New adds the metrics of requests to a set. types returns the served types, and table the versions
// that other servers serve, or nil.
func New(set *metrics.Set, types func() *resource.State, table func() *aggregator.Table) *Metrics {
	labels := []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}
	with := func(more ...string) []string { return append(labels[:len(labels):len(labels)], more...) }
	m := &Metrics{
		types: types, table: table, used: map[typeLabels]bool{},
		requests: set.Counters(metrics.Family{
			Name: "apiserver_request_total", Help: "Requests by verb, resource and HTTP code.", Stability: metrics.Stable, Labels: with("dry_run", "code"),
		}),
		duration: set.Histograms(metrics.Family{
			Name: "apiserver_request_duration_seconds", Help: "Duration of requests in seconds, including that of watches and connections.", Stability: metrics.Stable,
			Labels: with("dry_run"), Buckets: append([]float64{.005, .025}, latencies...),
		}),
		sli: set.Histograms(metrics.Family{
			Name: "apiserver_request_sli_duration_seconds", Help: "Duration of requests in seconds, without the time in admission webhooks and queues.", Labels: labels, Buckets: latencies,
		}),
		responseSizes: set.Histograms(metrics.Family{
			Name: "apiserver_response_sizes", Help: "Sizes of the responses to reads as sent, in bytes.", Stability: metrics.Stable, Labels: labels, Buckets: prometheus.ExponentialBuckets(1000, 10, 7),
		}),
		running: set.Gauges(metrics.Family{
			Name: "apiserver_longrunning_requests", Help: "Open watches and connections.", Stability: metrics.Stable, Labels: labels,
		}),
		aborts: set.Counters(metrics.Family{
			Name: "apiserver_request_aborts_total", Help: "Requests whose connection the server closed before the end of the response.", Labels: labels[:6],
		}),
		terminations: set.Counters(metrics.Family{
			Name: "apiserver_request_terminations_total", Help: "Requests that the server refused or ended to protect itself.", Labels: with("code"),
		}),
		bodySizes: set.Histograms(metrics.Family{
			Name: "apiserver_request_body_size_bytes", Help: "Sizes of the bodies of requests, in bytes.", Labels: []string{"group", "resource", "verb"}, Buckets: prometheus.LinearBuckets(50000, 100000, 31),
		}),
		deprecated: set.Gauges(metrics.Family{
			Name: "apiserver_requested_deprecated_apis", Help: "1 for each deprecated version that was requested.", Stability: metrics.Stable,
			Labels: []string{"group", "version", "resource", "subresource", "removed_release"},
		}),
		panics: set.Counters(metrics.Family{
			Name: "apiserver_recovered_panics_total", Help: "Panics that ended a request or a reconciliation, by the part of the server.", Labels: []string{"in"},
		}),
	}
	m.addWatches(set)
	m.addCallers(set)
	return m
}

// addWatches adds the metrics of watches.
func (m *Metrics) addWatches(set *metrics.Set) {
	version, kind := []string{"group", "version", "resource"}, []string{"group", "resource"}
	m.events = set.Counters(metrics.Family{Name: "apiserver_watch_events_total", Help: "Events sent to watchers.", Labels: version})
	m.eventSizes = set.Histograms(metrics.Family{
		Name: "apiserver_watch_events_sizes", Help: "Sizes of the events sent to watchers, in bytes.", Labels: version, Buckets: prometheus.ExponentialBuckets(1024, 2, 8),
	})
	m.slowWatchers = set.Counters(metrics.Family{
		Name: "apiserver_terminated_watchers_total", Help: "Watches that ended because the caller fell behind the history.", Labels: kind,
	})
	m.watchStarts = set.Histograms(metrics.Family{
		Name: "apiserver_watch_list_duration_seconds", Help: "Time until a watch with initial events had sent them, in seconds.", Stability: metrics.Beta,
		Labels: append(version[:3:3], "scope"), Buckets: []float64{.05, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60},
	})
	m.waited = set.Histograms(metrics.Family{
		Name: "apiserver_watch_cache_read_wait_seconds", Help: "Time that reads waited for the cache, in seconds. Reads that did not wait are not counted.",
		Buckets: []float64{.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3},
	}).WithLabelValues()
}

// addCallers adds the metrics of authentication and authorization.
func (m *Metrics) addCallers(set *metrics.Set) {
	seconds := prometheus.ExponentialBuckets(.001, 2, 15)
	result := []string{"result"}
	counters := func(name, help string) *prometheus.CounterVec {
		return set.Counters(metrics.Family{Name: name, Help: help, Labels: result})
	}
	histograms := func(name, help string) *prometheus.HistogramVec {
		return set.Histograms(metrics.Family{Name: name, Help: help, Labels: result, Buckets: seconds})
	}
	m.authn = newOutcomes(counters("authentication_attempts", "Requests by the result of authentication: success, failure without credentials, error with invalid ones."),
		histograms("authentication_duration_seconds", "Duration of authentication, in seconds."), "success", "failure", "error")
	m.authz = newOutcomes(counters("authorization_attempts_total", "Requests by the result of authorization: allowed, denied, no-opinion, error."),
		histograms("authorization_duration_seconds", "Duration of authorization, in seconds."), "allowed", "denied", "no-opinion", "error")
	users := set.Counters(metrics.Family{Name: "authenticated_user_requests", Help: "Requests of authenticated users, by a fixed set of user names.", Labels: []string{"username"}})
	m.users = map[string]prometheus.Counter{}
	for _, name := range []string{"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default", emailUser, otherUser} {
		m.users[name] = users.WithLabelValues(name)
	}
}

// outcomes are the metrics of a decision, by its result.
type outcomes struct {
	count map[string]prometheus.Counter
	took  map[string]prometheus.Observer
}

func newOutcomes(count *prometheus.CounterVec, took *prometheus.HistogramVec, results ...string) outcomes {
	o := outcomes{map[string]prometheus.Counter{}, map[string]prometheus.Observer{}}
	for _, r := range results {
		o.count[r], o.took[r] = count.WithLabelValues(r), took.WithLabelValues(r)
	}
	return o
}

func (o *outcomes) observe(result string, took time.Duration) {
	o.count[result].Inc()
	o.took[result].Observe(took.Seconds())
}

// The labels of users without a label of their own.
const (
	emailUser = "email_id"
	otherUser = "other"
)

// Authenticated records the result of an authentication that began at begun.
func (m *Metrics) Authenticated(u *auth.User, err error, begun time.Time) {
	took := time.Since(begun)
	switch {
	case err != nil:
		m.authn.observe("error", took)
		return
	case u == nil:
		m.authn.observe("failure", took)
		return
	}
	m.authn.observe("success", took)
	count := m.users[u.Name]
	if count == nil && strings.Contains(u.Name, "@") {
		count = m.users[emailUser]
	} else if count == nil {
		count = m.users[otherUser]
	}
	count.Inc()
}

// Authorized records the result of an authorization that began at begun.
func (m *Metrics) Authorized(d auth.Decision, err error, begun time.Time) {
	result := "no-opinion"
	switch {
	case d == auth.Allow:
		result = "allowed"
	case err != nil:
		result = "error"
	case d == auth.Deny:
		result = "denied"
	}
	m.authz.observe(result, time.Since(begun))
}

// Panicked counts a panic in a part of the server. The names of parts are a small fixed set.
func (m *Metrics) Panicked(part string) { m.panics.WithLabelValues(part).Inc() }

// Waited records that a read waited for the cache.
func (m *Metrics) Waited(d time.Duration) { m.waited.Observe(d.Seconds()) }
