package definitions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/controllers"
	"orch.io/controlplane/server/internal/objects"
)

const (
	// removalRetry is the pause before a definition is reconciled again if its objects wait for finalizers.
	removalRetry = 250 * time.Millisecond

	// removalTime is how long the objects of a deleted definition may wait for finalizers before
	// its Terminating condition reports a failure.
	removalTime = time.Minute
)

// remove deletes the objects of a definition that is being deleted, and removes the definition's finalizer when they
// are gone. Admission does not run for the objects: it has allowed the deletion of the definition, and its webhooks
// are often deleted together with the definition. A definition that cannot be served keeps its finalizer until it is
// repaired or a user removes the finalizer, because the next definition of that name would serve the objects.
func (r *reconciler) remove(ctx context.Context, cl client.Client, name string) (time.Duration, error) {
	key := meta.Key{Name: name}
	crd, err := cl.Get(ctx, r.resource, key)
	if meta.IsNotFound(err) || err == nil && !crd.Terminating() {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	finalizer := r.o.Names.Wire(wellknown.DefinitionFinalizer)
	if !slices.Contains(crd.Finalizers(), finalizer) {
		return 0, nil
	}
	def := r.definitionOf(name)
	if def.err != nil { // when the definition is repaired, it is reconciled again
		return 0, r.setTerminating(ctx, cl, key, "InstanceDeletionFailed", "the objects of this kind cannot be deleted: "+def.err.Error())
	}
	if t := def.typ; t != nil {
		left, err := controllers.DeleteAll(objects.Unadmitted(ctx), cl, &t.Type, "")
		if left.Objects > 0 || err != nil {
			if stored := r.hub.Cache(t.GroupResource()); err != nil { // count the objects that could not be listed, too
				left.Objects = stored.Len() + len(stored.Damaged(""))
			}
			reason, message := removalState(left, err, time.Since(crd.DeletionTimestamp()))
			if err == nil {
				return removalRetry, r.setTerminating(ctx, cl, key, reason, message)
			}
			err = fmt.Errorf("deleting %s: %w", t.GroupResource(), err)
			if conditionReports(crd, reason, left.Objects) {
				return removalRetry, err
			}
			return removalRetry, errors.Join(err, r.setTerminating(ctx, cl, key, reason, message))
		}
	}
	_, err = cl.Update(ctx, r.resource, key, "", func(o *meta.Object) error {
		o.RemoveFinalizer(finalizer)
		return nil
	})
	if meta.IsNotFound(err) {
		return 0, nil
	}
	return 0, err
}

// removalState returns the reason and the message of a definition's Terminating condition while
// objects of its kind are left: their number, the error and the finalizers.
func removalState(left controllers.Remaining, err error, since time.Duration) (reason, message string) {
	causes := []string{}
	if err != nil {
		causes = append(causes, err.Error())
	}
	if left.Unreadable != nil && err == nil {
		causes = append(causes, left.Unreadable.Error())
	}
	reason = "InstanceDeletionInProgress"
	if len(causes) > 0 || since >= removalTime {
		reason = "InstanceDeletionFailed"
	}
	for _, f := range slices.Sorted(maps.Keys(left.Finalizers)) {
		causes = append(causes, fmt.Sprintf("the finalizer %s holds %d", f, left.Finalizers[f]))
	}
	message = fmt.Sprintf("%d objects of this kind are left", left.Objects)
	if len(causes) > 0 {
		message += ": " + strings.Join(causes, "; ")
	}
	return reason, message
}

// conditionReports reports whether the Terminating condition of a definition already has the reason and the number of objects.
// It is then not written again, even if the text of the error differs, because each write of the condition triggers
// the controller at once.
func conditionReports(crd *meta.Object, reason string, objects int) bool {
	for _, v := range crd.List("status", "conditions") {
		m, _ := v.(map[string]any)
		c := meta.NewObject(m)
		if c.String("type") == "Terminating" {
			return c.String("reason") == reason && strings.HasPrefix(c.String("message"), fmt.Sprintf("%d objects ", objects))
		}
	}
	return false
}

// setTerminating sets the Terminating condition of a definition.
func (r *reconciler) setTerminating(ctx context.Context, cl client.Client, key meta.Key, reason, message string) error {
	_, err := cl.Update(ctx, r.resource, key, "status", func(o *meta.Object) error {
		o.SetCondition("Terminating", "True", reason, message)
		return nil
	})
	if meta.IsNotFound(err) {
		return nil
	}
	return err
}
