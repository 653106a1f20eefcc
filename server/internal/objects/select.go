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

// Index declares to a cache which fields objects of a type are selected by.
func Index(h *objectcache.Set, t *resource.Type) {
	var unsure func(*objectcache.Entry) bool
	if t.Webhook != nil {
		unsure = func(e *objectcache.Entry) bool { return asks(e, t.Hub) }
	}
	h.Cache(t.GroupResource()).Index(unsure, t.Fields...)
}

// Selector is a selection of objects by what a version shows of them. Caches hold objects
// as they are stored: of those that a converter makes something else of, or that get
// defaults, they do not tell labels and fields. These come through Query, and Filter and
// Narrow find out. What they find is kept with the entries, as it is small, longer than
// the objects that it was read from.
type Selector struct {
	Query   objectcache.Query
	version *resource.Version
	own     objectcache.Query // of what was found out
	filled  map[string]bool   // fields that are selected by and may have a default
}

// NewSelector returns a selection in a version.
func NewSelector(v *resource.Version, sel *Selection) *Selector {
	s := &Selector{version: v, Query: objectcache.Query{Namespace: sel.Namespace, Name: sel.Name, Labels: sel.Labels, Fields: sel.Fields}}
	plain, some := true, !sel.Labels.Empty()
	for _, r := range sel.Fields.Requirements() {
		f := v.Selectable(r.Field)
		if f == nil {
			continue // of the metadata
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
		s.Query.Fields, _ = sel.Fields.Renamed(func(name string) (string, error) { return hubName(v, name), nil }) // which does not fail
	default:
		s.Query.Field = s.stored
	}
	if some && (!plain || v.Converter != nil) {
		s.Query.Unsure = s.unsure
		s.own = objectcache.Query{Labels: sel.Labels, Fields: sel.Fields, Field: func(e *objectcache.Entry, field string) string { return e.Field(fieldsFound, field) }}
	}
	return s
}

// hubName is the hub's name of a field that callers of a version name.
func hubName(v *resource.Version, name string) string {
	if f := v.Selectable(name); f != nil {
		return f.Hub
	}
	return name
}

// stored is the value of a field as far as what is stored tells it.
func (s *Selector) stored(e *objectcache.Entry, field string) string {
	if f := s.version.Selectable(field); f != nil {
		return e.Selectable(&f.SelectableField)
	}
	return ""
}

// unsure implements Query.Unsure.
func (s *Selector) unsure(e *objectcache.Entry, field string) bool {
	v := s.version
	switch {
	case asks(e, v):
		return true
	case field == objectcache.FieldLabels || s.Query.Field == nil:
		return false
	case s.filled[field]:
		return s.stored(e, field) == "" && !(v == v.Hub && e.Conforms(v.SchemaMark()))
	}
	f := v.Selectable(field)
	return f != nil && f.Hub == "" && v.Converts()
}

// doubts reports whether an entry does not tell whether it is selected.
func (s *Selector) doubts(e *objectcache.Entry) bool {
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

// Filter returns those of some entries, which Query selects, that the selection is about.
// It fails if one cannot be shown.
func (s *Selector) Filter(ctx context.Context, entries []*objectcache.Entry) ([]*objectcache.Entry, error) {
	if s.Query.Unsure == nil {
		return entries, nil
	}
	selects, err := s.find(ctx, entries)
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

// Narrow is Filter for the changes that a cursor on Query delivers: an object that begins to
// be selected is added, one that ceases to be is deleted.
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
	selects, err := s.find(ctx, states)
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

// find returns what tells which of the entries, all of which Query selects, are selected.
func (s *Selector) find(ctx context.Context, entries []*objectcache.Entry) (func(*objectcache.Entry) bool, error) {
	var some []*objectcache.Entry
	for _, e := range entries {
		if s.doubts(e) {
			some = append(some, e)
		}
	}
	texts, err := objectcache.Encode(ctx, some, foundForm(s.version), func(some []*objectcache.Entry) ([][]byte, error) { return readFound(ctx, some, s.version) })
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

// fill makes a page of those of its objects that are selected, and of further ones of the
// same state as far as there is room.
func (s *Selector) fill(ctx context.Context, c *objectcache.Cache, p objectcache.Page, limit int) (objectcache.Page, error) {
	if s.Query.Unsure == nil {
		return p, nil
	}
	selected, err := s.Filter(ctx, p.Entries)
	for err == nil && p.Next != "" && len(selected) <= limit {
		var next objectcache.Page
		if next, err = c.ListAt(ctx, p.Revision, s.Query, p.Next, max(limit, candidates)); err != nil {
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

// candidates is of how many objects at a time fill finds out whether they are selected.
const candidates = 500

// foundView is the FormKey.View of what selectors read of an entry in a version.
const foundView = 0xfe

// fieldsFound is where that has the fields, by the names that they have in the version.
const fieldsFound = "fields"

func foundForm(v *resource.Version) objectcache.EncodingKey {
	key := objectcache.EncodingKey{Version: v.FormName(), View: foundView}
	if v.Converter != nil {
		key.MaxAge = conversionAge
	}
	return key
}

// readFound returns the labels and fields of entries as a version shows them: texts of objects
// that have nothing else.
func readFound(ctx context.Context, entries []*objectcache.Entry, v *resource.Version) ([][]byte, error) {
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
		texts[i] = codec.EncodeJSON(nil, map[string]any{"metadata": map[string]any{"labels": labels}, fieldsFound: fields})
	}
	return texts, nil
}

// valueIn is Selectable of an entry of an object.
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
