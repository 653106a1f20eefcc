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

// RequestEnv is the environment of the expressions of one webhook or policy. Variable, Compile
// and Check must not be called concurrently, because compiling an expression registers types.
// Add variables before compiling expressions that use them.
type RequestEnv struct {
	cel       *cel.Env
	makes     *cel.Env                 // for expressions that construct objects and patches; nil without Sees.Makes
	texts     func() (*cel.Env, error) // for expressions of type Text, which have no authorizer
	sizes     sizes
	asks      *library.Authorization
	types     *provider
	variables map[string]*Program
}

// Sees selects the variables and types that expressions may use besides the request and its
// objects.
type Sees struct {
	Params    bool // params: the parameters of a policy
	Namespace bool // namespaceObject: the namespace of the object
	Asks      bool // authorizer: the permissions of the user
	Variables bool // variables: the variables of a policy
	Makes     bool // the types of Configuration and Patch

	// Object and ParamsOf are the schemas of the objects and of the parameters; nil allows any
	// value.
	Object, ParamsOf *schema.Schema
}

// NewRequestEnv returns the environment of a webhook or policy in the given profile.
func NewRequestEnv(p names.Profile, s Sees) (*RequestEnv, error) {
	e, err := For(p)
	if err != nil {
		return nil, err
	}
	known := newProvider(e.cel.CELTypeProvider())
	shapes := sizes{varRequest: requestSchema(), varNamespace: namespaceSchema()}
	about, _ := known.typeOf(shapes[varRequest])
	namespace, _ := known.typeOf(shapes[varNamespace])
	options := []cel.EnvOption{
		cel.CustomTypeProvider(known), cel.Variable(varRequest, about),
	}
	object := known.rootType(p, s.Object)
	options = append(options, cel.Variable(varObject, object), cel.Variable(varOld, object))
	if s.Params {
		options = append(options, cel.Variable(varParams, known.rootType(p, s.ParamsOf)))
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
		if out.makes, err = env.Extend(cel.CustomTypeProvider(constructedTypes{known})); err != nil {
			return nil, fmt.Errorf("expressions: %w", err)
		}
	}
	return out, nil
}

// words returns the schema of an object with string fields.
func words(names ...string) *schema.Schema {
	s := &schema.Schema{Type: schema.Object, Struct: &schema.Struct{}}
	for _, name := range names {
		s.Struct.Add(&schema.Field{Name: name, Schema: &schema.Schema{Type: schema.String}})
	}
	return s
}

// namespaceSchema returns the schema of namespaceObject.
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

// requestSchema returns the schema of request, which is the request of an AdmissionReview
// without objects.
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

// Type is the required type of an expression.
type Type uint8

// The types.
const (
	Boolean    Type = iota
	Text            // a string, without access to the authorizer
	TextOrNull      // a string or null
	Anything
	Configuration // the fields of an object to apply
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

// Check returns the type errors of an expression, or "" if there are none.
func (e *RequestEnv) Check(text string) string {
	_, issues := e.cel.Compile(text)
	if issues.Err() == nil {
		return ""
	}
	return issueText(issues)
}

// Request is a request that expressions are evaluated for.
type Request struct {
	Object, Old       *meta.Object // nil if there is none
	Params, Namespace *meta.Object
	About             map[string]any // the request as in an AdmissionReview, without objects

	Action library.Action // the action to authorize
	Ask    library.Ask
}

// Vars returns the variables for a request. Policy variables are evaluated when they are first
// used, and their cost is subtracted from *left. The result must not be used concurrently.
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
	vars[varVariables] = &scope{ctx: ctx, programs: e.variables, vars: vars, left: left, values: map[string]ref.Val{}}
	return vars
}

func tree(obj *meta.Object) ref.Val {
	if obj == nil {
		return types.NullValue
	}
	return Value(nil, obj.Tree())
}

// True evaluates an expression of type Boolean and subtracts the cost from *left.
func (p *Program) True(ctx context.Context, vars map[string]any, left *int64) (bool, error) {
	v, err := p.eval(ctx, vars, left)
	if err != nil {
		return false, err
	}
	return v == ref.Val(types.True), nil
}

// Text evaluates an expression of type Text or TextOrNull and subtracts the cost from *left. ok
// is false for null.
func (p *Program) Text(ctx context.Context, vars map[string]any, left *int64) (text string, ok bool, err error) {
	v, err := p.eval(ctx, vars, left)
	if err != nil {
		return "", false, err
	}
	text, ok = v.Value().(string)
	return text, ok, nil
}
