package objects

import (
	"context"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

// endingTime is how long an object may stay after its deletion is finished. Usually the write that finishes the
// deletion also removes the object, unless the server or the store fails between its two commits.
const endingTime = 10 * time.Second

// DeletionCompleter returns the controller that completes graceful deletions that were interrupted between their two commits,
// see Store.store. Its keys are storage keys.
func DeletionCompleter(t *resource.Type) client.Controller {
	return client.Controller{
		Name: "ending", Types: []meta.GroupResource{t.GroupResource()}, Identity: true,
		MapEvent: func(c client.Event) []string {
			if o := c.Object; o != nil && (!o.Terminating() || len(o.Finalizers()) > 0) {
				return nil
			}
			return []string{t.StorageKey(c.Key)}
		},
		Reconcile: func(ctx context.Context, cl client.Client, key string) (time.Duration, error) {
			r, k, _ := resource.ParseStorageKey(key)
			o, err := cl.Get(ctx, r, k)
			if meta.IsNotFound(err) {
				return 0, nil
			}
			if err != nil || !finished(t, o) {
				return 0, err
			}
			if left := endingTime - time.Since(o.DeletionTimestamp()); left > 0 {
				return left, nil
			}
			err = cl.Delete(ctx, r, k, registry.DeleteOptions{UID: o.UID()})
			if meta.IsNotFound(err) || meta.IsConflict(err) { // the object is gone, or was replaced
				return 0, nil
			}
			return 0, err
		},
	}
}

// finished reports whether the record of an object can be deleted: its grace period is over, and neither a finalizer
// nor the kind retains it.
func finished(t *resource.Type, obj *meta.Object) bool {
	return ending(obj) && len(obj.Finalizers()) == 0 && !(t.RetainOnDelete != nil && t.RetainOnDelete(obj))
}

// ending reports whether an object is being deleted and its grace period is 0.
func ending(obj *meta.Object) bool {
	return obj.Terminating() && obj.Int("metadata", "deletionGracePeriodSeconds") == 0
}
