package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/workqueue"
)

// Controller makes things right, one key at a time, whenever something changes in the
// caches that it follows. It works on a server from outside, as its caches do; one that is
// part of a server is a controller.Controller.
type Controller struct {
	Name string

	// Sources say which keys a change makes due: Each, Owned, Mapped. Their caches run
	// beside the controller, see Run; it begins when they hold what is there.
	Sources []Source

	// Reconcile makes things right for a key and says when to look again; 0 is when
	// something changes. After an error or a panic it is called again, after pauses that
	// grow from 5 milliseconds to 30 seconds. It is never called twice at a time for one
	// key. What it reads in a cache may be older than what it wrote itself (WaitFor). A key
	// whose object is gone is a usual case.
	Reconcile func(ctx context.Context, key meta.Key) (again time.Duration, err error)

	// Workers is how many keys are worked on at a time; zero is 16.
	Workers int

	// Resync makes all keys due again from time to time; zero is never.
	Resync time.Duration

	// Log is told of errors and panics; nil: nobody is.
	Log *slog.Logger

	// Metrics is where controlplane_reconcile_total is registered, which counts calls of
	// Reconcile by controller and result (success, error, panic), and panics of what maps
	// changes to keys. nil: nowhere.
	Metrics prometheus.Registerer
}

// Source is a cache whose changes make keys due.
type Source struct {
	wait   func(ctx context.Context) error
	follow func(ask func([]meta.Key), recovered func(meta.Key, any)) (stop func())
	each   func(ask func([]meta.Key), recovered func(meta.Key, any))
}

// Each makes the key of each object due that changes.
func Each[T any](c *Cache[T]) Source {
	return Mapped(c, func(key meta.Key, _ *T) []meta.Key { return []meta.Key{key} })
}

// Owned makes the keys of those due that own an object that changes, by its
// ownerReferences, and are of the kind of owners.
func Owned[T, O any](c *Cache[T], owners *Objects[O]) Source {
	return Mapped(c, func(key meta.Key, obj *T) (keys []meta.Key) {
		for _, r := range c.objects.owners(obj) {
			if meta.ParseAPIVersion(r.APIVersion).Group != owners.group || r.Kind != owners.kind {
				continue
			}
			owner := meta.Key{Name: r.Name}
			if owners.namespaced {
				owner.Namespace = key.Namespace
			}
			keys = append(keys, owner)
		}
		return keys
	})
}

// Mapped makes the keys due that keys returns for an object that changes: as it was and as
// it is. It must be fast, since the cache waits for it, and neither change the object nor
// use the cache.
func Mapped[T any](c *Cache[T], keys func(key meta.Key, obj *T) []meta.Key) Source {
	mapped := func(key meta.Key, obj *T, recovered func(meta.Key, any)) []meta.Key {
		if obj == nil {
			return nil
		}
		defer func() {
			if p := recover(); p != nil {
				recovered(key, p)
			}
		}()
		return keys(key, obj)
	}
	return Source{
		wait: c.Wait,
		follow: func(ask func([]meta.Key), recovered func(meta.Key, any)) func() {
			f := &follower[T]{func(key meta.Key, old, new *T) {
				ask(mapped(key, old, recovered))
				ask(mapped(key, new, recovered))
			}}
			c.add(f)
			return func() { c.remove(f) }
		},
		each: func(ask func([]meta.Key), recovered func(meta.Key, any)) {
			for key, obj := range c.All() {
				ask(mapped(key, obj, recovered))
			}
		},
	}
}

// owners returns the owners of an object.
func (o *Objects[T]) owners(v *T) []meta.OwnerReference {
	var list []meta.OwnerReference
	if f, ok := reflect.TypeFor[T]().FieldByName("ObjectMeta"); ok && f.Type == reflect.TypeFor[meta.ObjectMeta]() && len(f.Index) == 1 {
		m := reflect.ValueOf(v).Elem().FieldByIndex(f.Index).Addr().Interface().(*meta.ObjectMeta)
		for _, r := range m.OwnerReferences {
			list = append(list, meta.OwnerReference{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name, UID: r.UID})
		}
		return list
	}
	tree, err := o.view.From(v)
	if err != nil {
		return nil // it came from the server: there is a form of it
	}
	return meta.NewObject(tree).OwnerReferences()
}

