package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/storage"
)

// watchIntegrity shows what the store cannot read.
func watchIntegrity(set *metrics.Set, b storage.Backend) {
	c, ok := b.(storage.Checker)
	if !ok {
		return
	}
	set.Read(metrics.Family{Name: "apiserver_storage_damaged_records", Help: "Stored objects that cannot be read."},
		prometheus.GaugeValue, func(emit func(float64, ...string)) {
			damaged, _ := c.Missing()
			emit(float64(damaged))
		})
	set.Read(metrics.Family{Name: "apiserver_storage_lost_commits", Help: "1 if the store has lost commits that it had acknowledged and nobody has seen to it yet."},
		prometheus.GaugeValue, func(emit func(float64, ...string)) {
			_, losses := c.Missing()
			emit(float64(losses))
		})
}
