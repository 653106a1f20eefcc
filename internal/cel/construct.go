package cel

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/number"
)

// Types of the objects that expressions construct. A nested object has the type named by its
// path, such as Object.spec.template; JSONPatch is an operation of a JSON patch.
const (
	typeObject = "Object"
	typePatch  = "JSONPatch"
)

// constructedTypes is a types.Provider that adds these types. It allows any field; merging the
// object reports unknown fields.
type constructedTypes struct{ *provider }

func isConstructed(name string) bool {
	return name == typePatch || name == typeObject || strings.HasPrefix(name, typeObject+".")
}

// FindStructType implements types.Provider.
func (m constructedTypes) FindStructType(name string) (*types.Type, bool) {
	if isConstructed(name) {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return m.provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (m constructedTypes) FindStructFieldNames(name string) ([]string, bool) {
	switch {
	case name == typePatch:
		return []string{"op", "from", "path", "value"}, true
	case isConstructed(name):
		return nil, true
	}
	return m.provider.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (m constructedTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if !isConstructed(name) {
		return m.provider.FindStructFieldType(name, field)
	}
	of := cel.DynType
	if name == typePatch {
		switch field {
		case "op", "from", "path":
			of = cel.StringType
		case "value":
		default:
			return nil, false
		}
	}
	return &types.FieldType{Type: of}, true
}

// NewValue implements types.Provider.
func (m constructedTypes) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if isConstructed(name) {
		return constructed{name, fields}
	}
	return m.provider.NewValue(name, fields)
}

// constructed is an object that an expression constructed.
type constructed struct {
	name   string // of its type
	fields map[string]ref.Val
}

// Get implements traits.Indexer.
func (m constructed) Get(name ref.Val) ref.Val {
	key, _ := name.Value().(string)
	if v, ok := m.fields[key]; ok {
		return v
	}
	return types.NewErr("no such key: %v", name)
}

// IsSet implements traits.FieldTester.
func (m constructed) IsSet(name ref.Val) ref.Val {
	key, _ := name.Value().(string)
	return types.Bool(m.fields[key] != nil)
}

// IsZeroValue implements traits.Zeroer.
func (m constructed) IsZeroValue() bool { return len(m.fields) == 0 }

// Equal implements ref.Val.
func (m constructed) Equal(other ref.Val) ref.Val {
	o, ok := other.(constructed)
	if !ok || o.name != m.name || len(o.fields) != len(m.fields) {
		return types.False
	}
	for name, v := range m.fields {
		theirs, ok := o.fields[name]
		if !ok {
			return types.False
		}
		if same := v.Equal(theirs); same != types.True {
			return same
		}
	}
	return types.True
}

// ConvertToNative implements ref.Val.
func (m constructed) ConvertToNative(t reflect.Type) (any, error) { return native(m.fields, t) }

// ConvertToType implements ref.Val.
func (m constructed) ConvertToType(t ref.Type) ref.Val {
	if t.TypeName() == m.name {
		return m
	}
	return convert(m, t)
}

// Type implements ref.Val.
func (m constructed) Type() ref.Type { return types.NewObjectType(m.name) }

// Value implements ref.Val.
func (m constructed) Value() any { return m.fields }

// Made is the result of an expression that constructs an object or a patch.
type Made struct{ value ref.Val }

// Make evaluates such an expression and subtracts the cost from *left.
func (p *Program) Make(ctx context.Context, vars map[string]any, left *int64) (Made, error) {
	v, err := p.eval(ctx, vars, left)
	return Made{v}, err
}

// Tree returns the result as JSON: the fields of a Configuration, or the operations of a Patch.
// It returns an error if a value cannot be in an object, or if the type of an object does not
// match its path.
func (m Made) Tree() (any, error) {
	w := writer{}
	tree, err := w.tree(m.value, "", 0)
	switch {
	case err != nil:
		return nil, err
	case len(w.mistyped) > 0:
		slices.Sort(w.mistyped)
		return nil, fmt.Errorf("type mismatch: %s", strings.Join(w.mistyped, "\n"))
	}
	return tree, nil
}

// Limits on results. Values that come from the objects of the request count as well, because an
// expression can use them many times.
const (
	deepestTree = 500
	largestTree = 8 << 20 // bytes of strings and field names, plus valueBytes for each value
	valueBytes  = 8
)

// mostMistyped limits the number of objects of wrong types in an error.
const mostMistyped = 100

var errLarge = errors.New("the value is too large")

// writer converts values to trees.
type writer struct {
	size     int
	mistyped []string // messages for objects of another type than their path requires
}

// add counts a value or a field name with a text of the given length.
func (w *writer) add(text int) error {
	if w.size += valueBytes + text; w.size > largestTree {
		return errLarge
	}
	return nil
}

// tree converts a value. name is the type that a constructed object must have, or "" for any.
func (w *writer) tree(v ref.Val, name string, depth int) (any, error) {
	text := 0
	switch v := v.(type) {
	case types.String:
		text = len(v)
	case types.Bytes:
		text = base64.StdEncoding.EncodedLen(len(v))
	}
	if err := w.add(text); err != nil || depth > deepestTree {
		return nil, errLarge
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v > math.MaxInt64 {
			return float64(v), nil
		}
		return int64(v), nil // in the range of int64
	case types.Double:
		return numberOf(float64(v))
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), nil
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return strconv.FormatFloat(v.Seconds(), 'f', -1, 64) + "s", nil
	case constructed:
		return w.object(v, name, depth)
	case object:
		return w.copy(v.raw)
	case list:
		if v.computed == nil {
			return w.copy(v.raw)
		}
		return w.list(v, name, depth)
	case *types.Optional:
		if !v.HasValue() {
			return nil, errors.New("optional.none() dereference")
		}
		return w.tree(v.GetValue(), name, depth+1)
	case traits.Mapper:
		return w.entries(v, name, depth)
	case traits.Lister:
		return w.list(v, name, depth)
	}
	return nil, fmt.Errorf("a value of type %s cannot be in an object", v.Type().TypeName())
}

// numberOf returns integers as int64, because JSON does not distinguish them from floats.
func numberOf(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v cannot be in an object", f)
	}
	if n, ok := number.Integer(f); ok {
		return n, nil
	}
	return f, nil
}

