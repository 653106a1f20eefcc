package cel

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/cel/library"
)

// The variables of expressions about requests.
const (
	varObject     = "object"
	varOld        = "oldObject"
	varRequest    = "request"
	varAuthorizer = "authorizer"
	varItself     = "authorizer.requestResource"
	varParams     = "params"
	varNamespace  = "namespaceObject"
)

// RequestEnv is what expressions about requests see.
type RequestEnv struct {
	cel       *cel.Env
	makes     *cel.Env                 // that of expressions that make objects and patches; nil: there are none
	texts     func() (*cel.Env, error) // that of expressions that make texts, which do not see the authorizer
	sizes     sizes
	asks      *library.Authorization
	types     *provider
	variables map[string]*Program
}

// Sees says what expressions see besides the request and its objects.
type Sees struct {
	Params    bool // of a policy
	Namespace bool // of the object
	Asks      bool // what the user of the request may do
	Variables bool // of a policy
	Makes     bool // objects and patches: a Configuration, and a Patch

	// Object and ParamsOf are what objects and parameters are; nil: anything.
	Object, ParamsOf *schema.Schema
}

// NewRequestEnv returns the environment of a profile, for all expressions of one webhook or
// policy.
func NewRequestEnv(p names.Profile, s Sees) (*RequestEnv, error) {
	e, err := For(p)
	if err != nil {
		return nil, err
	}
	known := newProvider(e.cel.CELTypeProvider())
	shapes := sizes{varRequest: requestSchema(), varNamespace: namespaceSchema()}
	about, _ := known.of(shapes[varRequest])
	namespace, _ := known.of(shapes[varNamespace])
	options := []cel.EnvOption{
		cel.CustomTypeProvider(known), cel.Variable(varRequest, about),
	}
	object := known.whole(p, s.Object)
	options = append(options, cel.Variable(varObject, object), cel.Variable(varOld, object))
	if s.Params {
		options = append(options, cel.Variable(varParams, known.whole(p, s.ParamsOf)))
	}
	if s.Namespace {
		options = append(options, cel.Variable(varNamespace, namespace))
	}
	if s.Variables {
		options = append(options, cel.Variable(varVariables, cel.ObjectType(varVariables)))
	}
	withoutAsks := options
	texts := sync.OnceValues(func() (*cel.Env, error) { return e.cel.Extend(withoutAsks...) })
	asks := library.NewAuthorization(p)
	if s.Asks {
		options = append(slices.Clip(options), cel.Variable(varAuthorizer, asks.AuthorizerType()), cel.Variable(varItself, asks.ResourceType()))
	}
	env, err := e.cel.Extend(options...)
	if err != nil {
		return nil, fmt.Errorf("expressions: %w", err)
	}
	out := &RequestEnv{cel: env, texts: texts, sizes: shapes, asks: asks, types: known, variables: map[string]*Program{}}
	if s.Makes {
		if out.makes, err = env.Extend(cel.CustomTypeProvider(makes{known})); err != nil {
			return nil, fmt.Errorf("expressions: %w", err)
		}
	}
	return out, nil
}

// words is an object of texts.
func words(names ...string) *schema.Schema {
	s := &schema.Schema{Type: schema.Object, Struct: &schema.Struct{}}
	for _, name := range names {
		s.Struct.Add(&schema.Field{Name: name, Schema: &schema.Schema{Type: schema.String}})
	}
	return s
}

// namespaceSchema is the namespace of an object.
func namespaceSchema() *schema.Schema {
	word, number := &schema.Schema{Type: schema.String}, &schema.Schema{Type: schema.Integer}
	date := &schema.Schema{Type: schema.String, Format: "date-time"}
	list, texts := &schema.Schema{Type: schema.Array, Items: word}, &schema.Schema{Type: schema.Object, Values: word}
	metadata, spec, status, condition := words("name", "generateName", "namespace", "uid", "resourceVersion"), words(), words("phase"), words("type", "status", "message", "reason")
	metadata.Struct.Add(
		&schema.Field{Name: "labels", Schema: texts}, &schema.Field{Name: "annotations", Schema: texts}, &schema.Field{Name: "finalizers", Schema: list},
		&schema.Field{Name: "creationTimestamp", Schema: date}, &schema.Field{Name: "deletionTimestamp", Schema: date},
		&schema.Field{Name: "deletionGracePeriodSeconds", Schema: number}, &schema.Field{Name: "generation", Schema: number},
	)
	spec.Struct.Add(&schema.Field{Name: "finalizers", Schema: list})
	condition.Struct.Add(&schema.Field{Name: "lastTransitionTime", Schema: date})
	status.Struct.Add(&schema.Field{Name: "conditions", Schema: &schema.Schema{Type: schema.Array, Items: condition}})
	s := words()
	s.Struct.Add(&schema.Field{Name: "metadata", Schema: metadata}, &schema.Field{Name: "spec", Schema: spec}, &schema.Field{Name: "status", Schema: status})
	return s
}

