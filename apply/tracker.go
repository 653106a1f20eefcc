package apply

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// Version is one version of a kind.
type Version struct {
	APIVersion string         // as in objects: group/version
	Schema     *schema.Schema // nil: any object

	// Status: the sub-resource status exists in the version. Its writers own the status,
	// those of the object everything but that.
	Status bool
}

// Config says what a Tracker must know of a kind.
type Config struct {
	Kind     string // empty: not checked
	Versions []Version

	// Convert returns objects, which it must not change, in another of the Versions;
	// none, if that cannot show one of them. An error ends an apply; updates go on
	// without. nil: versions differ in nothing but apiVersion.
	Convert func(apiVersion string, objs ...map[string]any) ([]map[string]any, error)
	// Merge returns live with what was changed between before, which is live in
	// another version, and after: what that version cannot say stays as it is. It
	// changes none of them. nil: versions can say the same.
	Merge func(live, before, after map[string]any) (map[string]any, error)

	// StatusMetadata are the fields of the metadata that writers of the sub-resource
	// status own, beside the status.
	StatusMetadata []string

	// Unowned are the fields at the root that nobody owns, because no write
	// through any endpoint changes them freely.
	Unowned []string

	// ClearedOwners: an update that clears the owners records none. Else the writer owns what
	// the same update changes.
	ClearedOwners bool

	// OwnersFit is the version that objects are stored in. If it is set, an apply fails with 500
	// if the object before or after the merge has a field that is stored and that the schema of
	// another version, in which a manager owns fields, does not declare. Empty: versions ignore
	// such fields.
	OwnersFit string

	// Reserved is an annotation that no write changes; empty: none.
	Reserved string

	// LastApplied is the annotation of client-side apply on the wire; empty: none.
	LastApplied string

	CacheBytes int // field set text kept parsed, which takes some six times as much; 0: 1 MiB
}

// Tracker keeps account of who owns which field of the objects of one kind. It
// is safe for concurrent use.
type Tracker struct {
	config   Config
	versions map[string]*typing
	nobodys  *fieldpath.Set        // the fields that nobody owns
	unowned  *fieldpath.Set        // those of the kind, with all below; nil: none
	status   *fieldpath.SetMatcher // what writers of status may own
	sets     *setCache
}

// NewTracker compiles the schemas of a kind.
func NewTracker(c Config) *Tracker {
	t := &Tracker{config: c, versions: make(map[string]*typing, len(c.Versions)), nobodys: nobodys(c.Reserved), sets: &setCache{}}
	for _, v := range c.Versions {
		typing := compileTyping(v.Schema)
		typing.status = v.Status
		t.versions[v.APIVersion] = typing
	}
	for _, name := range c.Unowned {
		if t.unowned == nil {
			t.unowned = fieldpath.NewSet()
		}
		t.unowned.Insert(fieldpath.MakePathOrDie(name))
	}
	t.status = writersOfStatus(c.StatusMetadata)
	t.sets.max = c.CacheBytes / 2
	if c.CacheBytes == 0 {
		t.sets.max = 1 << 19
	}
	return t
}

// Converting returns the tracker with another Convert, such as one that serves one
// request.
func (t *Tracker) Converting(convert func(apiVersion string, objs ...map[string]any) ([]map[string]any, error)) *Tracker {
	out := *t
	out.config.Convert = convert
	return &out
}

