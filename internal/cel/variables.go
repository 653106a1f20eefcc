package cel

import (
	"context"
	"fmt"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// varVariables is the variable below which those of a policy are, and the name of its type.
const varVariables = "variables"

// Variable compiles an expression that those compiled after it use by name, below variables.
// Its own faults do not keep them from that.
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

// scope is the value of variables: each is evaluated when an expression first asks for it.
type scope struct {
	ctx      context.Context // of one evaluation: the language hands none to what expressions look up
	programs map[string]*Program
	vars     map[string]any
	left     *int64
	made     map[string]ref.Val
	depth    int // of variables that are being evaluated
}

// deepestVariable bounds how many variables one is made of that are made of each other.
const deepestVariable = 200

// Get implements traits.Indexer.
func (s *scope) Get(name ref.Val) ref.Val {
	key, _ := name.Value().(string)
	if v, ok := s.made[key]; ok {
		return v
	}
	p := s.programs[key]
	if p == nil {
		return types.NewErr("no such key: %s", key)
	}
	if s.depth == deepestVariable {
		return types.NewErr("variables need each other more than %d deep", deepestVariable)
	}
	// dyn(variables) hides from the check of types that a variable asks for itself.
	s.made[key] = types.NewErr("composited variable %q fails to evaluate: it needs its own value", key)
	s.depth++
	v, err := p.eval(s.ctx, s.vars, s.left)
	s.depth--
	if err != nil {
		v = types.WrapErr(fmt.Errorf("composited variable %q fails to evaluate: %w", key, err))
	}
	s.made[key] = v
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
