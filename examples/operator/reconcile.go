package operator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Finalizer keeps a fleet until its ships are gone.
const Finalizer = "sea.example.com/ships"

const manager = "fleet-operator"

// Reconciler reconciles fleets.
type Reconciler struct{ client.Client }

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	r.Client = m.GetClient()
	skip := true // several managers in one process may have the same controller
	return ctrl.NewControllerManagedBy(m).For(&Fleet{}).Owns(newShip()).
		WithOptions(controller.Options{SkipNameValidation: &skip}).Complete(r)
}

func newShip() *unstructured.Unstructured {
	ship := &unstructured.Unstructured{}
	ship.SetGroupVersionKind(GroupVersion.WithKind("Ship"))
	return ship
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	fleet := &Fleet{}
	if err := r.Get(ctx, req.NamespacedName, fleet); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ships, err := r.ships(ctx, fleet)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !fleet.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.sink(ctx, fleet, ships)
	}
	if controllerutil.AddFinalizer(fleet, Finalizer) {
		return ctrl.Result{}, r.Update(ctx, fleet)
	}
	for i := range fleet.Spec.Ships {
		if err := r.build(ctx, fleet, i); err != nil {
			return ctrl.Result{}, err
		}
	}
	for name, ship := range ships {
		if !wanted(fleet, name) {
			if err := client.IgnoreNotFound(r.Delete(ctx, ship)); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	return ctrl.Result{}, r.updateStatus(ctx, fleet, len(ships))
}

// ships returns the ships of a fleet by name, from the cache.
func (r *Reconciler) ships(ctx context.Context, fleet *Fleet) (map[string]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(GroupVersion.WithKind("ShipList"))
	if err := r.List(ctx, list, client.InNamespace(fleet.Namespace), client.MatchingLabels{"fleet": fleet.Name}); err != nil {
		return nil, err
	}
	ships := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		ships[list.Items[i].GetName()] = &list.Items[i]
	}
	return ships, nil
}

func shipName(fleet *Fleet, i int32) string { return fmt.Sprintf("%s-%d", fleet.Name, i) }

func wanted(fleet *Fleet, name string) bool {
	for i := range fleet.Spec.Ships {
		if shipName(fleet, i) == name {
			return true
		}
	}
	return false
}

// build applies the desired state of one ship.
func (r *Reconciler) build(ctx context.Context, fleet *Fleet, i int32) error {
	ship := newShip()
	ship.SetName(shipName(fleet, i))
	ship.SetNamespace(fleet.Namespace)
	ship.SetLabels(map[string]string{"fleet": fleet.Name})
	if err := unstructured.SetNestedField(ship.Object, fleet.Spec.Flag, "spec", "flag"); err != nil {
		return err
	}
	if err := controllerutil.SetControllerReference(fleet, ship, r.Scheme()); err != nil {
		return err
	}
	return r.Apply(ctx, client.ApplyConfigurationFromUnstructured(ship), client.FieldOwner(manager))
}

// sink deletes the ships of a fleet that is being deleted, and removes the finalizer when they are
// gone.
func (r *Reconciler) sink(ctx context.Context, fleet *Fleet, ships map[string]*unstructured.Unstructured) error {
	for _, ship := range ships {
		if err := client.IgnoreNotFound(r.Delete(ctx, ship)); err != nil {
			return err
		}
	}
	if len(ships) > 0 || !controllerutil.RemoveFinalizer(fleet, Finalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Update(ctx, fleet))
}

// updateStatus writes the status.
func (r *Reconciler) updateStatus(ctx context.Context, fleet *Fleet, n int) error {
	before := fleet.DeepCopyObject().(*Fleet)
	fleet.Status.Ships = int32(n)
	complete := metav1.Condition{Type: "Complete", Status: metav1.ConditionFalse, Reason: "Building", ObservedGeneration: fleet.Generation}
	if int32(n) == fleet.Spec.Ships {
		complete.Status, complete.Reason = metav1.ConditionTrue, "Built"
	}
	changed := meta.SetStatusCondition(&fleet.Status.Conditions, complete)
	if !changed && before.Status.Ships == fleet.Status.Ships {
		return nil
	}
	return r.Status().Patch(ctx, fleet, client.MergeFrom(before))
}
