package apply

import (
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply/internal/ownership"
)

// Version is a version of a kind.
type Version struct {
	APIVersion string         // group/version, or the version alone for the core group
	Schema     *schema.Schema // nil: any object

	// Status means that the version has the subresource status. Writers of that subresource
	// own only the status, writers of the object everything else.
	Status bool
}

// Config describes a kind to NewFieldManager.
type Config struct {
	Kind     string // empty: not checked
	Versions []Version

	// Convert returns objects in another of the Versions. It must not change its arguments.
	// It returns no objects if the version cannot represent an object. An error fails
	// Apply; Update then leaves the owners that use the version unchanged. Nil: versions
	// differ only in their apiVersion.
	Convert func(apiVersion string, objs ...map[string]any) ([]map[string]any, error)

	// Merge returns live with the changes between before, which is live in another
	// version, and after. Fields that the other version cannot represent stay. It must not
	// change its arguments. Nil: the changed object is converted back.
	Merge func(live, before, after map[string]any) (map[string]any, error)

	// StatusMetadata lists the metadata fields that writers of the subresource status own,
	// in addition to the status.
	StatusMetadata []string

	// Unowned lists the top-level fields that never have an owner.
	Unowned []string

	// UntrackedReset means that an Update that resets managedFields leaves the object
	// without owners. Otherwise the writer owns the fields that the same update changes.
	UntrackedReset bool

	// StoredVersion is the version in which objects are stored. If it is set, Apply fails
	// with 500 (Internal Server Error) if the object, before or after the merge, has a field
	// that the stored version declares and another version, in which a manager owns fields,
	// does not. Empty: versions ignore fields that they do not declare.
	StoredVersion string

	ReservedAnnotation    string // an annotation that never has an owner; empty: none
	LastAppliedAnnotation string // the annotation of client-side apply; empty: none

	// CacheBytes limits the managedFields text that is cached in parsed form. The parsed form
	// takes about six times as much memory. 0: 1 MiB.
	CacheBytes int
}

// FieldManager tracks in metadata.managedFields which manager owns which fields of the
// objects of a kind: Apply is server-side apply, Update records every other write. A
// FieldManager is safe for concurrent use.
type FieldManager struct {
	config   Config
	versions map[string]*version
	system   *fieldpath.Set        // fields of every object that never have an owner
	unowned  *fieldpath.Set        // Config.Unowned and everything below; nil: none
	status   *fieldpath.SetMatcher // fields that writers of the status may own
	sets     *fieldSetCache        // the only mutable part
}

// version is a compiled Version.
type version struct {
	*ownership.Type
	status bool
}

// NewFieldManager compiles the schemas of a kind.
func NewFieldManager(c Config) *FieldManager {
	m := &FieldManager{config: c, versions: make(map[string]*version, len(c.Versions)), system: systemFields(c.ReservedAnnotation), sets: &fieldSetCache{}}
	for _, v := range c.Versions {
		m.versions[v.APIVersion] = &version{ownership.Compile(v.Schema), v.Status}
	}
	for _, name := range c.Unowned {
		if m.unowned == nil {
			m.unowned = fieldpath.NewSet()
		}
		m.unowned.Insert(fieldpath.MakePathOrDie(name))
	}
	m.status = statusFields(c.StatusMetadata)
	m.sets.max = c.CacheBytes / 2
	if c.CacheBytes == 0 {
		m.sets.max = 1 << 19
	}
	return m
}

// WithConvert returns a FieldManager that uses convert in place of Config.Convert, for
// example to bind it to the context of a request. Both share the cache.
func (m *FieldManager) WithConvert(convert func(apiVersion string, objs ...map[string]any) ([]map[string]any, error)) *FieldManager {
	out := *m
	out.config.Convert = convert
	return &out
}

// Options describe a write.
type Options struct {
	// Manager is the name of the field manager. Empty: unknown.
	Manager string

	// APIVersion is the version in which the manager writes. Empty: the version of the object.
	APIVersion string

	// Subresource is the subresource through which the manager writes, such as status.
	// Writes through scale leave the times of managedFields unchanged. Empty: the object.
	Subresource string

	// Now becomes the time of the manager's entry if the write changes the object. Zero:
	// the entry has no time.
	Now time.Time

	// Force takes fields from their owners instead of failing with a ConflictError. Only
	// Apply uses it.
	Force bool
}

// withVersion returns o with its default APIVersion.
func (o Options) withVersion(obj *meta.Object) Options {
	if o.APIVersion == "" {
		o.APIVersion = obj.APIVersion()
	}
	return o
}

