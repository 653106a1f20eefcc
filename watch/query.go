package watch

import (
	"strings"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
)

// Query selects objects of one type. The zero Query selects all.
type Query struct {
	Namespace string // "" for all
	Name      string // "" for all
	Labels    meta.LabelSelector
	Fields    meta.FieldSelector

	// Field returns a field's value for Fields. nil: the fields declared by
	// Cache.Index, and others by their path. It is never asked for
	// metadata.name and metadata.namespace.
	Field func(e *Entry, field string) string
}

const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
)

// Selective reports whether the query has selectors beyond namespace and name.
func (q *Query) Selective() bool { return !q.Labels.Empty() || !q.Fields.Empty() }

// matcher is a Query made ready for one cache.
type matcher struct {
	Query
	none bool // contradicts itself: selects nothing
}

// matcher takes the demands on name and namespace out of the field selector.
func (c *Cache) matcher(q Query) matcher {
	m := matcher{Query: q}
	if m.Field == nil && !q.Fields.Empty() {
		m.Field = c.fieldValue()
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
	namespace, name, _ := strings.Cut(e.key, "/")
	if m.Namespace != "" && m.Namespace != namespace || m.Name != "" && m.Name != name {
		return false
	}
	if !m.Labels.Empty() && !m.Labels.Matches(e.Label) {
		return false
	}
	return m.Fields.Empty() || m.Fields.Matches(func(field string) string {
		namespace, name, _ := strings.Cut(e.key, "/")
		switch field {
		case fieldName:
			return name
		case fieldNamespace:
			return namespace
		}
		return m.Field(e, field)
	})
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

// fieldValue returns the lookup of the declared fields.
func (c *Cache) fieldValue() func(e *Entry, field string) string {
	c.mu.RLock()
	index := c.index
	c.mu.RUnlock()
	return func(e *Entry, field string) string {
		for i := range index {
			if index[i].Name == field {
				return indexed(e, &index[i])
			}
		}
		return e.Field(strings.Split(field, ".")...)
	}
}

func indexed(e *Entry, f *registry.SelectableField) string {
	if v := e.Field(f.Path...); v != "" {
		return v
	}
	return f.Absent
}
