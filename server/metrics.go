package server

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/metrics"
)

// counts are what operators watch, under the names that dashboards know. Labels come from
// the catalog and from lists of words, never from the caller, so that their number is
// bounded; those of a type that is gone go with it.
type counts struct {
	registry *metrics.Registry
	handler  http.Handler
	warned   sync.Once // about deprecated metrics that somebody reads
	log      *slog.Logger

	requests, aborts, terminations *prometheus.CounterVec
	duration, sli, responseSizes   *prometheus.HistogramVec
	bodySizes, eventSizes          *prometheus.HistogramVec
	watchStarts                    *prometheus.HistogramVec
	events, slowWatchers           *prometheus.CounterVec
	running, deprecated            *prometheus.GaugeVec
	panics, slowRenewals           *prometheus.CounterVec
	leads                          *prometheus.GaugeVec
	waited                         prometheus.Observer
	authn                          outcomes // success, failure, error
	authz                          outcomes // allowed, denied, no-opinion, error
	users                          map[string]prometheus.Counter

	kept metrics.Kept[requestKey, *requestCounts]
	told map[resourceLabels]bool // under the lock of kept
}

// latencies are the buckets of requests. Alerts know their bounds.
var latencies = []float64{.05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}

func newCounts(reg *metrics.Registry, gather prometheus.Gatherer, set *metrics.Set, log *slog.Logger) *counts {
	about := []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}
	with := func(labels ...string) []string { return append(about[:len(about):len(about)], labels...) }
	m := &counts{
		registry: reg, handler: promhttp.HandlerFor(gather, promhttp.HandlerOpts{}), log: log, told: map[resourceLabels]bool{},
		requests: set.Counters(metrics.Family{
			Name: "apiserver_request_total", Help: "Requests by verb, resource and HTTP code.", Stability: metrics.Stable, Labels: with("dry_run", "code"),
		}),
		duration: set.Histograms(metrics.Family{
			Name: "apiserver_request_duration_seconds", Help: "Time to answer requests, in seconds; of watches and connections, how long they lasted.", Stability: metrics.Stable,
			Labels: with("dry_run"), Buckets: append([]float64{.005, .025}, latencies...),
		}),
		sli: set.Histograms(metrics.Family{
			Name: "apiserver_request_sli_duration_seconds", Help: "Time to answer requests, in seconds, without that at admission webhooks and in queues.", Labels: about, Buckets: latencies,
		}),
		responseSizes: set.Histograms(metrics.Family{
			Name: "apiserver_response_sizes", Help: "Sizes of the answers to reads as they leave, in bytes.", Stability: metrics.Stable, Labels: about, Buckets: prometheus.ExponentialBuckets(1000, 10, 7),
		}),
		running: set.Gauges(metrics.Family{
			Name: "apiserver_longrunning_requests", Help: "Watches and connections that are open.", Stability: metrics.Stable, Labels: about,
		}),
		aborts: set.Counters(metrics.Family{
			Name: "apiserver_request_aborts_total", Help: "Requests whose connection the server cut, without an answer or within it.", Labels: about[:6],
		}),
		terminations: set.Counters(metrics.Family{
			Name: "apiserver_request_terminations_total", Help: "Requests that the server refused or ended to protect itself.", Labels: with("code"),
		}),
		bodySizes: set.Histograms(metrics.Family{
			Name: "apiserver_request_body_size_bytes", Help: "Sizes of the bodies of requests, in bytes.", Labels: []string{"group", "resource", "verb"}, Buckets: prometheus.LinearBuckets(50000, 100000, 31),
		}),
		deprecated: set.Gauges(metrics.Family{
			Name: "apiserver_requested_deprecated_apis", Help: "1 for each deprecated version that was asked for.", Stability: metrics.Stable,
			Labels: []string{"group", "version", "resource", "subresource", "removed_release"},
		}),
		panics: set.Counters(metrics.Family{
			Name: "apiserver_recovered_panics_total", Help: "Panics that ended a request or a step of a controller, by which.", Labels: []string{"in"},
		}),
	}
	m.addWatches(set)
	m.addCallers(set)
	m.leads = set.Gauges(metrics.Family{Name: "leader_election_master_status", Help: "1 while this server leads the controllers of a Lease, 0 while another one may.", Labels: []string{"name"}})
	m.slowRenewals = set.Counters(metrics.Family{Name: "leader_election_slowpath_total", Help: "Renewals of a Lease that found it changed by somebody else.", Labels: []string{"name"}})
	return m
}