// Run works until the context ends, waits for the calls of Reconcile that run then, and
// returns nil. An error says what is wrong with the controller.
func (c Controller) Run(ctx context.Context) error {
	switch {
	case c.Name == "":
		return errors.New("a controller without a name")
	case c.Reconcile == nil:
		return fmt.Errorf("controller %s has no Reconcile", c.Name)
	case len(c.Sources) == 0:
		return fmt.Errorf("controller %s has no Sources", c.Name)
	}
	results, err := c.results()
	if err != nil {
		return err
	}
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	recovered := func(key string, p any) {
		results.WithLabelValues(c.Name, "panic").Inc()
		log.Error("recovered from a panic", "controller", c.Name, "key", key, "panic", p, "stack", string(debug.Stack()))
	}
	queue, err := workqueue.New(workqueue.Options{
		Name: c.Name, Workers: c.Workers, Metrics: c.Metrics,
		Work: func(ctx context.Context, text string) (time.Duration, error) {
			key, err := meta.ParseKey(text)
			if err != nil {
				return 0, nil // a name that no object has
			}
			again, err := c.Reconcile(ctx, key)
			if err != nil {
				results.WithLabelValues(c.Name, "error").Inc()
			} else {
				results.WithLabelValues(c.Name, "success").Inc()
			}
			return again, err
		},
		Failed: func(key string, again time.Duration, err error) {
			log.Warn("controller failed", "controller", c.Name, "key", key, "again", again, "error", err)
		},
		Panicked: recovered,
	})
	if err != nil {
		return fmt.Errorf("metrics of controller %s: %w", c.Name, err)
	}
	defer queue.Close()
	c.work(ctx, queue, func(key meta.Key, p any) { recovered(key.String(), p) })
	return nil
}

// work feeds the queue from the sources and runs it.
func (c Controller) work(ctx context.Context, queue *workqueue.Queue, recovered func(meta.Key, any)) {
	ask := func(keys []meta.Key) {
		for _, k := range keys {
			queue.Ask(0, k.String())
		}
		if len(keys) > 0 {
			queue.Wake()
		}
	}
	for _, s := range c.Sources {
		stop := s.follow(ask, recovered)
		defer stop()
	}
	for _, s := range c.Sources {
		if s.wait(ctx) != nil {
			return // the context ended before there was anything to do
		}
	}
	var resync sync.WaitGroup
	defer resync.Wait()
	if c.Resync > 0 {
		resync.Go(func() {
			for pause(ctx, c.Resync) == nil {
				for _, s := range c.Sources {
					s.each(ask, recovered)
				}
			}
		})
	}
	queue.Run(ctx)
}

// results is the metric, which controllers of one registerer share.
func (c Controller) results() (*prometheus.CounterVec, error) {
	set := metrics.For(c.Metrics)
	results := set.Counters(metrics.Family{
		Name: "controlplane_reconcile_total", Help: "Calls of Reconcile by controller and result.", Labels: []string{"controller", "result"},
	})
	if err := set.Err(); err != nil {
		return nil, fmt.Errorf("metrics of controller %s: %w", c.Name, err)
	}
	return results, nil
}

// Runner works until its context ends: a Cache or a Controller.
type Runner interface {
	Run(ctx context.Context) error
}

// Run runs caches and controllers side by side until the context ends, or one of them
// returns, which ends the others. It returns when all have, with their errors.
func Run(ctx context.Context, runners ...Runner) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(runners))
	var all sync.WaitGroup
	for i, r := range runners {
		all.Go(func() {
			defer cancel()
			errs[i] = r.Run(ctx)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
