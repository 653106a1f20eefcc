package apply

import (
	"encoding/json"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply/internal/ownership"
)

// kubectl is the only manager for which Apply takes over the fields of client-side apply.
const kubectl = "kubectl"

// Apply merges applied, which has the fields that the manager wants to own, into live and
// returns the result with its managedFields. live is nil if the object does not exist. The
// arguments are not changed, and the result shares nothing with them but managedFields
// entries.
//
// A field that the manager applied before and that applied omits is removed, unless another
// manager owns it. Apply fails with a *ConflictError if it would change the value of a
// field that another manager owns, unless o.Force is set. Other errors are *meta.Status:
// Invalid (422) if applied violates the schema, BadRequest (400) if it has another kind or
// version or has managedFields.
func (m *FieldManager) Apply(live, applied *meta.Object, o Options) (*meta.Object, error) {
	o = o.withVersion(applied)
	v, set, err := m.checkApplied(applied, o)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = meta.NewObject(map[string]any{"apiVersion": applied.APIVersion(), "kind": applied.Kind()})
	}
	run := &applyRun{m: m, opts: o, version: v, live: withoutManagedFields(live), applied: applied.Tree(), fields: m.writable(set, o)}
	if run.owners, err = readEntries(live.List("metadata", "managedFields"), m.readSet); err != nil {
		run.owners = nil
	}
	out, es, conflicts, err := run.apply(o.Force)
	if len(conflicts) > 0 {
		if conflicts = run.withoutLastApplied(conflicts); len(conflicts) > 0 {
			return nil, o.conflictError(conflicts)
		}
		out, es, _, err = run.apply(true)
	}
	if err != nil {
		return nil, err
	}
	obj := meta.NewObject(out)
	if o.Manager == kubectl && m.config.LastAppliedAnnotation != "" && obj.Annotation(m.config.LastAppliedAnnotation) != "" {
		obj.Set(m.lastApplied(applied), "metadata", "annotations", m.config.LastAppliedAnnotation)
	}
	return obj, m.setManagedFields(obj, es)
}

// checkApplied returns the version of an applied object and its fields.
func (m *FieldManager) checkApplied(applied *meta.Object, o Options) (*version, *fieldpath.Set, error) {
	v, err := m.version(o.APIVersion)
	if err != nil {
		return nil, nil, err
	}
	if got := applied.APIVersion(); got != o.APIVersion {
		return nil, nil, meta.BadRequest("the apiVersion of an applied object must be %q, not %q", o.APIVersion, got)
	}
	if got := applied.Kind(); got == "" || m.config.Kind != "" && got != m.config.Kind {
		return nil, nil, meta.BadRequest("the kind of an applied object must be %q, not %q", m.config.Kind, got)
	}
	if list, ok := applied.Get("metadata", "managedFields"); ok && list != nil {
		return nil, nil, meta.BadRequest("metadata.managedFields must be nil")
	}
	if tooDeep(applied.Tree(), maxDepth) {
		return nil, nil, meta.BadRequest("the object is nested deeper than %d", maxDepth)
	}
	set, err := v.Fields(applied.Tree())
	return v, set, err
}

// applyRun is the state of an Apply. apply does not change it, so that it can run again
// with force.
type applyRun struct {
	m             *FieldManager
	opts          Options
	version       *version
	live, applied map[string]any
	fields        *fieldpath.Set // the fields of applied that the endpoint writes
	owners        entries
}

// apply returns the merged object and its owners, or the contested fields unless force is
// set.
func (r *applyRun) apply(force bool) (map[string]any, entries, []contested, error) {
	es, err := r.initialOwners()
	if err != nil {
		return nil, nil, nil, err
	}
	merged, err := r.version.Merge(r.live, r.applied)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := r.checkOwnersVersions(r.live, merged); err != nil {
		return nil, nil, nil, err
	}
	self := r.opts.entry(opApply)
	var last *entry
	if e := es.find(self); e != nil {
		before := *e
		self, last = e, &before
	} else {
		es = append(es, self)
	}
	self.apiVersion = r.opts.APIVersion
	own := r.fields.Difference(r.m.system)
	out := merged
	if last == nil || last.apiVersion != self.apiVersion || !own.Equals(self.set) {
		self.setFields(own)
		now := &entry{apiVersion: self.apiVersion, set: r.fields}
		if out, err = r.prune(merged, append(slices.Clone(es), now), last); err != nil {
			return nil, nil, nil, err
		}
	}
	c := &changes{m: r.m, old: r.live, new: out, by: r.opts, strict: true}
	es, conflicts, err := r.m.disown(es, self, c, force)
	if err != nil || len(conflicts) > 0 {
		return nil, nil, conflicts, err
	}
	if !meta.Equal(r.live, out) {
		self.written(r.opts)
	}
	return out, es.withoutEmpty(), nil, nil
}

// initialOwners returns a copy of the owners. If the object has none, the manager
// before-first-apply owns all its fields.
func (r *applyRun) initialOwners() (entries, error) {
	if len(r.owners) == 0 {
		by := r.opts
		by.Manager = initialManager
		return r.m.record(nil, r.version.Zero(r.opts.APIVersion, r.live["kind"]), r.live, by)
	}
	es := make(entries, len(r.owners))
	for i, e := range r.owners {
		c := *e
		es[i] = &c
	}
	return es, nil
}

