package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// maxExact bounds the revisions in metrics, which are floating-point numbers: larger numbers would
// lose their last digits.
const maxExact = 1e15

// typeMetric is a metric of the objects and the cache of each type.
type typeMetric struct {
	name, help string
	class      metrics.Stability
	kind       prometheus.ValueType
	value      func(*watch.Stats) float64
}

// typeMetrics returns the metrics of types, which are read when /metrics is served.
func typeMetrics() []typeMetric {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	return []typeMetric{
		{"apiserver_resource_objects", "Stored objects.", metrics.Alpha,
			gauge, func(st *watch.Stats) float64 { return float64(st.Entries) }},
		{"apiserver_resource_size_estimate_bytes", "Bytes of the stored objects, without their keys.", metrics.Alpha,
			gauge, func(st *watch.Stats) float64 { return float64(st.Bytes) }},
		{"apiserver_watch_cache_resource_version", "The last 15 digits of the resource version of the newest change.", metrics.Alpha,
			gauge, func(st *watch.Stats) float64 { return float64(st.Changed % maxExact) }},
		{"apiserver_storage_list_total", "Lists from the store.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Scans) }},
		{"apiserver_storage_list_fetched_objects_total", "Objects read from the store for lists.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Scanned) }},
		{"apiserver_storage_list_evaluated_objects_total", "Objects from the store that lists examined.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Scanned) }},
		{"apiserver_storage_list_returned_objects_total", "Objects from the store that lists returned.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.ScanReturned) }},
		{"apiserver_storage_events_received_total", "Changes received from the store.", metrics.Beta,
			counter, func(st *watch.Stats) float64 { return float64(st.Received) }},
		{"apiserver_cache_list_total", "Lists from the cache.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Lists) }},
		{"apiserver_cache_list_fetched_objects_total", "Objects in the cache that lists examined.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Examined) }},
		{"apiserver_cache_list_returned_objects_total", "Objects that lists from the cache returned.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Returned) }},
		{"apiserver_init_events_total", "Initial objects sent to watches.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Initial) }},
		{"apiserver_watch_cache_events_received_total", "Changes received by the cache.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Received) }},
		{"apiserver_watch_cache_events_dispatched_total", "Changes passed on to watches.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Published) }},
		{"apiserver_watch_cache_initializations_total", "Initializations of the cache: always 1.", metrics.Alpha, counter, func(*watch.Stats) float64 { return 1 }},
		{"apiserver_watch_cache_history_shortened_total", "Times that changes were dropped from the history early because Limits.HistoryBytes was exceeded.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Shortened) }},
	}
}

// addTypes adds the metrics of types.
func (o Options) addTypes(set *metrics.Set) {
	for _, f := range typeMetrics() {
		labels, indexed := []string{"group", "resource"}, slices.Contains(indexed, f.name)
		if indexed {
			labels = append(labels, "index")
		}
		set.Read(metrics.Family{Name: f.name, Help: f.help, Stability: f.class, Labels: labels}, f.kind, func(emit func(float64, ...string)) {
			o.eachCache(func(t *resource.Type, st *watch.Stats) {
				if indexed {
					emit(f.value(st), t.Group, t.Plural, "")
				} else {
					emit(f.value(st), t.Group, t.Plural)
				}
			})
		})
	}
	set.Read(metrics.Family{
		Name: "apiserver_storage_objects", Help: "Stored objects; see apiserver_resource_objects.", Stability: metrics.Stable, Deprecated: 34, Labels: []string{"resource"},
	}, prometheus.GaugeValue, func(emit func(float64, ...string)) {
		o.eachCache(func(t *resource.Type, st *watch.Stats) { emit(float64(st.Entries), t.GroupResource().String()) })
	})
}

// indexed are the metrics with a label for an index. It is empty, since caches have no named indexes.
var indexed = []string{"apiserver_cache_list_total", "apiserver_cache_list_fetched_objects_total"}

// addStore adds the metrics of the store and of the history.
func (o Options) addStore(set *metrics.Set) {
	size := func() int64 {
		if sized, ok := o.Backend.(storage.Sizer); ok {
			return sized.Size()
		}
		_, all := o.Hub.StoredBytes("")
		return all
	}
	set.Read(metrics.Family{
		Name: "apiserver_storage_size_bytes", Help: "Size of the store in bytes, or of the objects if the store does not report its size.", Stability: metrics.Stable, Labels: []string{"storage_cluster_id"},
	}, prometheus.GaugeValue, func(emit func(float64, ...string)) { emit(float64(size()), storeName) })
	set.Read(metrics.Family{
		Name: "apiserver_storage_db_total_size_in_bytes", Help: "Size of the store in bytes; see apiserver_storage_size_bytes.", Deprecated: 28, Labels: []string{"endpoint"},
	}, prometheus.GaugeValue, func(emit func(float64, ...string)) { emit(float64(size()), storeName) })
	set.Read(metrics.Family{
		Name: "apiserver_watch_cache_history_used_ratio", Help: "Used part of Limits.HistoryBytes. At 1 the oldest changes are dropped early, and watches from there read the store.",
	}, prometheus.GaugeValue, func(emit func(float64, ...string)) { emit(o.Hub.HistoryUsed()) })
}

// storeName is the label of the only store of a server.
const storeName = "storage-0"

// eachCache calls f for each type with stored objects, in the order of the types.
func (o Options) eachCache(f func(*resource.Type, *watch.Stats)) {
	for _, t := range o.Types().Types() {
		if !t.Virtual {
			st := o.Hub.Cache(t.GroupResource()).Stats()
			f(t, &st)
		}
	}
}

// addIntegrity adds the metrics of a store that checks its records.
func (o Options) addIntegrity(set *metrics.Set) {
	c, ok := o.Backend.(storage.Checker)
	if !ok {
		return
	}
	set.Read(metrics.Family{Name: "apiserver_storage_damaged_records", Help: "Stored objects that cannot be read."},
		prometheus.GaugeValue, func(emit func(float64, ...string)) {
			damaged, _ := c.Missing()
			emit(float64(damaged))
		})
	set.Read(metrics.Family{Name: "apiserver_storage_lost_commits", Help: "1 if the store lost commits that it had acknowledged, until an operator resolves it."},
		prometheus.GaugeValue, func(emit func(float64, ...string)) {
			_, losses := c.Missing()
			emit(float64(losses))
		})
}
