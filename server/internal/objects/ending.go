package objects

import (
	"context"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

// endingTime is how long an object whose end was seen may stay. Whoever deletes it
// removes it at once, unless the server or the store fails just then.
const endingTime = 10 * time.Second

// Ending removes objects of a kind that is deleted gracefully whose deletion
// was cut off between its two commits, see Store.store. Its keys are storage keys.
func Ending(t *resource.Type) client.Controller {
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
			if meta.IsNotFound(err) || meta.IsConflict(err) { // gone, or another of the name
				return 0, nil
			}
			return 0, err
		},
	}
}

// finished reports whether an object that is being deleted has nothing left to
// wait for.
func finished(t *resource.Type, obj *meta.Object) bool {
	return ending(obj) && len(obj.Finalizers()) == 0 && !(t.RetainOnDelete != nil && t.RetainOnDelete(obj))
}

// ending reports whether an object is being deleted and has no time left.
func ending(obj *meta.Object) bool {
	return obj.Terminating() && obj.Int("metadata", "deletionGracePeriodSeconds") == 0
}
