package library

import (
	"errors"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// longestFormatted limits the result of format, in bytes: the cost of a call does not depend on
// it.
const longestFormatted = 1 << 20

// formatting is an environment option that limits the function format of cel-go.
func formatting(env *cel.Env) (*cel.Env, error) {
	const name, id = "format", "string_format"
	bindings, err := env.Functions()[name].Bindings()
	if err != nil {
		return nil, err
	}
	for _, b := range bindings {
		if b.Operator == id && b.Function != nil {
			args := []*cel.Type{cel.StringType, cel.ListType(cel.DynType)}
			return cel.Function(name, cel.MemberOverload(id, args, cel.StringType, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				if left := longestFormatted; !shorter(args[1], &left) {
					return types.WrapErr(fmt.Errorf("the text would have more than %d bytes", longestFormatted))
				}
				return b.Function(args...)
			})))(env)
		}
	}
	return nil, errors.New("format is not known")
}

// shorter subtracts the approximate length of a value as text from *left, and reports whether
// *left is still not negative.
func shorter(v ref.Val, left *int) bool {
	*left -= 8
	switch v := v.(type) {
	case types.String:
		*left -= len(v)
	case types.Bytes:
		*left -= len(v)
	case traits.Lister:
		elements(v, func(_ int64, e ref.Val) bool { return shorter(e, left) })
	case traits.Mapper:
		for it := v.Iterator(); *left >= 0 && it.HasNext() == types.True; {
			key := it.Next()
			if shorter(key, left) {
				shorter(v.Get(key), left)
			}
		}
	}
	return *left >= 0
}