// writersOfStatus matches status and some fields of the metadata. It is put
// together whole: matchers that are merged one by one lose members.
func writersOfStatus(metadata []string) *fieldpath.SetMatcher {
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

// Write says who writes, and how.
type Write struct {
	Manager     string // the field manager; see ManagerName
	APIVersion  string // the version that the writer speaks
	Subresource string // "" for the object itself; writes through "scale" leave times alone
	Now         time.Time
	Force       bool // Apply only: take fields from their owners
}

func (w Write) entry(operation string) *entry {
	manager := w.Manager
	if manager == "" {
		manager = "unknown"
	}
	return &entry{manager: manager, operation: operation, apiVersion: w.APIVersion, subresource: w.Subresource}
}

const (
	unnamedOwner = "before-first-apply" // of what was there when tracking began
	oldOwners    = "ancient-changes"    // of the updates beyond maxUpdaters
	maxUpdaters  = 10                   // Update entries of one object
	maxManager   = 128                  // bytes of a manager's name
)

// ManagerName returns the field manager of a request: the one it names, else
// what its User-Agent header says before the first slash, else "unknown".
func ManagerName(named, userAgent string) string {
	if named != "" {
		return named
	}
	product, _, _ := strings.Cut(userAgent, "/")
	var b strings.Builder
	for _, r := range product {
		if unicode.IsPrint(r) {
			if b.Len()+utf8.RuneLen(r) > maxManager {
				break
			}
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return "unknown"
	}
	return b.String()
}

// CheckManager returns what is wrong with the fieldManager option of a request;
// apply needs one.
func CheckManager(name string, apply bool) []meta.Cause {
	return checkName(name, "fieldManager", apply)
}

func checkName(name, field string, required bool) []meta.Cause {
	switch {
	case name == "" && required:
		return []meta.Cause{{Reason: meta.CauseRequired, Field: field, Message: "Required value: is required for apply patch"}}
	case len(name) > maxManager:
		return []meta.Cause{{Reason: meta.CauseTooLong, Field: field, Message: fmt.Sprintf("Too long: may not be more than %d bytes", maxManager)}}
	}
	var causes []meta.Cause
	for i, r := range name {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			causes = append(causes, meta.Cause{Reason: meta.CauseInvalid, Field: field, Message: fmt.Sprintf("Invalid value: %q: invalid character %U (at position %d)", name, r, i)})
		}
	}
	return causes
}

// nobodys are the fields that nobody owns.
func nobodys(annotation string) *fieldpath.Set {
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

// onlyStatus is what writers of the object itself do not own, with all below.
var onlyStatus = sync.OnceValue(func() *fieldpath.Set { return fieldpath.NewSet(fieldpath.MakePathOrDie("status")) })

// filter returns what of set may be owned through the endpoint of a write. Of another
// entry's fields, too, nothing else changes through it, whichever version they are of.
func (t *Tracker) filter(set *fieldpath.Set, w Write) *fieldpath.Set {
	if set.Empty() {
		return set
	}
	if t.unowned != nil {
		set = set.RecursiveDifference(t.unowned)
	}
	if v := t.versions[w.APIVersion]; v == nil || !v.status {
		return set
	}
	switch w.Subresource {
	case "":
		name := "status"
		status := fieldpath.PathElement{FieldName: &name}
		if _, below := set.Children.Get(status); !below && !set.Members.Has(status) {
			return set
		}
		return set.RecursiveDifference(onlyStatus())
	case "status":
		return fieldpath.NewIncludeMatcherFilter(t.status).Filter(set)
	}
	return set
}

// plain returns obj without managedFields, as the trees that are compared.
func plain(obj *meta.Object) map[string]any {
	tree := obj.Tree()
	m, _ := tree["metadata"].(map[string]any)
	if _, ok := m["managedFields"]; !ok {
		return tree
	}
	out := make(map[string]any, len(tree))
	for k, v := range tree {
		out[k] = v
	}
	rest := make(map[string]any, len(m))
	for k, v := range m {
		if k != "managedFields" {
			rest[k] = v
		}
	}
	out["metadata"] = rest
	return out
}

// convert returns objects in another version, none where that is not known or cannot
// show them.
func (t *Tracker) convert(apiVersion string, objs ...map[string]any) ([]map[string]any, error) {
	if !slices.ContainsFunc(objs, func(obj map[string]any) bool { return obj["apiVersion"] != apiVersion }) {
		return objs, nil
	}
	if t.versions[apiVersion] == nil {
		return nil, nil
	}
	if t.config.Convert != nil {
		return t.config.Convert(apiVersion, objs...)
	}
	out := make([]map[string]any, len(objs))
	for i, obj := range objs {
		out[i] = maps.Clone(obj)
		out[i]["apiVersion"] = apiVersion
	}
	return out, nil
}

// merge returns live with what was changed between before, which is live in another
// version that is known, and after.
func (t *Tracker) merge(live, before, after map[string]any) (map[string]any, error) {
	version, _ := live["apiVersion"].(string)
	if before["apiVersion"] != version && t.config.Merge != nil {
		return t.config.Merge(live, before, after)
	}
	out, err := t.convert(version, after)
	if err != nil || out == nil {
		return nil, err
	}
	return out[0], nil
}

// change is what differs between two objects, in one version.
type change struct {
	removed, set *fieldpath.Set // set: modified or added
	sizes        [2]int         // of these: a set counts its fields one by one
}

func newChange(removed, set *fieldpath.Set) *change {
	return &change{removed, set, [2]int{removed.Size(), set.Size()}}
}

// changes compares two objects, in every version that is asked for.
type changes struct {
	t        *Tracker
	old, new map[string]any
	by       Write
	strict   bool               // a conversion that fails is an error
	done     map[string]*change // nil value: the version is not known
}

// at returns what changed, with paths of a version; nil if it is not known.
func (c *changes) at(apiVersion string) (*change, error) {
	if d, ok := c.done[apiVersion]; ok {
		return d, nil
	}
	if c.done == nil {
		c.done = map[string]*change{}
	}
	d, err := c.compare(apiVersion)
	c.done[apiVersion] = d
	return d, err
}

func (c *changes) compare(apiVersion string) (*change, error) {
	v := c.t.versions[apiVersion]
	if v == nil {
		return nil, nil
	}
	trees, err := c.shown(apiVersion)
	if err != nil && c.strict {
		return nil, err
	}
	if len(trees) == 0 { // what changed cannot be told there, and what is owned there stays so
		return newChange(fieldpath.NewSet(), fieldpath.NewSet()), nil
	}
	a, b, same := v.plan.reduce(trees[0], trees[1])
	if same {
		return newChange(fieldpath.NewSet(), fieldpath.NewSet()), nil
	}
	left, _ := pathsWithin(a, 0, maxPaths)
	if _, ok := pathsWithin(b, 0, left); !ok {
		return nil, untracked(errLongPaths)
	}
	if set := new(fieldpath.Set); v.plan.gained(a, b, set) {
		return newChange(fieldpath.NewSet(), c.t.filter(set, c.by)), nil
	}
	diff, err := v.value(v.plan.separated(a)).Compare(v.value(v.plan.separated(b)))
	if err != nil {
		return nil, untracked(err)
	}
	set := diff.Added
	if !diff.Modified.Empty() {
		set = diff.Modified.Union(set)
	}
	return newChange(c.t.filter(diff.Removed, c.by), c.t.filter(set, c.by)), nil
}

// shown returns the two objects in a version. Where they have the same content, that of
// their metadata is all that can differ, and nothing is converted.
func (c *changes) shown(apiVersion string) ([]map[string]any, error) {
	if c.old["apiVersion"] == apiVersion && c.new["apiVersion"] == apiVersion || !sameContent(c.old, c.new) {
		return c.t.convert(apiVersion, c.old, c.new)
	}
	var out []map[string]any
	for _, tree := range []map[string]any{c.old, c.new} {
		out = append(out, map[string]any{"apiVersion": apiVersion, "kind": tree["kind"], "metadata": tree["metadata"]})
	}
	return out, nil
}

// sameContent reports whether two objects of one version differ in their metadata alone.
func sameContent(a, b map[string]any) bool {
	same := func(a, b map[string]any) bool {
		for field, v := range a {
			if w, ok := b[field]; field != "metadata" && (!ok || !meta.Equal(v, w)) {
				return false
			}
		}
		return true
	}
	return same(a, b) && same(b, a)
}

var errLongPaths = fmt.Errorf("the paths of its values are more than %d bytes long together", maxPaths)

// mismatch says that an object cannot be read by its schema: a list has a key
// twice, say.
type mismatch struct{ status *meta.Status }

func untracked(err error) error {
	s := meta.Failure(http.StatusUnprocessableEntity, meta.ReasonInvalid, "the object does not fit its schema: %v", err)
	s.Details = &meta.Details{}
	return &mismatch{s}
}

func (m *mismatch) Error() string { return m.status.Error() }

func (m *mismatch) Unwrap() error { return m.status }

// conflict is what a change would take from an owner.
type conflict struct {
	owner  *entry
	fields *fieldpath.Set
}

// take lets every entry but self lose the fields that changed. Without force it
// takes nothing as long as that conflicts with an owner, and returns how.
func (t *Tracker) take(es entries, self *entry, c *changes, force bool) (entries, []conflict, error) {
	type loss struct {
		e    *entry
		keep *fieldpath.Set
	}
	var losses []loss
	var conflicts []conflict
	var known entries
	for _, e := range es {
		if e == self {
			known = append(known, e)
			continue
		}
		d, err := c.at(e.apiVersion)
		if err != nil {
			return nil, nil, err
		}
		if d == nil {
			continue // the version is gone, and what was owned in it
		}
		known = append(known, e)
		lost := common(e.set, d.set, d.sizes[1])
		if !lost.Empty() {
			conflicts = append(conflicts, conflict{e, lost})
		}
		gone := common(e.set, d.removed, d.sizes[0])
		if lost.Empty() && gone.Empty() {
			continue
		}
		losses = append(losses, loss{e, e.set.Difference(lost).Difference(gone)})
	}
	if !force && len(conflicts) > 0 {
		return nil, conflicts, nil
	}
	for _, l := range losses {
		l.e.own(l.keep)
	}
	return known.withoutEmpty(), nil, nil
}

// common returns the fields in both sets; size is that of the second. An owner of
// little looks up what it has: an object may have a thousand owners, and a write
// change half a million fields.
func common(few, many *fieldpath.Set, size int) *fieldpath.Set {
	const lookup = 16 // about the cost of finding one field, in steps of a walk over all
	if lookup*few.Size() >= size {
		return few.Intersection(many)
	}
	out := fieldpath.NewSet()
	few.Iterate(func(p fieldpath.Path) {
		if many.Has(p) {
			out.Insert(p.Copy())
		}
	})
	return out
}

// capUpdaters merges the oldest Update entries of a version into one, while
// there are more than maxUpdaters.
func capUpdaters(es entries) entries {
	var updaters entries
	for _, e := range es {
		if e.operation == opUpdate {
			updaters = append(updaters, e)
		}
	}
	over := len(updaters) - maxUpdaters
	if over <= 0 {
		return es
	}
	slices.SortFunc(updaters, compareEntries)
	first := map[string]*entry{}
	gone := map[*entry]bool{}
	for _, e := range updaters {
		if over == 0 {
			break
		}
		oldest := first[e.apiVersion]
		if oldest == nil {
			first[e.apiVersion] = e
			continue
		}
		bucket := es.find(&entry{manager: oldOwners, operation: opUpdate, apiVersion: e.apiVersion})
		if bucket == nil {
			bucket = oldest
			bucket.manager, bucket.subresource = oldOwners, ""
		}
		if bucket == e {
			continue
		}
		bucket.own(bucket.set.Union(e.set))
		bucket.touch(e.time)
		gone[e] = true
		over--
	}
	return slices.DeleteFunc(es, func(e *entry) bool { return gone[e] })
}

// typing returns the schema of the version that a write speaks.
func (t *Tracker) typing(apiVersion string) (*typing, error) {
	v := t.versions[apiVersion]
	if v == nil {
		return nil, meta.BadRequest("no version %q", apiVersion)
	}
	return v, nil
}
