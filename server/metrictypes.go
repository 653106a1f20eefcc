package server

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
)

// maxExact is above all revisions that metrics tell: what is larger would lose digits.
const maxExact = 1e15

// typeFigure is what is told of the objects of each type that is kept, and of its cache.
type typeFigure struct {
	name, help string
	class      metrics.Stability
	kind       prometheus.ValueType
	value      func(*watch.Stats) float64
}

// typeFigures are read when somebody asks.
func typeFigures() []typeFigure {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	return []typeFigure{
		{"apiserver_resource_objects", "Objects that there are.", metrics.Alpha,
			gauge, func(st *watch.Stats) float64 { return float64(st.Objects) }},
		{"apiserver_resource_size_estimate_bytes", "Bytes that objects take in the store, without their keys.", metrics.Alpha,
			gauge, func(st *watch.Stats) float64 { return float64(st.Bytes) }},
		{"apiserver_watch_cache_resource_version", "The version of the newest change, its last 15 digits.", metrics.Alpha,
			gauge, func(st *watch.Stats) float64 { return float64(st.Revision % maxExact) }},
		{"apiserver_storage_list_total", "Lists that the store was asked for.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Scans) }},
		{"apiserver_storage_list_fetched_objects_total", "Objects that were read from the store for lists.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Scanned) }},
		{"apiserver_storage_list_evaluated_objects_total", "Objects from the store that lists looked at.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Scanned) }},
		{"apiserver_storage_list_returned_objects_total", "Objects from the store that lists returned.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.ScanReturned) }},
		{"apiserver_storage_events_received_total", "Changes that came from the store.", metrics.Beta,
			counter, func(st *watch.Stats) float64 { return float64(st.Received) }},
		{"apiserver_cache_list_total", "Lists from the cache.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Lists) }},
		{"apiserver_cache_list_fetched_objects_total", "Objects in the cache that lists looked at.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Looked) }},
		{"apiserver_cache_list_returned_objects_total", "Objects that lists from the cache returned.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Returned) }},
		{"apiserver_init_events_total", "Objects that watches began with.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Initial) }},
		{"apiserver_watch_cache_events_received_total", "Changes that came to the cache.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Received) }},
		{"apiserver_watch_cache_events_dispatched_total", "Changes that watches were told.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Published) }},
		{"apiserver_watch_cache_initializations_total", "How often the cache was filled: once.", metrics.Alpha, counter, func(*watch.Stats) float64 { return 1 }},
		{"apiserver_watch_cache_history_shortened_total", "How often changes were forgotten before their time, since Limits.HistoryBytes has no room for them.", metrics.Alpha,
			counter, func(st *watch.Stats) float64 { return float64(st.Shortened) }},
	}
}

// addStored adds what is told of objects and of where they are stored. The hub is there.
func (s *Server) addStored() error {
	set := metrics.For(s.metrics.registry)
	s.addTypes(set)
	s.addStore(set)
	return set.Err()
}

// addTypes adds what is told of each type.
func (s *Server) addTypes(set *metrics.Set) {
	for _, f := range typeFigures() {
		labels, indexed := []string{"group", "resource"}, slices.Contains(indexed, f.name)
		if indexed {
			labels = append(labels, "index")
		}
		set.Read(metrics.Family{Name: f.name, Help: f.help, Stability: f.class, Labels: labels}, f.kind, func(emit func(float64, ...string)) {
			s.eachCache(func(t *resource.Type, st *watch.Stats) {
				if indexed {
					emit(f.value(st), t.Group, t.Plural, "")
				} else {
					emit(f.value(st), t.Group, t.Plural)
				}
			})
		})
	}
	set.Read(metrics.Family{
		Name: "apiserver_storage_objects", Help: "Objects that there are; see apiserver_resource_objects.", Stability: metrics.Stable, Deprecated: 34, Labels: []string{"resource"},
	}, prometheus.GaugeValue, func(emit func(float64, ...string)) {
		s.eachCache(func(t *resource.Type, st *watch.Stats) { emit(float64(st.Objects), t.GroupResource().String()) })
	})
}

// indexed are the families that have a label for an index, which no cache has.
var indexed = []string{"apiserver_cache_list_total", "apiserver_cache_list_fetched_objects_total"}

// addStore adds what is told of the store and of the history as a whole.
func (s *Server) addStore(set *metrics.Set) {
	size := func() int64 {
		if sized, ok := s.backend.(storage.Sizer); ok {
			return sized.Size()
		}
		_, all := s.hub.Held("")
		return all
	}
	set.Read(metrics.Family{
		Name: "apiserver_storage_size_bytes", Help: "Bytes that the store takes; where it does not tell, what the objects take.", Stability: metrics.Stable, Labels: []string{"storage_cluster_id"},
	}, prometheus.GaugeValue, func(emit func(float64, ...string)) { emit(float64(size()), storeName) })
	set.Read(metrics.Family{
		Name: "apiserver_storage_db_total_size_in_bytes", Help: "Bytes that the store takes; see apiserver_storage_size_bytes.", Deprecated: 28, Labels: []string{"endpoint"},
	}, prometheus.GaugeValue, func(emit func(float64, ...string)) { emit(float64(size()), storeName) })
	set.Read(metrics.Family{
		Name: "apiserver_watch_cache_history_used_ratio", Help: "Part of Limits.HistoryBytes that changes take: at 1 the oldest ones go before their time, and watches from there read the store.",
	}, prometheus.GaugeValue, func(emit func(float64, ...string)) { emit(s.hub.HistoryUsed()) })
}

// storeName is the name that metrics have for the one store that a server has.
const storeName = "storage-0"

// eachCache calls f for every type whose objects are kept, in their order.
func (s *Server) eachCache(f func(*resource.Type, *watch.Stats)) {
	for _, t := range s.catalog.Types().Types() {
		if !t.Virtual {
			st := s.hub.Cache(t.GroupResource()).Stats()
			f(t, &st)
		}
	}
}
