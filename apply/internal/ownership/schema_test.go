package ownership

import "orch.io/controlplane/api/schema"

func text() *schema.Schema { return &schema.Schema{Type: schema.String} }

func numeric() *schema.Schema { return &schema.Schema{Type: schema.Integer} }

func mapOf(v *schema.Schema) *schema.Schema { return &schema.Schema{Type: schema.Object, Values: v} }

func listOf(v *schema.Schema) *schema.Schema { return &schema.Schema{Type: schema.Array, Items: v} }

type fields map[string]*schema.Schema

// object is a struct; goType says that it comes from Go, where a field left out
// is a zero.
func object(goType bool, fs fields) *schema.Schema {
	st := &schema.Struct{}
	for name, s := range fs {
		f := &schema.Field{Name: name, Schema: s}
		if goType {
			f.Index = []int{0}
		}
		st.Add(f)
	}
	return &schema.Schema{Type: schema.Object, Struct: st}
}

func withDefault(s *schema.Schema, v any) *schema.Schema {
	s.Default = v
	return s
}

func atomic(s *schema.Schema) *schema.Schema {
	s.ListType, s.MapType = "atomic", "atomic"
	return s
}
