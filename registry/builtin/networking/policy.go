package networking

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/address"
)

// NetworkPolicy allows traffic to and from pods. Policies are additive: traffic is allowed if any
// policy that selects the pod allows it. Pods that no policy selects are not restricted.
type NetworkPolicy struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the allowed traffic.
	Spec NetworkPolicySpec `json:"spec,omitempty" protobuf:"2"`
}

// NetworkPolicySpec is the traffic that is allowed for the selected pods.
type NetworkPolicySpec struct {
	// PodSelector selects the pods. An empty selector selects all pods of the namespace.
	PodSelector meta.LabelSelector `json:"podSelector" protobuf:"1" schema:"optional,format=label-selector"`
	// Ingress rules allow incoming traffic; any of them suffices.
	Ingress []NetworkPolicyIngressRule `json:"ingress,omitempty" protobuf:"2" schema:"listType=atomic"`
	// Egress rules allow outgoing traffic; any of them suffices.
	Egress []NetworkPolicyEgressRule `json:"egress,omitempty" protobuf:"3" schema:"listType=atomic"`
	// PolicyTypes are the restricted directions: Ingress, Egress or both. Default Ingress, and Egress
	// if there are egress rules.
	PolicyTypes []string `json:"policyTypes,omitempty" protobuf:"4" schema:"unchecked,listType=atomic,items.enum=Ingress|Egress"`
}

