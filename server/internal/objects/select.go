package objects

import (
	"cmp"
	"context"
	"maps"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objectcache"
)

// Index declares the selectable fields of a type to its cache.
func Index(h *objectcache.Set, t *resource.Type) {
	var unsure func(*objectcache.Entry) bool
	if t.Webhook != nil {
		unsure = func(e *objectcache.Entry) bool { return needsConverter(e, t.Hub) }
	}
	h.Cache(t.GroupResource()).Index(unsure, t.Fields...)
}

// Selector selects objects by their labels and fields in a version. Caches hold objects as they are stored. If a
// converter or a default may change a selected label or field, the stored object does not determine the result. Query
// then selects every such object, and Filter and Narrow examine it in the version. The labels and fields that they
// read are kept with the entry, longer than the converted object, because they are small. A Selector is safe for
// concurrent use.
type Selector struct {
	Query   objectcache.Query
	version *resource.Version
	own     objectcache.Query // the selectors, for the result of encodeSelectable
	filled  map[string]bool   // selected fields that may have a default
}

// NewSelector returns the Selector of sel in a version.
func NewSelector(v *resource.Version, sel *Selection) *Selector {
	s := &Selector{version: v, Query: objectcache.Query{Namespace: sel.Namespace, Name: sel.Name, Labels: sel.Labels, Fields: sel.Fields}}
	plain, some := true, !sel.Labels.Empty()
	for _, r := range sel.Fields.Requirements() {
		f := v.Selectable(r.Field)
		if f == nil {
			continue // a metadata field
		}
		some = true
		if v.FilledIn(f) {
			if s.filled == nil {
				s.filled = map[string]bool{}
			}
			s.filled[r.Field] = true
		}
		plain = plain && f.Hub != "" && !s.filled[r.Field]
	}
	switch {
	case plain:
		s.Query.Fields, _ = sel.Fields.Renamed(func(name string) (string, error) { return hubName(v, name), nil }) // cannot fail
	default:
		s.Query.Field = s.stored
	}
	if some && (!plain || v.Converter != nil) {
		s.Query.Unsure = s.unsure
		s.own = objectcache.Query{Labels: sel.Labels, Fields: sel.Fields, Field: func(e *objectcache.Entry, field string) string { return e.Field(selectionFields, field) }}
	}
	return s
}

// hubName returns the name in the hub of a selectable field of a version.
func hubName(v *resource.Version, name string) string {
	if f := v.Selectable(name); f != nil {
		return f.Hub
	}
	return name
}

// stored returns the value of a field as far as the stored object determines it.
func (s *Selector) stored(e *objectcache.Entry, field string) string {
	if f := s.version.Selectable(field); f != nil {
		return e.Selectable(&f.SelectableField)
	}
	return ""
}

// unsure implements objectcache.Query.Unsure.
func (s *Selector) unsure(e *objectcache.Entry, field string) bool {
	v := s.version
	switch {
	case needsConverter(e, v):
		return true
	case field == objectcache.FieldLabels || s.Query.Field == nil:
		return false
	case s.filled[field]:
		return s.stored(e, field) == "" && !(v == v.Hub && e.Conforms(v.SchemaMark()))
	}
	f := v.Selectable(field)
	return f != nil && f.Hub == "" && v.Converts()
}

// undecided reports whether an entry must be examined in the version to decide whether it is selected.
func (s *Selector) undecided(e *objectcache.Entry) bool {
	if !s.Query.Labels.Empty() && s.unsure(e, objectcache.FieldLabels) {
		return true
	}
	for _, r := range s.Query.Fields.Requirements() {
		if s.version.Selectable(r.Field) != nil && s.unsure(e, r.Field) {
			return true
		}
	}
	return false
}

// Filter returns the selected entries among entries, all of which Query must select. The result may be entries
// itself. It fails if an entry that must be examined cannot be converted.
func (s *Selector) Filter(ctx context.Context, entries []*objectcache.Entry) ([]*objectcache.Entry, error) {
	if s.Query.Unsure == nil {
		return entries, nil
	}
	selects, err := s.classify(ctx, entries)
	if err != nil {
		return nil, err
	}
	var out []*objectcache.Entry
	for _, e := range entries {
		if selects(e) {
			out = append(out, e)
		}
	}
	return out, nil
}

