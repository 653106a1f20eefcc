package networking

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// IngressClass represents a controller for Ingresses. Ingresses refer to it by name.
type IngressClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the controller and its configuration.
	Spec IngressClassSpec `json:"spec,omitempty" protobuf:"2"`
}

// IngressClassSpec is the controller of a class and its configuration.
type IngressClassSpec struct {
	// Controller is the name of the controller, a domain-prefixed path of at most 250 bytes. Immutable.
	Controller string `json:"controller,omitempty" protobuf:"1" schema:"required,optional,immutable,maxLength=250"`
	// Parameters refers to an object with further configuration.
	Parameters *IngressClassParametersReference `json:"parameters,omitempty" protobuf:"2"`
}

// IngressClassParametersReference identifies the object that configures a class.
type IngressClassParametersReference struct {
	// APIGroup of the object. Unset is the core group.
	APIGroup *string `json:"apiGroup,omitempty" protobuf:"1" schema:"format=dns-subdomain"`
	// Kind of the object.
	Kind string `json:"kind" protobuf:"2" schema:"required,format=path-segment"`
	// Name of the object.
	Name string `json:"name" protobuf:"3" schema:"required,format=path-segment"`
	// Scope of the object: Cluster (default) or Namespace.
	Scope *string `json:"scope" protobuf:"4" schema:"optional,default=Cluster,enum=Cluster|Namespace"`
	// Namespace of the object. Required for scope Namespace, and not allowed for Cluster.
	Namespace *string `json:"namespace,omitempty" protobuf:"5" schema:"unchecked,format=dns-label"`
}

func ingressClasses() *registry.Kind {
	return registry.Of(registry.Definition[IngressClass]{
		Group: wellknown.GroupNetworking, Version: "v1", Scope: registry.Cluster, Plural: "ingressclasses",
		Lifetime: registry.Lifetime{Introduced: "1.19"},
		Versions: []registry.VersionOf[IngressClass]{
			older.Same[IngressClass]("v1beta1", "1.18", "1.19", "1.22", wellknown.GroupNetworking+"/v1"),
		},
		Columns: []registry.Column{
			registry.TextColumn("Controller", "The controller of the class.", "spec", "controller"),
			{Name: "Parameters", Type: "string", Doc: "The object with further configuration.", Cell: func(o *meta.Object) any {
				p := meta.NewObject(o.Map("spec", "parameters"))
				kind, group := p.String("kind"), p.String("apiGroup")
				switch {
				case kind == "":
					return "<none>"
				case group != "":
					kind += "." + group
				}
				return kind + "/" + p.String("name")
			}},
			registry.AgeColumn(),
		},
		Validate:  validateClass,
		Reference: &compat.Reference{DeleteAnswersStatus: true},
	})
}

func validateClass(w *registry.Change[IngressClass]) {
	f, at, s := &w.Violations, check.At("spec"), &w.New.Spec
	if w.Old == nil {
		checkController(f, at.Field("controller"), s.Controller)
	}
	p := s.Parameters
	if p == nil || p.Scope == nil {
		return
	}
	at = at.Field("parameters").Field("namespace")
	switch scope := "`parameters.scope` is set to '" + *p.Scope + "'"; {
	case *p.Scope == "Cluster" && p.Namespace != nil:
		f.Forbidden(at, scope)
	case *p.Scope != "Namespace":
	case p.Namespace == nil:
		f.Required(at, scope)
	default:
		f.Format(at, *p.Namespace, meta.CheckDNSLabel(*p.Namespace))
	}
}

// checkController checks the form of a controller name. The schema reports an empty name.
func checkController(f *check.Violations, at *check.Path, name string) {
	domain, path, ok := strings.Cut(name, "/")
	switch {
	case name == "":
		return
	case !ok || domain == "" || path == "":
		f.Invalid(at, name, "must be a path behind a domain, such as example.com/controller")
		return
	}
	f.Format(at, domain, meta.CheckDNSSubdomain(domain))
	if strings.ContainsFunc(path, func(r rune) bool {
		return r > '~' || !strings.ContainsRune("/-._~%!$&'()*+,;=:", r) && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	}) {
		f.Invalid(at, path, "must have the characters of a path of a URL")
	}
}
