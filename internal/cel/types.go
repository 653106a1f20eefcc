package cel

import (
	"strconv"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
)

// form is the CEL type of a string.
type form uint8

const (
	formText form = iota
	formBytes
	formDuration
	formDate
	formTime
)

func formOf(s *schema.Schema) form {
	switch s.Format {
	case "byte":
		return formBytes
	case "duration":
		return formDuration
	case "date":
		return formDate
	case "date-time":
		return formTime
	}
	return formText
}

// commonFields returns the fields that expressions can use in every embedded or root object:
// apiVersion, kind, and the names in metadata.
var commonFields = sync.OnceValue(func() *schema.Struct {
	word := &schema.Schema{Type: schema.String}
	metadata := &schema.Schema{Type: schema.Object, Struct: &schema.Struct{}}
	metadata.Struct.Add(&schema.Field{Name: "name", Schema: word}, &schema.Field{Name: "generateName", Schema: word})
	s := &schema.Struct{}
	s.Add(&schema.Field{Name: "apiVersion", Schema: word}, &schema.Field{Name: "kind", Schema: word}, &schema.Field{Name: "metadata", Schema: metadata})
	return s
})

// fieldOf returns the schema of a field of an object.
func fieldOf(s *schema.Schema, name string) (*schema.Schema, bool) {
	if s.Embedded {
		if f := commonFields().Field(name); f != nil {
			return f.Schema, true
		}
	}
	if f := s.Struct.Field(name); f != nil {
		return f.Schema, true
	}
	return nil, false
}

// provider is a types.Provider with the object types of schemas. Types are named in the order
// of their first use. It is not safe for concurrent changes.
type provider struct {
	types.Provider
	objects map[string]*schema.Schema
	names   map[*schema.Schema]string

	variables map[string]*cel.Type // types of policy variables
}

func newProvider(base types.Provider) *provider {
	return &provider{base, map[string]*schema.Schema{}, map[*schema.Schema]string{}, map[string]*cel.Type{}}
}

// typeOf returns the type of values of a schema. ok is false if expressions cannot use such values.
func (p *provider) typeOf(s *schema.Schema) (t *cel.Type, ok bool) {
	switch {
	case s == nil:
		return nil, false
	case s.IntOrString, s.Wire == schema.Quantity, s.Wire == schema.OrBoolean, s.Wire == schema.OrList:
		return cel.DynType, true
	}
	switch s.Type {
	case schema.Array:
		items, ok := p.typeOf(s.Items)
		if !ok {
			return nil, false
		}
		return cel.ListType(items), true
	case schema.Object:
		if s.Values != nil {
			values, ok := p.typeOf(s.Values)
			if !ok {
				return nil, false
			}
			return cel.MapType(cel.StringType, values), true
		}
		return p.object(s), true
	case schema.String:
		return [...]*cel.Type{formText: cel.StringType, formBytes: cel.BytesType, formDuration: cel.DurationType, formDate: cel.TimestampType, formTime: cel.TimestampType}[formOf(s)], true
	case schema.Boolean:
		return cel.BoolType, true
	case schema.Number:
		return cel.DoubleType, true
	case schema.Integer:
		return cel.IntType, true
	}
	return nil, false
}

// rootType returns the type of a root object with the schema s, or dyn without a schema.
func (p *provider) rootType(words names.Profile, s *schema.Schema) *cel.Type {
	if s == nil || s.Struct == nil {
		return cel.DynType
	}
	root, fields := *s, &schema.Struct{}
	for _, name := range []string{"apiVersion", "kind"} {
		fields.Add(&schema.Field{Name: name, Schema: &schema.Schema{Type: schema.String}})
	}
	fields.Add(s.Struct.Fields...)
	fields.Add(&schema.Field{Name: "metadata", Schema: schema.Metadata(words)})
	root.Struct, root.Embedded = fields, false
	return p.object(&root)
}

func (p *provider) object(s *schema.Schema) *cel.Type {
	name, ok := p.names[s]
	if !ok {
		name = "object" + strconv.Itoa(len(p.objects))
		p.objects[name], p.names[s] = s, name
	}
	return cel.ObjectType(name)
}

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.objects[name]; ok || name == varVariables {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	s, ok := p.objects[name]
	if !ok {
		return p.Provider.FindStructFieldNames(name)
	}
	var names []string
	for _, of := range []*schema.Struct{commonFields(), s.Struct} {
		if of == nil || of == commonFields() && !s.Embedded {
			continue
		}
		for _, f := range of.Fields {
			if name, ok := escape(f.Name); ok {
				names = append(names, name)
			}
		}
	}
	return names, true
}

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if name == varVariables {
		t, ok := p.variables[field]
		return &types.FieldType{Type: t}, ok
	}
	s, ok := p.objects[name]
	if !ok {
		return p.Provider.FindStructFieldType(name, field)
	}
	of, ok := fieldOf(s, unescape(field))
	if !ok {
		return nil, false
	}
	t, ok := p.typeOf(of)
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: t}, true
}