func (w *writer) object(m constructed, name string, depth int) (any, error) {
	switch {
	case name == "" || name == m.name:
		name = m.name
	case len(w.mistyped) < mostMistyped:
		w.mistyped = append(w.mistyped, fmt.Sprintf("unexpected type name %q, expected %q, which matches field name path from root Object type", m.name, name))
	}
	tree := make(map[string]any, len(m.fields))
	for _, field := range slices.Sorted(maps.Keys(m.fields)) {
		below := ""
		if m.name != typePatch {
			below = name + "." + field
		}
		if m.name != typePatch && m.fields[field] == types.NullValue {
			return nil, fmt.Errorf("field %q is null, which sets nothing", field)
		}
		err := w.add(len(field))
		if err != nil {
			return nil, err
		}
		if tree[field], err = w.tree(m.fields[field], below, depth+1); err != nil {
			return nil, fmt.Errorf("fail to convert field %q: %w", field, err)
		}
	}
	return tree, nil
}

func (w *writer) entries(m traits.Mapper, name string, depth int) (any, error) {
	tree := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		text, ok := key.Value().(string)
		if !ok {
			return nil, fmt.Errorf("map key %v is of type %s, not string", key.Value(), key.Type().TypeName())
		}
		err := w.add(len(text))
		if err != nil {
			return nil, err
		}
		if tree[text], err = w.tree(m.Get(key), name, depth+1); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

func (w *writer) list(l traits.Lister, name string, depth int) (any, error) {
	tree := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		v, err := w.tree(it.Next(), name, depth+1)
		if err != nil {
			return nil, err
		}
		tree = append(tree, v)
	}
	return tree, nil
}

// copy returns a copy of a value that comes from an object of the request.
func (w *writer) copy(raw any) (any, error) {
	if err := w.count(raw); err != nil {
		return nil, err
	}
	return meta.Clone(raw), nil
}

// count counts a value that comes from an object of the request.
func (w *writer) count(raw any) error {
	text := 0
	switch raw := raw.(type) {
	case string:
		text = len(raw)
	case meta.RawJSON:
		text = len(raw)
	case map[string]any:
		for name, v := range raw {
			if w.add(len(name)) != nil || w.count(v) != nil {
				return errLarge
			}
		}
	case []any:
		for _, v := range raw {
			if w.count(v) != nil {
				return errLarge
			}
		}
	}
	return w.add(text)
}
