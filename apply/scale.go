package apply

import (
	"slices"
	"time"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/schema"
)

// ScaleVersion is the apiVersion of the object of the sub-resource scale.
const ScaleVersion = "autoscaling/v1"

// NewScaleTracker returns the Tracker for objects of kind Scale. A write to the
// sub-resource scale of an object goes like this, where t is the object's own
// Tracker:
//
//	scale := ...                                  // the Scale that shows the live object
//	scale.Metadata()["managedFields"] = t.ScaleOwners(live)
//	changed, err := scales.Apply(scale, patch, w) // or change it and call scales.Update
//	obj := ...                                    // live with the new replica count
//	err = t.TakeScaleOwners(obj, changed, version)
func NewScaleTracker() *Tracker {
	replicas := &schema.Schema{Type: schema.Integer}
	text := &schema.Schema{Type: schema.String}
	spec, status, scale := &schema.Struct{}, &schema.Struct{}, &schema.Struct{}
	spec.Add(&schema.Field{Name: "replicas", Schema: replicas})
	status.Add(&schema.Field{Name: "replicas", Schema: replicas}, &schema.Field{Name: "selector", Schema: text})
	scale.Add(&schema.Field{Name: "spec", Schema: &schema.Schema{Type: schema.Object, Struct: spec}},
		&schema.Field{Name: "status", Schema: &schema.Schema{Type: schema.Object, Struct: status}})
	return NewTracker(Config{
		Kind:     "Scale",
		Versions: []Version{{APIVersion: ScaleVersion, Schema: &schema.Schema{Type: schema.Object, Struct: scale}}},
	})
}

// replicas returns where a version of the kind keeps the replica count.
func (t *Tracker) replicas(apiVersion string) fieldpath.Path {
	i := slices.IndexFunc(t.config.Versions, func(v Version) bool { return v.APIVersion == apiVersion })
	if i < 0 {
		return nil
	}
	var p fieldpath.Path
	for _, name := range t.config.Versions[i].Replicas {
		p = append(p, fieldpath.PathElement{FieldName: &name})
	}
	return p
}

// ScaleOwners returns the managedFields that the Scale of obj has: who owns the
// replica count.
func (t *Tracker) ScaleOwners(obj *meta.Object) []any {
	es, err := t.read(obj.List("metadata", "managedFields"))
	if err != nil {
		return nil
	}
	var scale entries
	for _, e := range es {
		if p := t.replicas(e.apiVersion); p != nil && e.set.Has(p) {
			c := &entry{manager: e.manager, operation: e.operation, subresource: e.subresource, apiVersion: ScaleVersion, time: e.time}
			c.own(fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas")))
			scale = append(scale, c)
		}
	}
	list, err := t.write(scale)
	if err != nil {
		return nil
	}
	return list
}

// TakeScaleOwners sets obj's managedFields after a write to its sub-resource
// scale: who owns the replica count in scale owns it in obj, in the given
// version, and nobody else does.
func (t *Tracker) TakeScaleOwners(obj, scale *meta.Object, apiVersion string) error {
	es, err := t.read(obj.List("metadata", "managedFields"))
	if err != nil {
		es = nil
	}
	now, err := t.read(scale.List("metadata", "managedFields"))
	if err != nil {
		return meta.Internal(err)
	}
	left := now.owning(fieldpath.MakePathOrDie("spec", "replicas"))
	for _, e := range es {
		p := t.replicas(e.apiVersion)
		if p == nil || !e.set.Has(p) {
			continue
		}
		i := slices.IndexFunc(left, func(o *entry) bool {
			return o.manager == e.manager && o.operation == e.operation && o.subresource == e.subresource
		})
		if i < 0 {
			e.own(e.set.Difference(fieldpath.NewSet(p)))
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	at := t.replicas(apiVersion)
	for _, e := range left {
		if at == nil {
			break
		}
		e.apiVersion, e.time = apiVersion, time.Time{}
		if old := es.find(e); old != nil {
			old.own(old.set.Union(fieldpath.NewSet(at)))
			continue
		}
		e.own(fieldpath.NewSet(at))
		es = append(es, e)
	}
	return t.store(obj, es.withoutEmpty())
}

func (es entries) owning(p fieldpath.Path) entries {
	return slices.DeleteFunc(es, func(e *entry) bool { return !e.set.Has(p) })
}
