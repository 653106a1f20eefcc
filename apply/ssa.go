package apply

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"orch.io/controlplane/api/meta"
)

// kubectl is the one manager whose applies follow on client-side apply.
const kubectl = "kubectl"

// Apply merges patch, the fields that the writer wants to own, into live and
// returns the result with its managedFields; live is nil if the object does not
// exist yet. Neither input is changed, and the result shares nothing with them
// but managedFields entries.
//
// Fields that the writer applied before and leaves out now go, unless somebody
// else owns them. A value that differs from another owner's is a Conflict (409)
// with one cause for each field and owner, unless w.Force. An object that does
// not fit the schema is Invalid (422), one of another kind or version, or with
// managedFields, a BadRequest (400).
func (t *Tracker) Apply(live, patch *meta.Object, w Write) (*meta.Object, error) {
	v, set, err := t.checkPatch(patch, w)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = emptyLike(patch)
	}
	run := &applyRun{t: t, w: w, typing: v, live: plain(live), patch: patch.Tree(), fields: t.filter(set, w)}
	if run.owners, err = t.read(live.List("metadata", "managedFields")); err != nil {
		run.owners = nil
	}
	out, es, err := run.apply(w.Force)
	var conflict *conflicts
	if errors.As(err, &conflict) {
		out, es, err = run.afterClientSide(conflict)
	}
	if err != nil {
		return nil, err
	}
	obj := meta.NewObject(out)
	if w.Manager == kubectl && t.config.LastApplied != "" && obj.Annotation(t.config.LastApplied) != "" {
		obj.Set(t.lastApplied(patch), "metadata", "annotations", t.config.LastApplied)
	}
	return obj, t.store(obj, es)
}

// checkPatch returns the schema of an applied object and the fields in it.
func (t *Tracker) checkPatch(patch *meta.Object, w Write) (*typing, *fieldpath.Set, error) {
	v, err := t.typing(w.APIVersion)
	if err != nil {
		return nil, nil, err
	}
	if got := patch.APIVersion(); got != w.APIVersion {
		return nil, nil, meta.BadRequest("the apiVersion of an applied object must be %q, not %q", w.APIVersion, got)
	}
	if got := patch.Kind(); got == "" || t.config.Kind != "" && got != t.config.Kind {
		return nil, nil, meta.BadRequest("the kind of an applied object must be %q, not %q", t.config.Kind, got)
	}
	if list, ok := patch.Get("metadata", "managedFields"); ok && list != nil {
		return nil, nil, meta.BadRequest("metadata.managedFields must be nil")
	}
	if tooDeep(patch.Tree(), maxDepth) {
		return nil, nil, meta.BadRequest("the object is nested too deep")
	}
	set, err := v.fieldsOf(patch.Tree())
	return v, set, err
}

// applyRun is one apply under way. Its inputs are not changed, so that it can
// be run again with force.
type applyRun struct {
	t           *Tracker
	w           Write
	typing      *typing
	live, patch map[string]any
	fields      *fieldpath.Set // of patch, those that the endpoint writes
	owners      entries
}

func (r *applyRun) apply(force bool) (map[string]any, entries, error) {
	es, err := r.startingOwners()
	if err != nil {
		return nil, nil, err
	}
	merged, err := r.typing.merge(r.live, r.patch)
	if err != nil {
		return nil, nil, err
	}
	if err := r.ownersFit(r.live, merged); err != nil {
		return nil, nil, err
	}
	self := r.w.entry(opApply)
	var last *entry
	if e := es.find(self); e != nil {
		before := *e
		self, last = e, &before
	} else {
		es = append(es, self)
	}
	self.apiVersion = r.w.APIVersion
	own := r.fields.Difference(r.t.nobodys)
	out := merged
	if last == nil || last.apiVersion != self.apiVersion || !own.Equals(self.set) {
		self.own(own)
		now := &entry{apiVersion: self.apiVersion, set: r.fields}
		if out, err = r.prune(merged, append(slices.Clone(es), now), last); err != nil {
			return nil, nil, err
		}
	}
	c := &changes{t: r.t, old: r.live, new: out, by: r.w, strict: true}
	es, conflicting, err := r.t.take(es, self, c, force)
	if err != nil {
		return nil, nil, err
	}
	if len(conflicting) > 0 {
		return nil, nil, r.w.conflicts(conflicting)
	}
	if !meta.Equal(r.live, out) {
		self.wrote(r.w)
	}
	return out, es.withoutEmpty(), nil
}

