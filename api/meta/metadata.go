package meta

import (
	"slices"
	"time"
)

// APIVersion returns the apiVersion field.
func (o *Object) APIVersion() string { return o.String("apiVersion") }

// Kind returns the kind field.
func (o *Object) Kind() string { return o.String("kind") }

// SetGVK sets apiVersion and kind.
func (o *Object) SetGVK(k GroupVersionKind) {
	o.Tree()["apiVersion"] = k.APIVersion()
	o.tree["kind"] = k.Kind
}

// Metadata returns the metadata object, which it creates if it is missing. Changes to the map
// change o.
func (o *Object) Metadata() map[string]any {
	m := o.Map("metadata")
	if m == nil {
		m = map[string]any{}
		o.Tree()["metadata"] = m
	}
	return m
}

// Name returns metadata.name.
func (o *Object) Name() string { return o.String("metadata", "name") }

// SetName sets metadata.name.
func (o *Object) SetName(s string) { o.setMeta("name", s) }

// GenerateName returns metadata.generateName.
func (o *Object) GenerateName() string { return o.String("metadata", "generateName") }

// Namespace returns metadata.namespace, "" for cluster-scoped objects.
func (o *Object) Namespace() string { return o.String("metadata", "namespace") }

// SetNamespace sets metadata.namespace; "" removes it.
func (o *Object) SetNamespace(s string) { o.setMeta("namespace", s) }

// UID returns metadata.uid.
func (o *Object) UID() string { return o.String("metadata", "uid") }

// SetUID sets metadata.uid.
func (o *Object) SetUID(s string) { o.setMeta("uid", s) }

// ResourceVersion returns metadata.resourceVersion.
func (o *Object) ResourceVersion() string { return o.String("metadata", "resourceVersion") }

// SetResourceVersion sets metadata.resourceVersion; "" removes it.
func (o *Object) SetResourceVersion(s string) { o.setMeta("resourceVersion", s) }

// Generation returns metadata.generation.
func (o *Object) Generation() int64 { return o.Int("metadata", "generation") }

// SetGeneration sets metadata.generation; 0 removes it.
func (o *Object) SetGeneration(n int64) {
	if n == 0 {
		o.Delete("metadata", "generation")
		return
	}
	o.Metadata()["generation"] = n
}

// CreationTimestamp returns metadata.creationTimestamp, or the zero time if it is unset.
func (o *Object) CreationTimestamp() time.Time { return o.Time("metadata", "creationTimestamp") }

// DeletionTimestamp returns metadata.deletionTimestamp, or the zero time if the object is not
// being deleted.
func (o *Object) DeletionTimestamp() time.Time { return o.Time("metadata", "deletionTimestamp") }

// Terminating reports whether the object is being deleted: it has a deletionTimestamp.
func (o *Object) Terminating() bool { return o.String("metadata", "deletionTimestamp") != "" }

// Time returns the RFC 3339 time at path, or the zero time if there is none.
func (o *Object) Time(path ...string) time.Time {
	t, _ := time.Parse(time.RFC3339, o.String(path...))
	return t
}

// SetTime sets the field at path to FormatTime(t).
func (o *Object) SetTime(t time.Time, path ...string) { o.Set(FormatTime(t), path...) }

// FormatTime returns t in the API's format: RFC 3339 in UTC with whole seconds.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Labels returns metadata.labels as a new map.
func (o *Object) Labels() map[string]string { return stringMap(o.Map("metadata", "labels")) }

// Annotations returns metadata.annotations as a new map.
func (o *Object) Annotations() map[string]string { return stringMap(o.Map("metadata", "annotations")) }

// Annotation returns the annotation with the key, or "".
func (o *Object) Annotation(key string) string { return o.String("metadata", "annotations", key) }

// Finalizers returns metadata.finalizers.
func (o *Object) Finalizers() []string { return o.Strings("metadata", "finalizers") }

// SetFinalizers sets metadata.finalizers; an empty list removes the field.
func (o *Object) SetFinalizers(names []string) {
	if len(names) == 0 {
		o.Delete("metadata", "finalizers")
		return
	}
	o.Metadata()["finalizers"] = StringList(names)
}

// RemoveFinalizer removes a name from metadata.finalizers.
func (o *Object) RemoveFinalizer(name string) {
	o.SetFinalizers(slices.DeleteFunc(o.Finalizers(), func(f string) bool { return f == name }))
}

// OwnerReferences returns metadata.ownerReferences.
func (o *Object) OwnerReferences() []Owner {
	var out []Owner
	for _, v := range o.List("metadata", "ownerReferences") {
		m, _ := v.(map[string]any)
		r := NewObject(m)
		out = append(out, Owner{
			APIVersion: r.String("apiVersion"), Kind: r.String("kind"),
			Name: r.String("name"), UID: r.String("uid"),
			Controller: r.Bool("controller"), BlockOwnerDeletion: r.Bool("blockOwnerDeletion"),
		})
	}
	return out
}

// Owner is an entry of metadata.ownerReferences.
type Owner struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	UID                string `json:"uid"`
	Controller         bool   `json:"controller,omitempty"`
	BlockOwnerDeletion bool   `json:"blockOwnerDeletion,omitempty"`
}

func (o *Object) setMeta(field, s string) {
	if s == "" {
		o.Delete("metadata", field)
		return
	}
	o.Metadata()[field] = s
}

func stringMap(m map[string]any) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}