// entry returns a new managedFields entry of the writer.
func (o Options) entry(operation string) *entry {
	manager := o.Manager
	if manager == "" {
		manager = "unknown"
	}
	return &entry{manager: manager, operation: operation, apiVersion: o.APIVersion, subresource: o.Subresource}
}

// statusFields matches the status and some metadata fields. It is built in a single step,
// because merging matchers loses members.
func statusFields(metadata []string) *fieldpath.SetMatcher {
	member := func(name string, child *fieldpath.SetMatcher) *fieldpath.SetMemberMatcher {
		return &fieldpath.SetMemberMatcher{Path: fieldpath.PathElementMatcher{PathElement: fieldpath.PathElement{FieldName: &name}}, Child: child}
	}
	below := make([]*fieldpath.SetMemberMatcher, len(metadata))
	for i, name := range metadata {
		below[i] = member(name, fieldpath.MatchAnySet())
	}
	return fieldpath.NewSetMatcher(false,
		member("status", fieldpath.MatchAnySet()), member("metadata", fieldpath.NewSetMatcher(false, below...)))
}

// systemFields returns the fields of every object that never have an owner.
func systemFields(annotation string) *fieldpath.Set {
	set := fieldpath.NewSet(fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"))
	for _, name := range []string{"name", "namespace", "uid", "resourceVersion", "generation", "selfLink", "managedFields",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "clusterName"} {
		set.Insert(fieldpath.MakePathOrDie("metadata", name))
	}
	if annotation != "" {
		set.Insert(fieldpath.MakePathOrDie("metadata", "annotations", annotation))
	}
	return set
}

// onlyStatus returns the field that writers of the object do not own, with everything below.
var onlyStatus = sync.OnceValue(func() *fieldpath.Set { return fieldpath.NewSet(fieldpath.MakePathOrDie("status")) })

// writable returns the fields of set that a write through its endpoint can change. The rule
// of the writer's version applies, also for fields that another version owns.
func (m *FieldManager) writable(set *fieldpath.Set, o Options) *fieldpath.Set {
	if set.Empty() {
		return set
	}
	if m.unowned != nil {
		set = set.RecursiveDifference(m.unowned)
	}
	if v := m.versions[o.APIVersion]; v == nil || !v.status {
		return set
	}
	switch o.Subresource {
	case "":
		name := "status"
		status := fieldpath.PathElement{FieldName: &name}
		if _, below := set.Children.Get(status); !below && !set.Members.Has(status) {
			return set
		}
		return set.RecursiveDifference(onlyStatus())
	case "status":
		return fieldpath.NewIncludeMatcherFilter(m.status).Filter(set)
	}
	return set
}

// version returns the schema of the version in which a manager writes.
func (m *FieldManager) version(apiVersion string) (*version, error) {
	v := m.versions[apiVersion]
	if v == nil {
		return nil, meta.BadRequest("unknown apiVersion %q", apiVersion)
	}
	return v, nil
}

// withoutManagedFields returns the tree of obj without managedFields. It shares everything
// else with obj.
func withoutManagedFields(obj *meta.Object) map[string]any {
	tree := obj.Tree()
	metadata, _ := tree["metadata"].(map[string]any)
	if _, ok := metadata["managedFields"]; !ok {
		return tree
	}
	out := maps.Clone(tree)
	rest := maps.Clone(metadata)
	delete(rest, "managedFields")
	out["metadata"] = rest
	return out
}

// convert returns objects in another version. It returns none if the version is unknown or
// cannot represent them.
func (m *FieldManager) convert(apiVersion string, objs ...map[string]any) ([]map[string]any, error) {
	if !slices.ContainsFunc(objs, func(obj map[string]any) bool { return obj["apiVersion"] != apiVersion }) {
		return objs, nil
	}
	if m.versions[apiVersion] == nil {
		return nil, nil
	}
	if m.config.Convert != nil {
		return m.config.Convert(apiVersion, objs...)
	}
	out := make([]map[string]any, len(objs))
	for i, obj := range objs {
		out[i] = maps.Clone(obj)
		out[i]["apiVersion"] = apiVersion
	}
	return out, nil
}

// mergeBack returns live with the changes between before, which is live in another known
// version, and after.
func (m *FieldManager) mergeBack(live, before, after map[string]any) (map[string]any, error) {
	version, _ := live["apiVersion"].(string)
	if before["apiVersion"] != version && m.config.Merge != nil {
		return m.config.Merge(live, before, after)
	}
	out, err := m.convert(version, after)
	if err != nil || out == nil {
		return nil, err
	}
	return out[0], nil
}