// prune removes from tree the fields that the manager applied last and does not apply now,
// unless another entry of es owns them. The last of es has the fields that it applies now.
func (r *applyRun) prune(tree map[string]any, es entries, last *entry) (map[string]any, error) {
	if last == nil {
		return tree, nil
	}
	if now := es[len(es)-1]; now.apiVersion == last.apiVersion && last.set.Difference(now.set).Empty() {
		return tree, nil
	}
	converted, err := r.m.convert(last.apiVersion, tree)
	if err != nil || len(converted) == 0 {
		return tree, err
	}
	pruned, err := r.m.pruneIn(r.m.versions[last.apiVersion], converted[0], es, last)
	if err != nil {
		return nil, ownership.InvalidObject(r.applied, err)
	}
	return r.m.mergeBack(tree, converted[0], pruned)
}

// pruneIn removes the fields of last from tree; both are in version v. Removing a field
// removes everything below it, so it restores first the fields of other entries, then the
// fields that last did not own.
func (m *FieldManager) pruneIn(v *version, tree map[string]any, es entries, last *entry) (map[string]any, error) {
	merged := v.Value(tree)
	sc, tr := merged.Schema(), merged.TypeRef()
	lastSet := last.set.EnsureNamedFieldsAreMembers(sc, tr)
	mergedSet, err := merged.ToFieldSet()
	if err != nil {
		return nil, err
	}
	all := mergedSet.EnsureNamedFieldsAreMembers(sc, tr)
	pruned := treeOf(merged.RemoveItems(lastSet))
	for _, owned := range ownedByVersion(es, last.apiVersion) {
		if pruned, err = m.restoreOwned(tree, pruned, owned); err != nil {
			return nil, err
		}
	}
	prunedSet, err := v.Value(pruned).ToFieldSet()
	if err != nil {
		return nil, err
	}
	gone := all.Difference(prunedSet.EnsureNamedFieldsAreMembers(sc, tr)).Intersection(lastSet)
	return treeOf(merged.RemoveItems(gone)), nil
}

func treeOf(v *typed.TypedValue) map[string]any {
	tree, _ := v.AsValue().Unstructured().(map[string]any)
	return tree
}

// ownedByVersion returns the fields that any entry owns, grouped by version. The version
// first comes first.
func ownedByVersion(es entries, first string) []*entry {
	all := []*entry{{apiVersion: first, set: fieldpath.NewSet()}}
	for _, e := range es {
		at := all[0]
		for _, o := range all {
			if o.apiVersion == e.apiVersion {
				at = o
			}
		}
		if at.apiVersion != e.apiVersion {
			at = &entry{apiVersion: e.apiVersion, set: fieldpath.NewSet()}
			all = append(all, at)
		}
		at.set = at.set.Union(e.set)
	}
	return all
}

// restoreOwned returns pruned with the fields of owned that merged has and pruned lacks.
// The trees are in another version than owned. If the version of owned is unknown or cannot
// represent the trees, pruned is returned.
func (m *FieldManager) restoreOwned(merged, pruned map[string]any, owned *entry) (map[string]any, error) {
	converted, err := m.convert(owned.apiVersion, merged, pruned)
	if err != nil || len(converted) == 0 {
		return pruned, err
	}
	v, left := m.versions[owned.apiVersion], converted[1]
	whole := v.Value(converted[0])
	sc, tr := whole.Schema(), whole.TypeRef()
	all, err := whole.ToFieldSet()
	if err != nil {
		return nil, err
	}
	kept, err := v.Value(left).ToFieldSet()
	if err != nil {
		return nil, err
	}
	keep := kept.EnsureNamedFieldsAreMembers(sc, tr).Union(owned.set.EnsureNamedFieldsAreMembers(sc, tr))
	more := treeOf(whole.RemoveItems(all.EnsureNamedFieldsAreMembers(sc, tr).Difference(keep)))
	return m.mergeBack(pruned, left, more)
}

// withoutLastApplied returns conflicts without the fields that client-side apply set: those
// in the last-applied annotation that live still has with the same value belong to kubectl.
func (r *applyRun) withoutLastApplied(conflicts []contested) []contested {
	if r.opts.Manager != kubectl {
		return conflicts
	}
	allowed := r.lastAppliedFields()
	if allowed == nil {
		return conflicts
	}
	var rest []contested
	for _, x := range conflicts {
		if x.fields = x.fields.Difference(allowed); !x.fields.Empty() {
			rest = append(rest, x)
		}
	}
	return rest
}

// lastAppliedFields returns the fields of the last-applied annotation that live has with
// the same value, nil if there is no annotation in the writer's version.
func (r *applyRun) lastAppliedFields() *fieldpath.Set {
	annotation := r.m.config.LastAppliedAnnotation
	text := meta.NewObject(r.live).Annotation(annotation)
	if annotation == "" || text == "" {
		return nil
	}
	v, err := meta.ParseJSON([]byte(text))
	last, ok := v.(map[string]any)
	if err != nil || !ok || tooDeep(last, maxDepth) || last["apiVersion"] != r.opts.APIVersion {
		return nil
	}
	return r.version.EqualFields(last, r.live)
}

// lastApplied returns applied as client-side apply stores it in the annotation.
func (m *FieldManager) lastApplied(applied *meta.Object) string {
	p := applied.Clone()
	p.Delete("metadata", "annotations", m.config.LastAppliedAnnotation)
	b, err := json.Marshal(p.Tree())
	if err != nil {
		return ""
	}
	return string(b) + "\n"
}
