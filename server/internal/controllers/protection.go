package controllers

import (
	"context"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/wellknown"
)

var (
	pods    = meta.GroupResource{Resource: "pods"}
	claims  = meta.GroupResource{Resource: "persistentvolumeclaims"}
	volumes = meta.GroupResource{Resource: "persistentvolumes"}
)

// ClaimProtection returns the controller that removes the protection finalizer of PersistentVolumeClaims that are
// being deleted and that no pod uses. Its keys are "namespace/name" of claims. It reads pods through c.
func ClaimProtection(p names.Profile, c client.Client) client.Controller {
	finalizer := p.Wire(wellknown.ClaimProtection)
	used := client.NewIndex(c, []meta.GroupResource{pods}, func() claimUse { return claimUse{} }, claimUse.apply)
	return client.Controller{
		Name: "pvc-protection", Types: []meta.GroupResource{claims, pods},
		MapEvent: func(e client.Event) (keys []string) {
			if e.Resource == claims && heldBy(e.Object, finalizer) {
				return []string{e.Key.String()}
			}
			if e.Resource == pods {
				still := claimsOf(e.Object)
				for claim := range claimsOf(e.Old) {
					if _, ok := still[claim]; !ok {
						keys = append(keys, claim.String())
					}
				}
			}
			return keys
		},
		Reconcile: func(ctx context.Context, cl client.Client, key string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			namespace, name, _ := strings.Cut(key, "/")
			return 0, removeFinalizer(ctx, cl, claims, meta.Key{Namespace: namespace, Name: name}, finalizer, func(claim *meta.Object) (use bool, err error) {
				used.Read(func(u claimUse) { use = u.uses(claim) })
				return use, nil
			})
		},
	}
}

// VolumeProtection returns the controller that removes the protection finalizer of PersistentVolumes that are being
// deleted and not bound. Its keys are names of volumes.
func VolumeProtection(p names.Profile) client.Controller {
	finalizer := p.Wire(wellknown.VolumeProtection)
	return client.Controller{
		Name: "pv-protection", Types: []meta.GroupResource{volumes},
		MapEvent: func(e client.Event) []string {
			if !heldBy(e.Object, finalizer) {
				return nil
			}
			return []string{e.Key.Name}
		},
		Reconcile: func(ctx context.Context, cl client.Client, name string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			return 0, removeFinalizer(ctx, cl, volumes, meta.Key{Name: name}, finalizer, func(volume *meta.Object) (bool, error) {
				return volume.String("status", "phase") == "Bound", nil
			})
		},
	}
}

// ClassProtection returns the controller that removes the protection finalizer of VolumeAttributesClasses that are
// being deleted and that no claim and no volume has or will get. Its keys are names of classes. Claims and volumes
// are listed only for a class that is being deleted.
func ClassProtection(p names.Profile) client.Controller {
	classes := meta.GroupResource{Group: p.Group(wellknown.GroupStorage), Resource: "volumeattributesclasses"}
	finalizer := p.Wire(wellknown.ClassProtection)
	return client.Controller{
		Name: "volumeattributesclass-protection", Types: []meta.GroupResource{classes, claims, volumes},
		MapEvent: func(e client.Event) []string {
			if e.Resource != classes {
				now := classesOf(e.Object)
				return slices.DeleteFunc(classesOf(e.Old), func(class string) bool { return slices.Contains(now, class) })
			}
			if !heldBy(e.Object, finalizer) {
				return nil
			}
			return []string{e.Key.Name}
		},
		Reconcile: func(ctx context.Context, cl client.Client, name string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			return 0, removeFinalizer(ctx, cl, classes, meta.Key{Name: name}, finalizer, func(*meta.Object) (bool, error) {
				for _, r := range []meta.GroupResource{claims, volumes} {
					list, err := cl.List(ctx, r, "")
					if err != nil && !meta.IsNotFound(err) { // NotFound: the kind is not served
						return true, err
					}
					if slices.ContainsFunc(list, func(o *meta.Object) bool { return slices.Contains(classesOf(o), name) }) {
						return true, nil
					}
				}
				return false, nil
			})
		},
	}
}

