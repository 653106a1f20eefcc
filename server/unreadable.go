package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/storage"
)

// watchIntegrity shows what the store cannot read.
func watchIntegrity(reg prometheus.Registerer, b storage.Backend) {
	c, ok := b.(storage.Checker)
	if !ok {
		return
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "apiserver_storage_damaged_records", Help: "Stored objects that cannot be read.",
	}, func() float64 {
		damaged, _ := c.Missing()
		return float64(damaged)
	}), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "apiserver_storage_lost_commits", Help: "1 if the store has lost commits that it had acknowledged and nobody has seen to it yet.",
	}, func() float64 {
		_, losses := c.Missing()
		return float64(losses)
	}))
}