// addWatches adds what is told of watches.
func (m *counts) addWatches(set *metrics.Set) {
	version, kind := []string{"group", "version", "resource"}, []string{"group", "resource"}
	m.events = set.Counters(metrics.Family{Name: "apiserver_watch_events_total", Help: "Events that were sent to watchers.", Labels: version})
	m.eventSizes = set.Histograms(metrics.Family{
		Name: "apiserver_watch_events_sizes", Help: "Sizes of events that were sent to watchers, in bytes.", Labels: version, Buckets: prometheus.ExponentialBuckets(1024, 2, 8),
	})
	m.slowWatchers = set.Counters(metrics.Family{
		Name: "apiserver_terminated_watchers_total", Help: "Watches that ended since their callers fell behind the history.", Labels: kind,
	})
	m.watchStarts = set.Histograms(metrics.Family{
		Name: "apiserver_watch_list_duration_seconds", Help: "Time until a watch that asked for the current objects first had sent them, in seconds.", Stability: metrics.Beta,
		Labels: append(version[:3:3], "scope"), Buckets: []float64{.05, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60},
	})
	m.waited = set.Histograms(metrics.Family{
		Name: "apiserver_watch_cache_read_wait_seconds", Help: "Time that reads waited until the cache showed what they ask for, in seconds, of those that had to.",
		Buckets: []float64{.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3},
	}).WithLabelValues()
}

// addCallers adds what became of the questions who calls and whether he may.
func (m *counts) addCallers(set *metrics.Set) {
	seconds := prometheus.ExponentialBuckets(.001, 2, 15)
	result := []string{"result"}
	counters := func(name, help string) *prometheus.CounterVec {
		return set.Counters(metrics.Family{Name: name, Help: help, Labels: result})
	}
	histograms := func(name, help string) *prometheus.HistogramVec {
		return set.Histograms(metrics.Family{Name: name, Help: help, Labels: result, Buckets: seconds})
	}
	m.authn = newOutcomes(counters("authentication_attempts", "Requests by whether their caller is known: success, failure without credentials, error with bad ones."),
		histograms("authentication_duration_seconds", "Time to find out who calls, in seconds."), "success", "failure", "error")
	m.authz = newOutcomes(counters("authorization_attempts_total", "Requests by what authorization says: allowed, denied, no-opinion, error."),
		histograms("authorization_duration_seconds", "Time to find out whether the caller may, in seconds."), "allowed", "denied", "no-opinion", "error")
	users := set.Counters(metrics.Family{Name: "authenticated_user_requests", Help: "Requests of known callers, by a few sorts of names.", Labels: []string{"username"}})
	m.users = map[string]prometheus.Counter{}
	for _, sort := range []string{"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default", emailUser, otherUser} {
		m.users[sort] = users.WithLabelValues(sort)
	}
}

// outcomes are the handles of a question, by its results.
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

// Names that metrics have for users who have no place of their own there.
const (
	emailUser = "email_id"
	otherUser = "other"
)

// authenticated counts whether it is known who calls.
func (m *counts) authenticated(u *auth.User, err error, begun time.Time) {
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
	sort := m.users[u.Name]
	if sort == nil && strings.Contains(u.Name, "@") {
		sort = m.users[emailUser]
	} else if sort == nil {
		sort = m.users[otherUser]
	}
	sort.Inc()
}

// authorized counts what authorization said.
func (m *counts) authorized(d auth.Decision, err error, begun time.Time) {
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

// addProcess adds what Go and the system tell of the process.
func addProcess(reg prometheus.Registerer) {
	for _, c := range []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		_ = reg.Register(c) // the program, whose registry it may be, has registered its own
	}
}

// addBuild adds what /version tells.
func (s *Server) addBuild(set *metrics.Set, name string) {
	v := s.versionDocument()
	var labels, values []string
	for _, l := range [][2]string{{"major", "major"}, {"minor", "minor"}, {"git_version", "gitVersion"}, {"git_commit", "gitCommit"}, {"git_tree_state", "gitTreeState"},
		{"build_date", "buildDate"}, {"go_version", "goVersion"}, {"compiler", "compiler"}, {"platform", "platform"}} {
		text, _ := v[l[1]].(string)
		labels, values = append(labels, l[0]), append(values, text)
	}
	set.Gauges(metrics.Family{Name: name, Help: "1, with the version of the server and what it was built with.", Stability: metrics.Beta, Labels: labels}).WithLabelValues(values...).Set(1)
}

// addAudit adds what an audit that is a prometheus.Collector counts.
func (m *counts) addAudit(a auth.Auditor) error {
	c, ok := a.(prometheus.Collector)
	if !ok {
		return nil
	}
	err := m.registry.Register(c)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) { // servers may share an audit
		return nil
	}
	return err
}

// serve answers /metrics. Who reads what is deprecated is told once.
func (m *counts) serve(w http.ResponseWriter, h *http.Request) {
	m.registry.Refresh()
	if names := m.registry.Deprecated(); len(names) > 0 {
		m.warned.Do(func() {
			m.log.Warn("/metrics shows deprecated metrics, which a later release hides", "metrics", strings.Join(names, " "))
		})
	}
	m.handler.ServeHTTP(w, h)
}

// codeLabel is the label of a code. One that nobody knows stands for its class.
func codeLabel(code int) string {
	if http.StatusText(code) == "" && code >= 100 && code < 600 {
		code -= code % 100
	} else if code < 100 || code >= 600 {
		code = http.StatusInternalServerError
	}
	return strconv.Itoa(code)
}