// classesOf returns the classes that a claim or volume has, requests or will get.
func classesOf(o *meta.Object) (classes []string) {
	if o == nil {
		return nil
	}
	for _, path := range [][]string{
		{"spec", "volumeAttributesClassName"}, {"status", "currentVolumeAttributesClassName"},
		{"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"},
	} {
		if class := o.String(path...); class != "" {
			classes = append(classes, class)
		}
	}
	return classes
}

// heldBy reports whether an object is being deleted and a finalizer keeps it.
func heldBy(o *meta.Object, finalizer string) bool {
	return o != nil && o.Terminating() && slices.Contains(o.Finalizers(), finalizer)
}

// removeFinalizer removes a finalizer from an object that is being deleted and is not used. used is called for the
// state that is written, too, because the object may have changed or have been replaced since it was read.
func removeFinalizer(ctx context.Context, cl client.Client, r meta.GroupResource, key meta.Key, finalizer string, used func(*meta.Object) (bool, error)) error {
	o, err := cl.Get(ctx, r, key)
	if err != nil || !heldBy(o, finalizer) {
		return unlessGone(err)
	}
	if use, err := used(o); use || err != nil {
		return err
	}
	_, err = cl.Update(ctx, r, key, "", func(now *meta.Object) error {
		if !heldBy(now, finalizer) {
			return nil
		}
		use, err := used(now)
		if !use && err == nil {
			now.RemoveFinalizer(finalizer)
		}
		return err
	})
	return unlessGone(err)
}

// claimUse maps each claim to the pods that use it. The value is the uid that an owner of the claim must have for
// this use, or "".
type claimUse map[meta.Key]map[meta.Key]string

func (u claimUse) apply(e client.Event) {
	for claim := range claimsOf(e.Old) {
		delete(u[claim], e.Key)
		if len(u[claim]) == 0 {
			delete(u, claim)
		}
	}
	for claim, owner := range claimsOf(e.Object) {
		if u[claim] == nil {
			u[claim] = map[meta.Key]string{}
		}
		u[claim][e.Key] = owner
	}
}

func (u claimUse) uses(claim *meta.Object) bool {
	for _, owner := range u[meta.Key{Namespace: claim.Namespace(), Name: claim.Name()}] {
		if owner == "" || slices.ContainsFunc(claim.OwnerReferences(), func(r meta.Owner) bool { return r.UID == owner }) {
			return true
		}
	}
	return false
}

// claimsOf returns the claims that a pod uses, with values as in claimUse. A claim is used until the pod is deleted
// or certainly finished. A generic ephemeral claim is used only if the pod owns it, and only until the pod is
// finished or its grace period is over, because then only the wait for the claim may keep the pod.
func claimsOf(pod *meta.Object) map[meta.Key]string {
	if pod == nil {
		return nil
	}
	phase := pod.String("status", "phase")
	finished := phase == "Succeeded" || phase == "Failed"
	leaves := finished || pod.Terminating() && pod.Int("metadata", "deletionGracePeriodSeconds") == 0
	finished = finished && !mayRun(pod)
	used := map[meta.Key]string{}
	for _, v := range pod.Objects("spec", "volumes") {
		if name := v.String("persistentVolumeClaim", "claimName"); name != "" && !finished {
			used[meta.Key{Namespace: pod.Namespace(), Name: name}] = ""
		}
		made := meta.Key{Namespace: pod.Namespace(), Name: pod.Name() + "-" + v.String("name")}
		if _, named := used[made]; v.Map("ephemeral") != nil && !named && !leaves {
			used[made] = pod.UID()
		}
	}
	return used
}

// mayRun reports whether a container of a pod may still run. The phase is not sufficient, because the phase of a pod
// on a lost node is an assumption of other controllers.
func mayRun(pod *meta.Object) bool {
	for _, of := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
		if slices.ContainsFunc(pod.Objects("status", of), func(s *meta.Object) bool { return s.Map("state", "terminated") == nil }) {
			return true
		}
	}
	return false
}
