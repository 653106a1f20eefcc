package objectcache

import (
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/watch"
)

// Query selects objects of a type. The zero Query selects all objects.
type Query struct {
	Namespace string // "" for all
	Name      string // "" for all
	Labels    meta.Selector
	Fields    meta.FieldSelector

	// Field returns the value of a field in Fields, other than metadata.name and
	// metadata.namespace. If it is nil, the value is that of the field declared by
	// Cache.Index, or the one at the field's path.
	Field func(e *Entry, field string) string

	// Unsure reports whether the value of a field in Fields, or of the labels (FieldLabels), cannot be determined
	// from the entry. The query then ignores the requirement on that field, and the caller has to examine the entry.
	// If it is nil, the entry determines all values.
	Unsure func(e *Entry, field string) bool
}

// FieldLabels stands for the labels of an object in Query.Unsure.
const FieldLabels = "metadata.labels"

const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
)

// selective reports whether the query has selectors.
func (q *Query) selective() bool { return !q.Labels.Empty() || !q.Fields.Empty() }

// topicName is the name of the watch.Topic for cursors on a name in all namespaces. The topics of selectable fields
// have the names of the fields.
const topicName = fieldName

// noKey is a key that no object has.
const noKey = "\xff"

// compile returns the query for package watch. Name and namespace in the field selector
// become a key or prefix, as far as possible.
func (c *Cache) compile(q Query) (out watch.Query[*Entry]) {
	if !narrow(&q.Name, &q, fieldName) || !narrow(&q.Namespace, &q, fieldNamespace) {
		out.Key = noKey // the requirements contradict each other
		return out
	}
	index := c.indexFor(&q)
	switch {
	case q.Name != "" && (q.Namespace != "" || c.Cache.Get("/"+q.Name) != nil): // in the latter case the type is cluster-scoped
		out.Key = q.Namespace + "/" + q.Name
	case q.Name != "":
		out.Topic = watch.Topic{Name: topicName, Value: q.Name}
	case q.Namespace != "":
		out.Prefix = q.Namespace + "/"
	}
	if q.selective() || q.Name != "" && out.Key == "" {
		m := &matcher{Query: q, index: index}
		out.Match = m.matches
	}
	for _, f := range index {
		if v, ok := q.Fields.Value(f.Name); ok && q.Name == "" {
			out.Topic = watch.Topic{Name: f.Name, Value: v}
			break
		}
	}
	return out
}

// indexFor returns the selectable fields that a query refers to by name.
func (c *Cache) indexFor(q *Query) []registry.SelectableField {
	if index := c.index.Load(); index != nil && !q.Fields.Empty() && q.Field == nil {
		return *index
	}
	return nil
}

// narrow sets *to to the value that the field selector requires. It returns false if *to already has another value.
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

// Matches reports whether the query selects an entry. Selectable fields are read at their paths; Cache.Selects uses
// the fields that are declared by Cache.Index.
func (q Query) Matches(e *Entry) bool {
	m := matcher{Query: q}
	return m.matches(e)
}

// Selects reports whether the query selects an entry, with the fields declared by Index.
func (c *Cache) Selects(q Query, e *Entry) bool {
	m := matcher{Query: q, index: c.indexFor(&q)}
	return m.matches(e)
}

// matcher is a Query with the selectable fields of a cache.
type matcher struct {
	Query
	index []registry.SelectableField
}

func (m *matcher) matches(e *Entry) bool {
	if e == nil {
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

// Index declares the selectable fields of the type and replaces earlier declarations. Field selectors read them. A
// cursor that requires a value of a selectable field is woken only by objects that have or had the value, or whose
// fields unsure reports to be unknown. unsure may be nil. It is called while commits are applied, so it must be fast.
func (c *Cache) Index(unsure func(e *Entry) bool, fields ...registry.SelectableField) {
	index := make([]registry.SelectableField, len(fields))
	for i, f := range fields {
		if f.Path == nil {
			f.Path = strings.Split(f.Name, ".")
		}
		index[i] = f
	}
	// The topics are set first, because new cursors must not wait for topics that entries do not have yet.
	c.SetTopics(topicsOf(index, unsure))
	c.index.Store(&index)
}

// topicsOf returns a function for watch.Cache.SetTopics.
func topicsOf(index []registry.SelectableField, unsure func(e *Entry) bool) func([]watch.Topic, *Entry) ([]watch.Topic, bool) {
	return func(topics []watch.Topic, e *Entry) ([]watch.Topic, bool) {
		_, name, _ := strings.Cut(e.key, "/")
		topics = append(topics, watch.Topic{Name: topicName, Value: name})
		if len(index) > 0 && unsure != nil && unsure(e) {
			return topics, false
		}
		for i := range index {
			topics = append(topics, watch.Topic{Name: index[i].Name, Value: e.Selectable(&index[i])})
		}
		return topics, true
	}
}
