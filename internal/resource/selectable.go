package resource

import (
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
)

// Selectable is a field by which clients of a version can select objects, under its name in that
// version.
type Selectable struct {
	registry.SelectableField

	// Hub is the name of the hub's selectable field with the same value; Path then leads into the
	// hub object. If it is empty, the value must be read from an object that was converted to the
	// version.
	Hub string
}

// Selectable returns the selectable field with the given name in the version, or nil.
func (v *Version) Selectable(name string) *Selectable {
	i := slices.IndexFunc(v.Selectables, func(f Selectable) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &v.Selectables[i]
}

// SelectableField returns the hub's selectable field with the given name, or nil.
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

// selectables sets the selectable fields of each version.
func (c *compiler) selectables(t *Type) {
	for i := range t.Fields {
		if c.kind.Custom() { // each version of a custom kind declares its own
			break
		}
		c.checkPath(&t.Fields[i], t.Hub.schema)
		c.checkDuplicateField(t.Fields[:i], t.Fields[i].Name)
	}
	for _, v := range t.Versions {
		kv := &c.kind.Versions[v.at]
		for i, f := range kv.OwnFields {
			c.checkPath(&f, v.schema)
			c.checkDuplicateField(kv.OwnFields[:i], f.Name)
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

func (c *compiler) checkDuplicateField(before []registry.SelectableField, name string) {
	if slices.ContainsFunc(before, func(f registry.SelectableField) bool { return f.Name == name }) {
		c.errorf("duplicate selectable field %q", name)
	}
}

// sameNames adds the hub's fields to a version under the same names. If the version converts and
// has a scalar of its own at the path of a field, the value is read from the version instead.
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

// otherNames adds the hub's fields to a version under the version's own names. hub maps these names
// to the names in the hub.
func (c *compiler) otherNames(v *Version, hub map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(hub)) {
		f := v.SelectableField(hub[name])
		if f == nil {
			c.errorf("version %q: selectable field %q refers to %q, which is not a selectable field of the kind", v.Name, name, hub[name])
			continue
		}
		field := Selectable{SelectableField: *f, Hub: f.Name}
		if field.Name = name; v.Selectable(name) == nil {
			v.Selectables = append(v.Selectables, field)
		}
	}
}

// checkPath completes the path of a field and checks that it leads to a scalar in the schema.
func (c *compiler) checkPath(f *registry.SelectableField, in *schema.Schema) {
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
			c.errorf("selectable field %q does not exist in the schema%s", f.Name, nearField(in, path))
		case s != nil && !scalar(s):
			c.errorf("selectable field %q is not a scalar", f.Name)
		}
	}
}

// scalar reports whether a schema is known to describe a scalar.
func scalar(s *schema.Schema) bool {
	return s != nil && s.Type != schema.Object && s.Type != schema.Array
}
