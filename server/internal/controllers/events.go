// Package controllers defines the built-in controllers of a server.
package controllers

import (
	"context"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
)

// eventLife is how long an event is kept after its last change.
const eventLife = time.Hour

var events = meta.GroupResource{Resource: "events"}

// Events returns the controller that deletes events an hour after they were last written. Its keys are
// "namespace/name".
func Events() client.Controller {
	return client.Controller{
		Name:     "event-expiry",
		Types:    []meta.GroupResource{events},
		Identity: true,
		MapEvent: func(c client.Event) []string {
			if c.Object == nil {
				return nil
			}
			return []string{c.Key.Namespace + "/" + c.Key.Name}
		},
		Reconcile: expire,
	}
}

// expire deletes an event if it has expired, and otherwise returns the remaining time.
func expire(ctx context.Context, cl client.Client, key string) (time.Duration, error) {
	namespace, name, _ := strings.Cut(key, "/")
	k := meta.Key{Namespace: namespace, Name: name}
	o, err := cl.Get(ctx, events, k)
	if err != nil {
		return 0, unlessGone(err)
	}
	if left := eventLife - time.Since(lastWritten(o)); left > 0 {
		return left, nil
	}
	err = cl.Delete(ctx, events, k, registry.DeleteOptions{UID: o.UID(), Version: o.ResourceVersion()})
	if meta.IsConflict(err) {
		return 0, nil // the event was written again, which triggers the controller
	}
	return 0, unlessGone(err)
}

// lastWritten returns the newest time in an event that is not in the future, so that an event with a future time does
// not live longer.
func lastWritten(o *meta.Object) time.Time {
	now, newest := time.Now(), o.CreationTimestamp()
	for _, path := range [][]string{{"lastTimestamp"}, {"eventTime"}, {"series", "lastObservedTime"}} {
		if t := o.Time(path...); t.After(newest) && !t.After(now) {
			newest = t
		}
	}
	return newest
}

// unlessGone returns err, or nil if err is NotFound.
func unlessGone(err error) error {
	if meta.IsNotFound(err) {
		return nil
	}
	return err
}
