package server

import (
	"context"
	"time"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
)

// eventLife is how long events are kept after their last change.
const eventLife = time.Hour

var eventsResource = meta.GroupResource{Resource: "events"}

// expiryLoop removes events an hour after they were last written. Its keys are
// "namespace/name".
func expiryLoop() Loop {
	return Loop{
		Name:     "event-expiry",
		Types:    []meta.GroupResource{eventsResource},
		Identity: true,
		Observe: func(c registry.Change) []string {
			if c.Object == nil {
				return nil
			}
			return []string{c.Key.Namespace + "/" + c.Key.Name}
		},
		Reconcile: expire,
	}
}

func expire(ctx context.Context, cl registry.Client, name string) (time.Duration, error) {
	_, key, _ := registry.ParseStorageKey("events/" + name)
	o, err := cl.Get(ctx, eventsResource, key)
	if meta.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if left := eventLife - time.Since(lastWritten(o)); left > 0 {
		return left, nil
	}
	err = cl.Delete(ctx, eventsResource, key, registry.DeleteOptions{UID: o.UID(), Version: o.ResourceVersion()})
	if meta.IsNotFound(err) || meta.IsConflict(err) {
		return 0, nil // gone, or written again: then the loop sees it again
	}
	return 0, err
}

// lastWritten is the newest time that an event tells of itself, up to now: an
// event from the future does not live longer.
func lastWritten(o *meta.Object) time.Time {
	now, newest := time.Now(), o.CreationTimestamp()
	for _, path := range [][]string{{"lastTimestamp"}, {"eventTime"}, {"series", "lastObservedTime"}} {
		if t := o.Time(path...); t.After(newest) && !t.After(now) {
			newest = t
		}
	}
	return newest
}
