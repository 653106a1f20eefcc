// Package apiregistration holds the kind by which other servers become part of this one:
// APIService.
package apiregistration

import (
	"fmt"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// APIService says who serves a version of an API group.
type APIService struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec says which version, and who serves it.
	Spec APIServiceSpec `json:"spec,omitempty" protobuf:"2"`
	// Status tells whether it is served.
	Status APIServiceStatus `json:"status,omitempty" protobuf:"3"`
}

// APIServiceSpec says which version of a group, and who serves it.
type APIServiceSpec struct {
	// Service that leads to the other server. Without one this server serves the version itself.
	Service *ServiceReference `json:"service,omitempty" protobuf:"1"`
	// Group is the API group.
	Group string `json:"group,omitempty" protobuf:"2" schema:"format=dns-subdomain"`
	// Version of the group.
	Version string `json:"version,omitempty" protobuf:"3"`
	// InsecureSkipTLSVerify lets the other server show any certificate. Use caBundle instead.
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty" protobuf:"4"`
	// CABundle are the certificates that vouch for that of the other server, in PEM; by default those of the system.
	CABundle []byte `json:"caBundle,omitempty" protobuf:"5" schema:"listType=atomic"`
	// GroupPriorityMinimum is the least place that the group shall have among groups, the higher the earlier: 1 to 20000.
	GroupPriorityMinimum int32 `json:"groupPriorityMinimum" protobuf:"7" schema:"range=1|20000,reason.range=must be positive and less than 20000"`
	// VersionPriority is the place among the versions of the group, the higher the earlier: 1 to 1000.
	VersionPriority int32 `json:"versionPriority" protobuf:"8" schema:"range=1|1000,reason.range=must be positive and less than 1000"`
}

// ServiceReference is a service with its port.
type ServiceReference struct {
	// Namespace of the service.
	Namespace string `json:"namespace,omitempty" protobuf:"1" schema:"required,optional"`
	// Name of the service.
	Name string `json:"name,omitempty" protobuf:"2" schema:"required,optional"`
	// Port of the service; 443 by default.
	Port *int32 `json:"port,omitempty" protobuf:"3" schema:"default=443,range=1|65535,reason.range=port is not valid: must be between 1 and 65535\\, inclusive"`
}

// APIServiceStatus tells whether a version is served.
type APIServiceStatus struct {
	// Conditions of the service. Available is True while it is served.
	Conditions []APIServiceCondition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// APIServiceCondition is one aspect of a service's state.
type APIServiceCondition struct {
	// Type names the aspect.
	Type string `json:"type" protobuf:"1"`
	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2" schema:"enum=True|False|Unknown"`
	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`
	// Reason is a word for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`
	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"5"`
}

// available is the type of the condition that tells whether a version is served.
const available = "Available"

// Kinds returns the kinds of the aggregation group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[APIService]{
		Group: names.GroupAggregation, Version: "v1", Scope: registry.Cluster, Status: true, Categories: []string{"api-extensions"},
		Versions: []registry.VersionOf[APIService]{
			older.Same[APIService]("v1beta1", "1.7", "1.19", "1.22", names.GroupAggregation+"/v1"),
		},
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Columns: []registry.Column{
			{Name: "Service", Type: "string", Doc: "The service that leads to who serves the version.", Cell: func(o *meta.Object) any {
				if o.Map("spec", "service") == nil {
					return "Local"
				}
				return o.String("spec", "service", "namespace") + "/" + o.String("spec", "service", "name")
			}},
			{Name: "Available", Type: "string", Doc: "Whether the version is served.", Cell: availability},
			registry.Age(),
		},
		Behavior:  registry.Behavior{Prepare: prepare},
		Validate:  validate,
		Reference: &compat.Reference{AnyNamespace: true, NoGeneration: true, PutWithVersion: true, FreeFinalizers: true, DeleteAnswersStatus: true},
	})}
}

func availability(o *meta.Object) any {
	for _, c := range o.Objects("status", "conditions") {
		switch {
		case c.String("type") != available:
		case c.String("status") == "True" || c.String("reason") == "":
			return c.String("status")
		default:
			return fmt.Sprintf("%s (%s)", c.String("status"), c.String("reason"))
		}
	}
	return "Unknown"
}

// prepare says of a new version that this server serves that it does. It works on the tree:
// servers write one of them for each version at their start.
func prepare(w *registry.Change[meta.Object]) {
	if w.Old == nil && w.New.Map("spec", "service") == nil {
		w.New.SetCondition(available, "True", "Local", "Local APIServices are always available")
	}
}

func validate(w *registry.Change[APIService]) {
	s, at := &w.New.Spec, check.At("spec")
	if want := s.Version + "." + s.Group; w.New.Name != want {
		w.Invalid(check.At("metadata", "name"), w.New.Name, fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want))
	}
	if s.Group == "" && s.Version != "v1" {
		w.Required(at.Field("group"), "only v1 may have an empty group and it better be legacy kube")
	}
	w.Format(at.Field("version"), s.Version, meta.CheckDNS1035Label(s.Version))
	local := s.Service == nil
	if local && len(s.CABundle) > 0 {
		w.Invalid(at.Field("caBundle"), fmt.Sprintf("%d bytes", len(s.CABundle)), "local APIServices may not have a caBundle")
	}
	switch at := at.Field("insecureSkipTLSVerify"); {
	case local && s.InsecureSkipTLSVerify:
		w.Invalid(at, true, "local APIServices may not have insecureSkipTLSVerify")
	case s.InsecureSkipTLSVerify && len(s.CABundle) > 0:
		w.Invalid(at, true, "may not be true if caBundle is present")
	}
}
