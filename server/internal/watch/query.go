package watch

import (
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Query selects objects of one type. The zero Query selects all.
type Query struct {
	Namespace string // "" for all
	Name      string // "" for all
	Labels    meta.LabelSelector
	Fields    meta.FieldSelector

	// Field returns the value of a field in Fields; nil: it is what Cache.Index declares, or
	// what is at its path. It is never asked for metadata.name and metadata.namespace.
	Field func(e *Entry, field string) string

	// Unsure reports whether an entry does not tell what a field in Fields is, nor what the
	// labels are, which go by FieldLabels. As far as it does not, it is selected; who asked
	// finds out about those that he gets. nil: an entry tells everything.
	Unsure func(e *Entry, field string) bool
}

// FieldLabels stands for the labels of an object, see Query.Unsure.
const FieldLabels = "metadata.labels"

const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
)

// selective reports whether the query has selectors beyond namespace and name.
func (q *Query) selective() bool { return !q.Labels.Empty() || !q.Fields.Empty() }

// matcher is a Query made ready for one cache.
type matcher struct {
	Query
	index []registry.SelectableField
	none  bool // contradicts itself: selects nothing
}

// matcher takes the demands on name and namespace out of the field selector.
func (c *Cache) matcher(q Query) matcher {
	m := matcher{Query: q}
	if !q.Fields.Empty() && q.Field == nil {
		c.mu.RLock()
		m.index = c.index
		c.mu.RUnlock()
	}
	m.none = !narrow(&m.Name, &q, fieldName)
	m.none = !narrow(&m.Namespace, &q, fieldNamespace) || m.none
	return m
}

// narrow sets *to to what the field selector demands; false: two demands differ.
func narrow(to *string, q *Query, field string) bool {
	v, ok := q.Fields.Value(field)
	if !ok || v == *to {
		return true
	}
	if *to != "" {
		return false
	}
	*to = v
	return true
}

// Matches reports whether the query selects an entry, of any cache or none.
func (q Query) Matches(e *Entry) bool {
	m := matcher{Query: q}
	return m.matches(e)
}

// Selects is Query.Matches by the fields that the cache declares.
func (c *Cache) Selects(q Query, e *Entry) bool {
	m := c.matcher(q)
	return m.matches(e)
}

func (m *matcher) matches(e *Entry) bool {
	if e == nil || m.none {
		return false
	}
	if m.Namespace != "" || m.Name != "" {
		namespace, name, _ := strings.Cut(e.key, "/")
		if m.Namespace != "" && m.Namespace != namespace || m.Name != "" && m.Name != name {
			return false
		}
	}
	if !m.Labels.Empty() && !m.Labels.Matches(e.label) && !m.unsure(e, FieldLabels) {
		return false
	}
	for _, r := range m.Fields.Requirements() {
		if (m.value(e, r.Field) == r.Value) == r.Not && !m.unsure(e, r.Field) {
			return false
		}
	}
	return true
}

func (m *matcher) unsure(e *Entry, field string) bool {
	return m.Unsure != nil && field != fieldName && field != fieldNamespace && m.Unsure(e, field)
}

func (m *matcher) value(e *Entry, field string) string {
	switch field {
	case fieldName:
		return e.Key().Name
	case fieldNamespace:
		return e.Key().Namespace
	}
	for i := range m.index {
		if m.index[i].Name == field {
			return e.Selectable(&m.index[i])
		}
	}
	if m.Field != nil {
		return m.Field(e, field)
	}
	return e.Field(strings.Split(field, ".")...)
}

// Index declares the selectable fields of the type, replacing earlier ones:
// selectors read them, and a watcher that demands one value of one of them is
// woken only by objects that have or had it, and by those that do not tell their fields.
// unsure, which may be nil, says so of an entry; commits wait for it.
func (c *Cache) Index(unsure func(e *Entry) bool, fields ...registry.SelectableField) {
	index := make([]registry.SelectableField, len(fields))
	for i, f := range fields {
		if f.Path == nil {
			f.Path = strings.Split(f.Name, ".")
		}
		index[i] = f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index, c.unsure = index, unsure
}