// startingOwners returns a copy of the owners. Where an object has none, what it
// has is owned by whoever was before the first apply.
func (r *applyRun) startingOwners() (entries, error) {
	if len(r.owners) == 0 {
		w := r.w
		w.Manager = unnamedOwner
		return r.t.record(nil, r.typing.empty(r.live, r.w.APIVersion), r.live, w)
	}
	es := make(entries, len(r.owners))
	for i, e := range r.owners {
		c := *e
		es[i] = &c
	}
	return es, nil
}

// prune takes from merged what the manager applied last and not now, unless
// somebody owns it; the last of es is what it applies now.
func (r *applyRun) prune(tree map[string]any, es entries, last *entry) (map[string]any, error) {
	if last == nil {
		return tree, nil
	}
	if now := es[len(es)-1]; now.apiVersion == last.apiVersion && last.set.Difference(now.set).Empty() {
		return tree, nil
	}
	shown, err := r.t.convert(last.apiVersion, tree)
	if err != nil || len(shown) == 0 {
		return tree, err
	}
	pruned, err := r.t.pruneAt(r.t.versions[last.apiVersion], shown[0], es, last)
	if err != nil {
		return nil, typingFault(r.patch, err)
	}
	return r.t.merge(tree, shown[0], pruned)
}

// pruneAt removes the items of last from merged, both in the version of last. What
// goes with them although somebody owns it is brought back first, then what
// nobody owned at all.
func (t *Tracker) pruneAt(v *typing, tree map[string]any, es entries, last *entry) (map[string]any, error) {
	merged := v.value(tree)
	sc, tr := merged.Schema(), merged.TypeRef()
	lastSet := last.set.EnsureNamedFieldsAreMembers(sc, tr)
	mergedSet, err := merged.ToFieldSet()
	if err != nil {
		return nil, err
	}
	all := mergedSet.EnsureNamedFieldsAreMembers(sc, tr)
	pruned := treeOf(merged.RemoveItems(lastSet))
	for _, owned := range ownedByVersion(es, last.apiVersion) {
		if pruned, err = t.withOwned(tree, pruned, owned); err != nil {
			return nil, err
		}
	}
	prunedSet, err := v.value(pruned).ToFieldSet()
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

// ownedByVersion returns all fields that somebody owns, by version, first first.
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

// withOwned returns pruned with what merged has beside it and owned has, in the
// version of owned; the two trees and the result are in another one.
func (t *Tracker) withOwned(merged, pruned map[string]any, owned *entry) (map[string]any, error) {
	shown, err := t.convert(owned.apiVersion, merged, pruned)
	if err != nil || len(shown) == 0 {
		return pruned, err // the version is gone, or cannot tell what is owned in it
	}
	v, left := t.versions[owned.apiVersion], shown[1]
	whole := v.value(shown[0])
	sc, tr := whole.Schema(), whole.TypeRef()
	all, err := whole.ToFieldSet()
	if err != nil {
		return nil, err
	}
	kept, err := v.value(left).ToFieldSet()
	if err != nil {
		return nil, err
	}
	keep := kept.EnsureNamedFieldsAreMembers(sc, tr).Union(owned.set.EnsureNamedFieldsAreMembers(sc, tr))
	more := treeOf(whole.RemoveItems(all.EnsureNamedFieldsAreMembers(sc, tr).Difference(keep)))
	return t.merge(pruned, left, more)
}

// conflicts is the error of an apply that would change what others own.
type conflicts struct {
	list  []conflict
	seeAs string // the version that the fields of others are shown in, if not in theirs
}

func (w Write) conflicts(list []conflict) *conflicts {
	c := &conflicts{list: list}
	if w.Subresource == "scale" {
		c.seeAs = "autoscaling/v1" // all that one sees of the object is its scale
	}
	return c
}

func (c *conflicts) Error() string { return c.status().Message }

// status returns the conflicts as clients print them.
func (c *conflicts) status() *meta.Status {
	var causes []meta.Cause
	var lines []string
	for _, x := range c.list {
		owner := x.owner.describe(c.seeAs)
		lines = append(lines, "conflicts with "+owner+":")
		x.fields.Iterate(func(p fieldpath.Path) {
			causes = append(causes, meta.Cause{Reason: meta.CauseFieldManager, Message: "conflict with " + owner, Field: p.String()})
			lines = append(lines, "- "+p.String())
		})
	}
	text := fmt.Sprintf("Apply failed with %d conflicts: %s", len(causes), strings.Join(lines, "\n"))
	if len(causes) == 1 {
		text = fmt.Sprintf("Apply failed with 1 conflict: %s: %s", causes[0].Message, causes[0].Field)
	}
	s := meta.Failure(http.StatusConflict, meta.ReasonConflict, "%s", text)
	s.Details = &meta.Details{Causes: causes}
	return s
}

// describe names an owner in a conflict; seeAs, if not empty, is the version
// that is named in the place of its own.
func (e *entry) describe(seeAs string) string {
	s := fmt.Sprintf("%q", e.manager)
	if e.subresource != "" {
		s += fmt.Sprintf(" with subresource %q", e.subresource)
	}
	if e.operation == opUpdate {
		s += " using " + cmp.Or(seeAs, e.apiVersion)
	}
	return s
}

// afterClientSide settles the conflicts of an apply that follows on client-side
// apply: what the last-applied annotation says and live still has was this
// manager's all along.
func (r *applyRun) afterClientSide(c *conflicts) (map[string]any, entries, error) {
	if r.w.Manager != kubectl {
		return nil, nil, c.status()
	}
	allowed := r.lastAppliedFields()
	if allowed == nil {
		return nil, nil, c.status()
	}
	var rest []conflict
	for _, x := range c.list {
		if x.fields = x.fields.Difference(allowed); !x.fields.Empty() {
			rest = append(rest, x)
		}
	}
	if len(rest) > 0 {
		return nil, nil, r.w.conflicts(rest).status()
	}
	return r.apply(true)
}

// lastAppliedFields returns the fields of the last-applied annotation that live
// has with the same value, nil if there is no such annotation for the version.
func (r *applyRun) lastAppliedFields() *fieldpath.Set {
	text := meta.NewObject(r.live).Annotation(r.t.config.LastApplied)
	if r.t.config.LastApplied == "" || text == "" {
		return nil
	}
	v, err := meta.ParseJSON([]byte(text))
	last, ok := v.(map[string]any)
	if err != nil || !ok || tooDeep(last, maxDepth) || last["apiVersion"] != r.w.APIVersion {
		return nil
	}
	value := r.typing.value(r.typing.plan.separated(last))
	set, err := value.ToFieldSet()
	if err != nil {
		return nil
	}
	diff, err := value.Compare(r.typing.value(r.typing.plan.separated(r.live)))
	if err != nil {
		return nil
	}
	return set.Difference(diff.Modified).Difference(diff.Added).Difference(diff.Removed)
}

// lastApplied returns patch as client-side apply would keep it.
func (t *Tracker) lastApplied(patch *meta.Object) string {
	p := patch.Clone()
	p.Delete("metadata", "annotations", t.config.LastApplied)
	b, err := json.Marshal(p.Tree())
	if err != nil {
		return ""
	}
	return string(b) + "\n"
}
