package library

import (
	"fmt"
	"net/url"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/blang/semver/v4"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

// kinds has the types that this library adds to CEL.
type kinds struct {
	url      binding[*url.URL]
	quantity binding[meta.Quantity]
	version  binding[semver.Version]
	format   binding[format]
	authorizationKinds
}

func newKinds(p names.Profile) kinds {
	return kinds{
		url:                newBinding(p, "URL", func(a, b *url.URL) bool { return a.String() == b.String() }),
		quantity:           newBinding(p, "Quantity", func(a, b meta.Quantity) bool { return a.Cmp(b) == 0 }),
		version:            newBinding(p, "Semver", semver.Version.EQ),
		format:             newBinding(p, "NamedFormat", func(a, b format) bool { return a.name == b.name }),
		authorizationKinds: newAuthorizationKinds(p),
	}
}

// newBinding returns the type with the name.
func newBinding[T any](p names.Profile, name string, equal func(a, b T) bool) binding[T] {
	k := &kind[T]{of: cel.ObjectType(p.Wire(wellknown.ExpressionTypes + name)), equal: equal}
	return binding[T]{k.of, func(v ref.Val) T { it, _ := v.Value().(T); return it }, func(it T) ref.Val { return value[T]{k, it} }}
}

// kind is a type of this library.
type kind[T any] struct {
	of    *cel.Type
	equal func(a, b T) bool
}

// value is a value of a type of this library. Expressions can only use it through functions.
type value[T any] struct {
	kind *kind[T]
	it   T
}

// ConvertToNative implements ref.Val.
func (v value[T]) ConvertToNative(t reflect.Type) (any, error) {
	if reflect.TypeFor[T]().AssignableTo(t) {
		return v.it, nil
	}
	return nil, fmt.Errorf("%s cannot be converted to %v", v.kind.of, t)
}

// ConvertToType implements ref.Val.
func (v value[T]) ConvertToType(t ref.Type) ref.Val {
	switch t.TypeName() {
	case v.kind.of.TypeName():
		return v
	case types.TypeType.TypeName():
		return v.kind.of
	}
	return types.NewErr("%s cannot be converted to %s", v.kind.of, t.TypeName())
}

// Equal implements ref.Val.
func (v value[T]) Equal(other ref.Val) ref.Val {
	o, ok := other.(value[T])
	return types.Bool(ok && v.kind.equal(v.it, o.it))
}

// Type implements ref.Val.
func (v value[T]) Type() ref.Type { return v.kind.of }

// Value implements ref.Val.
func (v value[T]) Value() any { return v.it }
