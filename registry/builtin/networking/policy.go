package networking

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/address"
)

// NetworkPolicy says which traffic some pods may get and send. What all policies of
// a pod allow together is allowed.
type NetworkPolicy struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the traffic that is allowed.
	Spec NetworkPolicySpec `json:"spec,omitempty" protobuf:"2"`
}

// NetworkPolicySpec says which traffic of which pods is allowed.
type NetworkPolicySpec struct {
	// PodSelector selects the pods; an empty one selects all of the namespace.
	PodSelector meta.Selector `json:"podSelector" protobuf:"1" schema:"optional,format=label-selector"`
	// Ingress is what may come to the pods: what one of the rules allows.
	Ingress []NetworkPolicyIngressRule `json:"ingress,omitempty" protobuf:"2" schema:"listType=atomic"`
	// Egress is what may leave the pods: what one of the rules allows.
	Egress []NetworkPolicyEgressRule `json:"egress,omitempty" protobuf:"3" schema:"listType=atomic"`
	// PolicyTypes are the directions that the policy limits. The default is Ingress,
	// and Egress if there are rules for it.
	PolicyTypes []string `json:"policyTypes,omitempty" protobuf:"4" schema:"unchecked,listType=atomic,items.enum=Ingress|Egress"`
}

// NetworkPolicyIngressRule allows traffic to pods: what is for one of the ports and
// from one of the peers.
type NetworkPolicyIngressRule struct {
	// Ports of the pods; none is all.
	Ports []NetworkPolicyPort `json:"ports,omitempty" protobuf:"1" schema:"listType=atomic"`
	// From are those who may send; none is all.
	From []NetworkPolicyPeer `json:"from,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// NetworkPolicyEgressRule allows traffic from pods: what is for one of the ports and
// to one of the peers.
type NetworkPolicyEgressRule struct {
	// Ports of the peers; none is all.
	Ports []NetworkPolicyPort `json:"ports,omitempty" protobuf:"1" schema:"listType=atomic"`
	// To are those who may be reached; none is all.
	To []NetworkPolicyPeer `json:"to,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// NetworkPolicyPort is a port or a range of ports.
type NetworkPolicyPort struct {
	// Protocol is TCP (the default), UDP or SCTP.
	Protocol *string `json:"protocol,omitempty" protobuf:"1" schema:"default=TCP,enum=TCP|UDP|SCTP"`
	// Port is a number or the name of a port of the pods; unset: all ports.
	Port *meta.IntOrString `json:"port,omitempty" protobuf:"2" schema:"format=port"`
	// EndPort is the last of a range of ports that begins with the number in port.
	EndPort *int32 `json:"endPort,omitempty" protobuf:"3"`
}

// IPBlock is a network without some parts of it.
type IPBlock struct {
	// CIDR is the network, such as 192.168.1.0/24.
	CIDR string `json:"cidr" protobuf:"1" schema:"required"`
	// Except are networks in it that are left out.
	Except []string `json:"except,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// NetworkPolicyPeer is the other end of traffic: pods, or a network.
type NetworkPolicyPeer struct {
	// PodSelector selects pods, of this namespace or of those that namespaceSelector
	// selects.
	PodSelector *meta.Selector `json:"podSelector,omitempty" protobuf:"1" schema:"format=label-selector"`
	// NamespaceSelector selects namespaces, of which all pods are meant unless
	// podSelector is set as well.
	NamespaceSelector *meta.Selector `json:"namespaceSelector,omitempty" protobuf:"2" schema:"format=label-selector"`
	// IPBlock is a network. It stands alone.
	IPBlock *IPBlock `json:"ipBlock,omitempty" protobuf:"3"`
}

func networkPolicies() *registry.Kind {
	return registry.Of(registry.Definition[NetworkPolicy]{
		Group: names.GroupNetworking, Version: "v1", Plural: "networkpolicies", ShortNames: []string{"netpol"},
		Versions: []registry.VersionOf[NetworkPolicy]{formerPolicy()},
		Columns: []registry.Column{
			{Name: "Pod-Selector", Type: "string", Doc: "Which pods it is about.", Cell: func(o *meta.Object) any {
				s, err := meta.LabelSelectorFromObject(o.Map("spec", "podSelector"))
				if err != nil {
					return "<error>"
				}
				return orNone(s.String())
			}},
			registry.Age(),
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
	f, at, s := &w.Faults, check.At("spec"), &w.New.Spec
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

// checkPorts checks the ends of ranges of ports.
func checkPorts(f *check.Faults, at *check.Path, ports []NetworkPolicyPort) {
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

func checkPeers(f *check.Faults, at *check.Path, peers []NetworkPolicyPeer) {
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

// validate checks that a network has the form of one, and that what is left out is
// a part of it.
func (b *IPBlock) validate(f *check.Faults, at *check.Path) {
	if b.CIDR == "" {
		return
	}
	whole, ok := address.Network(f, at.Field("cidr"), b.CIDR)
	for i, text := range b.Except {
		at := at.Field("except").Index(i)
		part, good := address.Network(f, at, text)
		if ok && good && (!whole.Contains(part.Addr()) || part.Bits() <= whole.Bits()) {
			f.Invalid(at, text, "must be a strict subset of `cidr`")
		}
	}
}