// NetworkPolicyIngressRule allows incoming traffic that matches the ports and the peers.
type NetworkPolicyIngressRule struct {
	// Ports of the pods; any of them suffices. Empty matches all ports.
	Ports []NetworkPolicyPort `json:"ports,omitempty" protobuf:"1" schema:"listType=atomic"`
	// From lists the sources; any of them suffices. Empty matches all sources.
	From []NetworkPolicyPeer `json:"from,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// NetworkPolicyEgressRule allows outgoing traffic that matches the ports and the peers.
type NetworkPolicyEgressRule struct {
	// Ports of the destinations; any of them suffices. Empty matches all ports.
	Ports []NetworkPolicyPort `json:"ports,omitempty" protobuf:"1" schema:"listType=atomic"`
	// To lists the destinations; any of them suffices. Empty matches all destinations.
	To []NetworkPolicyPeer `json:"to,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// NetworkPolicyPort matches a port or a range of ports.
type NetworkPolicyPort struct {
	// Protocol is TCP (the default), UDP or SCTP.
	Protocol *string `json:"protocol,omitempty" protobuf:"1" schema:"default=TCP,enum=TCP|UDP|SCTP"`
	// Port is a number or the name of a container port. Unset matches all ports.
	Port *meta.IntOrString `json:"port,omitempty" protobuf:"2" schema:"format=port"`
	// EndPort is the last port of a range that begins at port, which must then be a number.
	EndPort *int32 `json:"endPort,omitempty" protobuf:"3"`
}

// IPBlock is a network with exceptions.
type IPBlock struct {
	// CIDR is the network, such as 192.168.1.0/24.
	CIDR string `json:"cidr" protobuf:"1" schema:"required"`
	// Except lists networks within cidr that are excluded.
	Except []string `json:"except,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// NetworkPolicyPeer matches pods or a network. At least one field must be set.
type NetworkPolicyPeer struct {
	// PodSelector selects pods, in the namespace of the policy or, with namespaceSelector, in the
	// selected namespaces.
	PodSelector *meta.LabelSelector `json:"podSelector,omitempty" protobuf:"1" schema:"format=label-selector"`
	// NamespaceSelector selects namespaces. Without podSelector it matches all of their pods.
	NamespaceSelector *meta.LabelSelector `json:"namespaceSelector,omitempty" protobuf:"2" schema:"format=label-selector"`
	// IPBlock matches a network. It excludes the other fields.
	IPBlock *IPBlock `json:"ipBlock,omitempty" protobuf:"3"`
}

func networkPolicies() *registry.Kind {
	return registry.Of(registry.Definition[NetworkPolicy]{
		Group: wellknown.GroupNetworking, Version: "v1", Plural: "networkpolicies", ShortNames: []string{"netpol"},
		Versions: []registry.VersionOf[NetworkPolicy]{olderPolicy()},
		Columns: []registry.Column{
			{Name: "Pod-Selector", Type: "string", Doc: "The selector of the pods.", Cell: func(o *meta.Object) any {
				s, err := meta.LabelSelectorAsSelector(o.Map("spec", "podSelector"))
				if err != nil {
					return "<error>"
				}
				return orNone(s.String())
			}},
			registry.AgeColumn(),
		},
		Default: func(w *registry.Change[NetworkPolicy]) {
			if s := &w.New.Spec; len(s.PolicyTypes) == 0 {
				s.PolicyTypes = []string{"Ingress"}
				if len(s.Egress) > 0 {
					s.PolicyTypes = append(s.PolicyTypes, "Egress")
				}
			}
		},
		Validate:  validatePolicy,
		Reference: &compat.Reference{DeleteAnswersStatus: true},
	})
}

func validatePolicy(w *registry.Change[NetworkPolicy]) {
	f, at, s := &w.Violations, check.At("spec"), &w.New.Spec
	for i, r := range s.Ingress {
		at := at.Field("ingress").Index(i)
		checkPorts(f, at.Field("ports"), r.Ports)
		checkPeers(f, at.Field("from"), r.From)
	}
	for i, r := range s.Egress {
		at := at.Field("egress").Index(i)
		checkPorts(f, at.Field("ports"), r.Ports)
		checkPeers(f, at.Field("to"), r.To)
	}
	at = at.Field("policyTypes")
	if len(s.PolicyTypes) > 2 {
		f.Invalid(at, s.PolicyTypes, "may not specify more than two policyTypes")
		return
	}
	for i, t := range s.PolicyTypes {
		f.OneOf(at.Index(i), t, schema.EnumOf[NetworkPolicySpec]("PolicyTypes")...)
	}
}

// checkPorts checks the end ports.
func checkPorts(f *check.Violations, at *check.Path, ports []NetworkPolicyPort) {
	for i, p := range ports {
		at := at.Index(i).Field("endPort")
		switch {
		case p.EndPort == nil:
		case p.Port == nil:
			f.Invalid(at, *p.EndPort, "may not be specified when `port` is not specified")
		case p.Port.IsString:
			f.Invalid(at, *p.EndPort, "may not be specified when `port` is non-numeric")
		default:
			if int64(*p.EndPort) < int64(p.Port.Int) {
				f.Invalid(at, p.Port.Int, "must be greater than or equal to `port`")
			}
			f.Port(at, int64(*p.EndPort))
		}
	}
}

func checkPeers(f *check.Violations, at *check.Path, peers []NetworkPolicyPeer) {
	for i, p := range peers {
		at, selects := at.Index(i), p.PodSelector != nil || p.NamespaceSelector != nil
		switch {
		case p.IPBlock != nil:
			p.IPBlock.validate(f, at.Field("ipBlock"))
			if selects {
				f.Forbidden(at, "may not specify both ipBlock and another peer")
			}
		case !selects:
			f.Required(at, "must specify a peer")
		}
	}
}

// validate checks the form of the network, and that the exceptions are proper subsets of it.
func (b *IPBlock) validate(f *check.Violations, at *check.Path) {
	if b.CIDR == "" {
		return
	}
	whole, ok := address.Network(f, at.Field("cidr"), b.CIDR)
	for i, text := range b.Except {
		at := at.Field("except").Index(i)
		part, partOK := address.Network(f, at, text)
		if ok && partOK && (!whole.Contains(part.Addr()) || part.Bits() <= whole.Bits()) {
			f.Invalid(at, text, "must be a strict subset of `cidr`")
		}
	}
}
