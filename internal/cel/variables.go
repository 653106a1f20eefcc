package cel

import (
	"context"
	"fmt"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// varVariables is the name of the variable that has the policy variables as fields, and of its
// type.
const varVariables = "variables"

// Variable compiles a policy variable, which expressions that are compiled later can use as
// variables.name. If it returns an error, these expressions still compile, and fail when they
// evaluate the variable.
func (e *RequestEnv) Variable(name, text string) error {
	p, err := e.Compile(text, Anything)
	if err != nil {
		e.types.variables[name] = cel.DynType
		e.variables[name] = &Program{fault: err}
		return err
	}
	e.types.variables[name] = p.of
	e.variables[name] = p
	return nil
}

// scope is the value of variables. Each variable is evaluated when it is first used.
type scope struct {
	ctx      context.Context // of one evaluation; CEL passes no context to Get
	programs map[string]*Program
	vars     map[string]any
	left     *int64
	values   map[string]ref.Val
	depth    int // nesting of the current evaluation
}

// deepestVariable limits the depth of variables that use other variables.
const deepestVariable = 200

// Get implements traits.Indexer.
func (s *scope) Get(name ref.Val) ref.Val {
	key, _ := name.Value().(string)
	if v, ok := s.values[key]; ok {
		return v
	}
	p := s.programs[key]
	if p == nil {
		return types.NewErr("no such key: %s", key)
	}
	if s.depth == deepestVariable {
		return types.NewErr("variables are nested more than %d levels deep", deepestVariable)
	}
	// The type check cannot find that a variable uses itself through dyn(variables).
	s.values[key] = types.NewErr("composited variable %q fails to evaluate: it depends on itself", key)
	s.depth++
	v, err := p.eval(s.ctx, s.vars, s.left)
	s.depth--
	if err != nil {
		v = types.WrapErr(fmt.Errorf("composited variable %q fails to evaluate: %w", key, err))
	}
	s.values[key] = v
	return v
}

// Contains implements traits.Container.
func (s *scope) Contains(name ref.Val) ref.Val {
	key, _ := name.Value().(string)
	return types.Bool(s.programs[key] != nil)
}

// IsSet implements traits.FieldTester.
func (s *scope) IsSet(name ref.Val) ref.Val { return s.Contains(name) }

// ConvertToNative implements ref.Val.
func (s *scope) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("variables cannot be converted to %v", t)
}

// ConvertToType implements ref.Val.
func (s *scope) ConvertToType(t ref.Type) ref.Val { return convert(s, t) }

// Equal implements ref.Val.
func (s *scope) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(s)) }

// Type implements ref.Val.
func (s *scope) Type() ref.Type { return types.NewObjectType(varVariables) }

// Value implements ref.Val.
func (s *scope) Value() any { return s }
