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

	// Field returns the value of a field in Fields that Cache.Index does not
	// declare; nil: what is at its path. It is never asked for metadata.name
	// and metadata.namespace.
	Field func(e *Entry, field string) string
}

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
	if !q.Fields.Empty() {
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
	if !m.Labels.Empty() && !m.Labels.Matches(e.label) {
		return false
	}
	return m.Fields.Empty() || m.Fields.Matches(func(field string) string { return m.value(e, field) })
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
// woken only by objects that have or had it.
func (c *Cache) Index(fields ...registry.SelectableField) {
	index := make([]registry.SelectableField, len(fields))
	for i, f := range fields {
		if f.Path == nil {
			f.Path = strings.Split(f.Name, ".")
		}
		index[i] = f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index = index
}
