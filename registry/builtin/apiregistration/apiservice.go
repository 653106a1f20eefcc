// Package apiregistration defines the kind APIService, which makes other servers part of the API.
package apiregistration

import (
	"fmt"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// APIService declares the server of an API group and version.
type APIService struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec declares the group, the version and the server.
	Spec APIServiceSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is the availability of the version.
	Status APIServiceStatus `json:"status,omitempty" protobuf:"3"`
}

// APIServiceSpec declares the server of an API group and version.
type APIServiceSpec struct {
	// Service is the service of the extension API server. Unset means that this server serves the
	// version itself.
	Service *ServiceReference `json:"service,omitempty" protobuf:"1"`
	// Group is the API group. Empty is the core group, which only has version v1.
	Group string `json:"group,omitempty" protobuf:"2" schema:"format=dns-subdomain"`
	// Version of the group.
	Version string `json:"version,omitempty" protobuf:"3"`
	// InsecureSkipTLSVerify disables the verification of the extension server's certificate. It
	// excludes caBundle, which is safer. It must be false without a service.
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty" protobuf:"4"`
	// CABundle is a PEM bundle of the CA certificates that verify the extension server's certificate.
	// Unset means the system's CA certificates. It must be unset without a service.
	CABundle []byte `json:"caBundle,omitempty" protobuf:"5" schema:"listType=atomic"`
	// GroupPriorityMinimum is the minimum priority of the group: 1 to 20000. Groups with higher
	// priority come first in discovery, and clients prefer them.
	GroupPriorityMinimum int32 `json:"groupPriorityMinimum" protobuf:"7" schema:"range=1|20000,reason.range=must be positive and less than 20000"`
	// VersionPriority orders the versions of the group: 1 to 1000. Versions with higher priority come
	// first.
	VersionPriority int32 `json:"versionPriority" protobuf:"8" schema:"range=1|1000,reason.range=must be positive and less than 1000"`
}

// ServiceReference identifies a port of a service.
type ServiceReference struct {
	// Namespace of the service.
	Namespace string `json:"namespace,omitempty" protobuf:"1" schema:"required,optional"`
	// Name of the service.
	Name string `json:"name,omitempty" protobuf:"2" schema:"required,optional"`
	// Port of the service: 1 to 65535, default 443.
	Port *int32 `json:"port,omitempty" protobuf:"3" schema:"default=443,range=1|65535,reason.range=port is not valid: must be between 1 and 65535\\, inclusive"`
}

// APIServiceStatus is the availability of a version.
type APIServiceStatus struct {
	// Conditions of the APIService. Available is True while the version is served.
	Conditions []APIServiceCondition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// APIServiceCondition is an aspect of the state of an APIService.
type APIServiceCondition struct {
	// Type identifies the condition.
	Type string `json:"type" protobuf:"1"`
	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2" schema:"enum=True|False|Unknown"`
	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`
	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`
	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"5"`
}

// available is the type of the condition for availability.
const available = "Available"

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[APIService]{
		Group: wellknown.GroupAggregation, Version: "v1", Scope: registry.Cluster, Status: true, Categories: []string{"api-extensions"},
		Versions: []registry.VersionOf[APIService]{
			older.Same[APIService]("v1beta1", "1.7", "1.19", "1.22", wellknown.GroupAggregation+"/v1"),
		},
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Columns: []registry.Column{
			{Name: "Service", Type: "string", Doc: "The service of the extension server, or Local.", Cell: func(o *meta.Object) any {
				if o.Map("spec", "service") == nil {
					return "Local"
				}
				return o.String("spec", "service", "namespace") + "/" + o.String("spec", "service", "name")
			}},
			{Name: "Available", Type: "string", Doc: "Whether the version is available.", Cell: availableCell},
			registry.AgeColumn(),
		},
		Behavior:  registry.Behavior{Prepare: prepare},
		Validate:  validate,
		Reference: &compat.Reference{AnyNamespace: true, NoGeneration: true, PutWithVersion: true, FreeFinalizers: true, DeleteAnswersStatus: true},
	})}
}

// availableCell shows the status of the condition Available, with the reason unless it is True.
func availableCell(o *meta.Object) any {
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

// prepare marks a new local APIService as available. It works on the tree, because a server writes an
// APIService for each version at its start and a typed view costs more.
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
