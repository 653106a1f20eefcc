package resource

import (
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
)

// Selectable is a field by which callers of a version select objects, under the name that it
// has for them.
type Selectable struct {
	registry.SelectableField

	// Hub is the name of the hub's field with the same value, which is where the path leads
	// then. Empty: nobody but an object of the version tells the value.
	Hub string
}

// Selectable returns the field that callers of the version know by a name, or nil.
func (v *Version) Selectable(name string) *Selectable {
	i := slices.IndexFunc(v.Selectables, func(f Selectable) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &v.Selectables[i]
}

// SelectableField returns the hub's field of that name, or nil.
func (t *Type) SelectableField(name string) *registry.SelectableField {
	i := slices.IndexFunc(t.Fields, func(f registry.SelectableField) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Fields[i]
}

// FilledIn reports whether the version may show a value of a field that is not stored: the
// schema of a version that objects are stored in has a default for the field, or for an object
// that contains it. Stored values are shown as they are.
func (v *Version) FilledIn(f *Selectable) bool {
	return v.ConformOnRead && slices.ContainsFunc(v.Versions, func(stored *Version) bool { return stored.fills(f.Path) })
}

// fills reports whether the schema has a default for the field at a path, or for an object that
// contains it.
func (v *Version) fills(path []string) bool {
	for i := range path {
		if s, _ := v.Schema().At(path[:i+1]...); s != nil && s.Default != nil {
			return true
		}
	}
	return false
}

// selectables gives each version the fields that its callers select by.
func (c *compiler) selectables(t *Type) {
	for i := range t.Fields {
		if c.kind.Custom() { // those are of the versions, which say it of their schemas
			break
		}
		c.leads(&t.Fields[i], t.Hub.schema)
		c.onceNamed(t.Fields[:i], t.Fields[i].Name)
	}
	for _, v := range t.Versions {
		kv := &c.kind.Versions[v.at]
		for i, f := range kv.OwnFields {
			c.leads(&f, v.schema)
			c.onceNamed(kv.OwnFields[:i], f.Name)
			own := Selectable{SelectableField: f}
			if c.kind.Custom() && (t.Webhook == nil || v == t.Storage) {
				own.Hub = f.Name
			}
			v.Selectables = append(v.Selectables, own)
		}
		if kv.Fields == nil {
			c.sameNames(v)
		} else {
			c.otherNames(v, kv.Fields)
		}
	}
}

func (c *compiler) onceNamed(before []registry.SelectableField, name string) {
	if slices.ContainsFunc(before, func(f registry.SelectableField) bool { return f.Name == name }) {
		c.fault("selectable field %q is given twice", name)
	}
}

// sameNames gives a version the hub's fields. One that converts and shows something at the
// path of a field has its own value there.
func (c *compiler) sameNames(v *Version) {
	for _, f := range v.Fields {
		if v.Selectable(f.Name) != nil {
			continue
		}
		field := Selectable{SelectableField: f, Hub: f.Name}
		if s, ok := v.schema.At(f.Path...); v.conversion != nil && !v.conversion.SameShape && ok && scalar(s) {
			field.Hub = ""
		}
		v.Selectables = append(v.Selectables, field)
	}
}

// otherNames gives a version the hub's fields under names of its own.
func (c *compiler) otherNames(v *Version, hub map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(hub)) {
		f := v.SelectableField(hub[name])
		if f == nil {
			c.fault("version %q: its field %q stands for %q, which is none of the kind's", v.Name, name, hub[name])
			continue
		}
		field := Selectable{SelectableField: *f, Hub: f.Name}
		if field.Name = name; v.Selectable(name) == nil {
			v.Selectables = append(v.Selectables, field)
		}
	}
}

// leads completes a field and checks that it leads to a scalar in a schema.
func (c *compiler) leads(f *registry.SelectableField, in *schema.Schema) {
	if f.Path == nil {
		f.Path = strings.Split(f.Name, ".")
	}
	paths := [][]string{f.Path}
	if f.Fallback != nil {
		paths = append(paths, f.Fallback)
	}
	for _, path := range paths {
		s, ok := in.At(path...)
		switch {
		case !ok:
			c.fault("selectable field %q leads nowhere%s", f.Name, nearField(in, path))
		case s != nil && !scalar(s):
			c.fault("selectable field %q is no single value", f.Name)
		}
	}
}

// scalar reports whether a schema is known to be that of a single value.
func scalar(s *schema.Schema) bool {
	return s != nil && s.Type != schema.Object && s.Type != schema.Array
}