// requestSchema is the request, as webhooks see it, too.
func requestSchema() *schema.Schema {
	word := &schema.Schema{Type: schema.String}
	list := &schema.Schema{Type: schema.Array, Items: word}
	kind, resource, user := words("group", "version", "kind"), words("group", "version", "resource"), words("username", "uid")
	user.Struct.Add(&schema.Field{Name: "groups", Schema: list}, &schema.Field{Name: "extra", Schema: &schema.Schema{Type: schema.Object, Values: list}})
	s := words("subResource", "requestSubResource", "name", "namespace", "operation")
	s.Struct.Add(
		&schema.Field{Name: "kind", Schema: kind}, &schema.Field{Name: "requestKind", Schema: kind},
		&schema.Field{Name: "resource", Schema: resource}, &schema.Field{Name: "requestResource", Schema: resource},
		&schema.Field{Name: "userInfo", Schema: user}, &schema.Field{Name: "dryRun", Schema: &schema.Schema{Type: schema.Boolean}},
		&schema.Field{Name: "options", Schema: &schema.Schema{IntOrString: true}},
	)
	return s
}

// Type is what an expression has to be.
type Type uint8

// The types.
const (
	Boolean    Type = iota
	Text            // a text; it does not see the authorizer
	TextOrNull      // a text, or null
	Anything
	Configuration // the fields of an object
	Patch         // the operations of a JSON patch
)

// Compile compiles an expression about requests.
func (e *RequestEnv) Compile(text string, want Type) (*Program, error) {
	var of []*cel.Type
	env := e.cel
	switch want {
	case Boolean:
		of = []*cel.Type{cel.BoolType}
	case Text:
		var err error
		if env, err = e.texts(); err != nil {
			return nil, fmt.Errorf("expressions: %w", err)
		}
		of = []*cel.Type{cel.StringType}
	case TextOrNull:
		of = []*cel.Type{cel.StringType, cel.NullType}
	case Configuration:
		env, of = e.makes, []*cel.Type{cel.ObjectType(typeObject)}
	case Patch:
		env, of = e.makes, []*cel.Type{cel.ListType(cel.ObjectType(typePatch))}
	}
	return compile(env, text, e.sizes, of...)
}

// Check says why an expression cannot be evaluated, by the types of what it sees; empty: it
// can.
func (e *RequestEnv) Check(text string) string {
	_, issues := e.cel.Compile(text)
	if issues.Err() == nil {
		return ""
	}
	return toldOf(issues)
}

// Request is what expressions are evaluated about.
type Request struct {
	Object, Old       *meta.Object // nil: there is none
	Params, Namespace *meta.Object
	About             map[string]any // the request as webhooks see it, without its objects

	Action library.Action // what the user does
	Ask    library.Ask
}

// Vars returns what expressions are evaluated with about a request. Variables are evaluated
// when they are first used, which takes what they cost from what is left.
func (e *RequestEnv) Vars(ctx context.Context, r *Request, left *int64) map[string]any {
	vars := map[string]any{
		varObject: tree(r.Object), varOld: tree(r.Old), varParams: tree(r.Params), varNamespace: types.NullValue, varRequest: Value(e.sizes[varRequest], r.About),
	}
	if r.Namespace != nil {
		vars[varNamespace] = Value(e.sizes[varNamespace], r.Namespace.Tree())
	}
	if r.Ask != nil {
		vars[varAuthorizer] = e.asks.Authorizer(r.Action.User, r.Ask)
		vars[varItself] = e.asks.Resource(r.Action, r.Ask)
	}
	vars[varVariables] = &scope{ctx: ctx, programs: e.variables, vars: vars, left: left, made: map[string]ref.Val{}}
	return vars
}

func tree(obj *meta.Object) ref.Val {
	if obj == nil {
		return types.NullValue
	}
	return Value(nil, obj.Tree())
}

// True evaluates an expression that is true or not, and takes what that costs from what is left.
func (p *Program) True(ctx context.Context, vars map[string]any, left *int64) (bool, error) {
	v, err := p.eval(ctx, vars, left)
	if err != nil {
		return false, err
	}
	return v == ref.Val(types.True), nil
}

// Text evaluates an expression that makes a text; ok is false if it is null.
func (p *Program) Text(ctx context.Context, vars map[string]any, left *int64) (text string, ok bool, err error) {
	v, err := p.eval(ctx, vars, left)
	if err != nil {
		return "", false, err
	}
	text, ok = v.Value().(string)
	return text, ok, nil
}