// Narrow is Filter for the events of a cursor on Query. An object that begins to be selected becomes an addition, and
// an object that is no longer selected becomes a deletion.
func (s *Selector) Narrow(ctx context.Context, events []objectcache.Event) ([]objectcache.Event, error) {
	if s.Query.Unsure == nil {
		return events, nil
	}
	var states []*objectcache.Entry
	for _, ev := range events {
		for _, e := range [...]*objectcache.Entry{ev.Old, ev.New} {
			if e != nil {
				states = append(states, e)
			}
		}
	}
	selects, err := s.classify(ctx, states)
	if err != nil {
		return nil, err
	}
	var out []objectcache.Event
	for _, ev := range events {
		if ev, seen := objectcache.Narrow(ev, selects); seen {
			out = append(out, ev)
		}
	}
	return out, nil
}

// classify examines entries, all of which Query must select, and returns a function that reports whether an entry
// among them is selected.
func (s *Selector) classify(ctx context.Context, entries []*objectcache.Entry) (func(*objectcache.Entry) bool, error) {
	var some []*objectcache.Entry
	for _, e := range entries {
		if s.undecided(e) {
			some = append(some, e)
		}
	}
	texts, err := objectcache.Encode(ctx, some, selectionEncoding(s.version), func(some []*objectcache.Entry) ([][]byte, error) { return encodeSelectable(ctx, some, s.version) })
	if err != nil {
		return nil, err
	}
	not := map[*objectcache.Entry]bool{}
	for i, e := range some {
		if !s.own.Matches(objectcache.NewEntry(e.Key(), e.Revision(), texts[i])) {
			not[e] = true
		}
	}
	return func(e *objectcache.Entry) bool { return !not[e] }, nil
}

// fill removes the entries that are not selected from a page, and fills it with further entries of the same revision,
// up to limit.
func (s *Selector) fill(ctx context.Context, c *objectcache.Cache, p objectcache.Page, limit int) (objectcache.Page, error) {
	if s.Query.Unsure == nil {
		return p, nil
	}
	selected, err := s.Filter(ctx, p.Entries)
	for err == nil && p.Next != "" && len(selected) <= limit {
		var next objectcache.Page
		if next, err = c.ListAt(ctx, p.Revision, s.Query, p.Next, max(limit, fillBatch)); err != nil {
			return objectcache.Page{}, expired(err)
		}
		var more []*objectcache.Entry
		more, err = s.Filter(ctx, next.Entries)
		selected, p.Next = append(selected, more...), next.Next
	}
	if err != nil {
		return objectcache.Page{}, err
	}
	if p.Entries = selected; limit > 0 && len(selected) > limit {
		k := selected[limit].Key()
		p.Entries, p.Next = selected[:limit], k.Namespace+"/"+k.Name
	}
	return p, nil
}

// fillBatch is the smallest number of entries that fill reads and examines at a time.
const fillBatch = 500

// selectionView is the EncodingKey.View of the labels and selectable fields of an entry in a version.
const selectionView = 0xfe

// selectionFields is the field that holds the selectable fields in that encoding, by their names in the version.
const selectionFields = "fields"

func selectionEncoding(v *resource.Version) objectcache.EncodingKey {
	key := objectcache.EncodingKey{Version: v.FormName(), View: selectionView}
	if v.Converter != nil {
		key.MaxAge = conversionAge
	}
	return key
}

// encodeSelectable returns the labels and selectable fields of entries in a version, each as the JSON of an object
// with nothing else.
func encodeSelectable(ctx context.Context, entries []*objectcache.Entry, v *resource.Version) ([][]byte, error) {
	shown, err := InVersion(ctx, entries, v)
	if err != nil {
		return nil, err
	}
	texts := make([][]byte, len(entries))
	for i, e := range shown {
		obj, err := Object(ctx, e, v)
		if err != nil {
			return nil, err
		}
		labels, fields := map[string]any{}, map[string]any{}
		if own := obj.Map("metadata", "labels"); own != nil {
			maps.Copy(labels, own)
		}
		for _, f := range v.Selectables {
			if v.Converts() && f.Hub != "" {
				fields[f.Name] = entries[i].Selectable(&f.SelectableField)
			} else {
				fields[f.Name] = valueIn(obj, &f.SelectableField)
			}
		}
		texts[i] = codec.EncodeJSON(nil, map[string]any{"metadata": map[string]any{"labels": labels}, selectionFields: fields})
	}
	return texts, nil
}

// valueIn returns the value of a selectable field of obj, like Entry.Selectable.
func valueIn(obj *meta.Object, f *registry.SelectableField) string {
	at := func(path []string) string {
		v, _ := obj.Get(path...)
		return codec.ScalarText(codec.EncodeValue(nil, v))
	}
	v := at(f.Path)
	if v == "" && f.Fallback != nil {
		v = at(f.Fallback)
	}
	return cmp.Or(v, f.Absent)
}
