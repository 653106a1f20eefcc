package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/reconcile"
	"orch.io/controlplane/registry"
)

// RunOptions are the options of Run.
type RunOptions struct {
	// Log gets errors and panics of controllers; nil discards them. Failures of the connection go to
	// Conn.Log.
	Log *slog.Logger

	// Metrics registers controlplane_reconcile_total, which counts calls of Reconcile by
	// controller and result (success, error, panic) and panics of MapEvent, and the workqueue
	// metrics. nil means none.
	Metrics prometheus.Registerer
}

// Run runs controllers until the context ends, waits for their calls of Reconcile, and returns nil.
// If a controller is invalid, Run returns an error and runs none. Run does not elect a leader; see
// Election.
func Run(ctx context.Context, c Client, o RunOptions, controllers ...Controller) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, k := range controllers {
		if err := k.check(c); err != nil {
			return err
		}
	}
	results, err := reconcileResults(o.Metrics)
	if err != nil {
		return err
	}
	var loops []*reconcile.Loop[Event]
	for _, k := range controllers {
		l, err := reconcile.New(k.loop(c, o, results), reconcile.Feed[Event](c.Feed(k.Types...)))
		if err != nil {
			for _, l := range loops {
				l.Close()
			}
			return fmt.Errorf("metrics of controller %s: %w", k.Name, err)
		}
		loops = append(loops, l)
	}
	var all sync.WaitGroup
	for _, l := range loops {
		all.Go(func() { l.Run(ctx) })
	}
	all.Wait()
	return nil
}

// check returns an error if the controller is invalid.
func (k *Controller) check(c Client) error {
	switch {
	case k.Name == "":
		return errors.New("controller without a name")
	case k.MapEvent == nil:
		return fmt.Errorf("controller %s: MapEvent is nil", k.Name)
	case k.Reconcile == nil:
		return fmt.Errorf("controller %s: Reconcile is nil", k.Name)
	}
	served := c.Types()
	for _, r := range k.Types {
		if !slices.ContainsFunc(served, func(t *registry.Type) bool { return t.GroupResource() == r }) {
			return fmt.Errorf("controller %s: resource %s is not served", k.Name, r)
		}
	}
	return nil
}

// loop returns the options of the controller's loop.
func (k *Controller) loop(c Client, o RunOptions, results *prometheus.CounterVec) reconcile.Options[Event] {
	return reconcile.Options[Event]{
		Name: k.Name, Workers: k.Workers, MapEvent: k.MapEvent, Attrs: eventAttrs, Forget: k.Forget, Log: o.Log, Metrics: o.Metrics,
		Reconcile: func(ctx context.Context, key string) (time.Duration, error) {
			again, err := k.Reconcile(ctx, c, key)
			if err != nil {
				results.WithLabelValues(k.Name, "error").Inc()
			} else {
				results.WithLabelValues(k.Name, "success").Inc()
			}
			return again, err
		},
		Panicked: func(p any, attrs ...any) {
			results.WithLabelValues(k.Name, "panic").Inc()
			o.Log.Error("recovered from a panic", append([]any{"controller", k.Name, "panic", p, "stack", string(debug.Stack())}, attrs...)...)
		},
	}
}

// reconcileResults returns the counter that all controllers of a registerer share.
func reconcileResults(to prometheus.Registerer) (*prometheus.CounterVec, error) {
	set := metrics.For(to)
	results := set.Counters(metrics.Family{
		Name: "controlplane_reconcile_total", Help: "Calls of Reconcile by controller and result.", Labels: []string{"controller", "result"},
	})
	if err := set.Err(); err != nil {
		return nil, fmt.Errorf("metrics of controllers: %w", err)
	}
	return results, nil
}

// eventAttrs identifies an event in logs.
func eventAttrs(e Event) []any {
	return []any{"resource", e.Resource, "namespace", e.Key.Namespace, "name", e.Key.Name}
}
