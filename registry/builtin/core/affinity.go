package core

import "orch.io/controlplane/api/meta"

// Affinity restricts the placement of a pod.
type Affinity struct {
	// NodeAffinity selects nodes.
	NodeAffinity *NodeAffinity `json:"nodeAffinity,omitempty" protobuf:"1"`

	// PodAffinity places the pod near other pods.
	PodAffinity *PodAffinity `json:"podAffinity,omitempty" protobuf:"2"`

	// PodAntiAffinity places the pod away from other pods.
	PodAntiAffinity *PodAntiAffinity `json:"podAntiAffinity,omitempty" protobuf:"3"`
}

// NodeAffinity selects nodes for a pod.
type NodeAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution must match the node when the pod is scheduled.
	// Later changes of the node have no effect.
	RequiredDuringSchedulingIgnoredDuringExecution *NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"1"`

	// PreferredDuringSchedulingIgnoredDuringExecution are weighted preferences. The scheduler prefers
	// the node with the largest sum of the weights of matching preferences.
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredSchedulingTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// PreferredSchedulingTerm is a weighted preference for nodes.
type PreferredSchedulingTerm struct {
	// Weight of the preference: 1 to 100.
	Weight int32 `json:"weight" protobuf:"1" schema:"range=1|100,reason.range=must be in the range 1-100"`

	// Preference selects the preferred nodes.
	Preference NodeSelectorTerm `json:"preference" protobuf:"2"`
}

// NodeSelector selects nodes. Any of its terms suffices.
type NodeSelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// NodeSelectorTerms each select nodes; at least one term is required.
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms" protobuf:"1" schema:"required,reason.required=must have at least one node selector term,listType=atomic"`
}

// NodeSelectorTerm selects nodes. All requirements must hold. An empty term selects no node.
type NodeSelectorTerm struct {
	_ struct{} `schema:"mapType=atomic"`

	// MatchExpressions are requirements on labels.
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions,omitempty" protobuf:"1" schema:"listType=atomic"`

	// MatchFields are requirements on fields. The only supported field is metadata.name.
	MatchFields []NodeSelectorRequirement `json:"matchFields,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// NodeSelectorRequirement is a requirement on a label or a field.
type NodeSelectorRequirement struct {
	// Key is the label or the field.
	Key string `json:"key" protobuf:"1"`

	// Operator is In, NotIn, Exists, DoesNotExist, Gt or Lt.
	Operator string `json:"operator" protobuf:"2"`

	// Values for the operator: a list for In and NotIn, a single integer for Gt and Lt, none for the
	// others.
	Values []string `json:"values,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// PodAffinity places a pod near other pods.
type PodAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution must all hold when the pod is scheduled. Later
	// changes have no effect.
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"1" schema:"listType=atomic"`

	// PreferredDuringSchedulingIgnoredDuringExecution are weighted preferences.
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// PodAntiAffinity places a pod away from other pods.
type PodAntiAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution must all hold when the pod is scheduled. Later
	// changes have no effect.
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"1" schema:"listType=atomic"`

	// PreferredDuringSchedulingIgnoredDuringExecution are weighted preferences.
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// WeightedPodAffinityTerm is a weighted preference.
type WeightedPodAffinityTerm struct {
	// Weight of the preference: 1 to 100.
	Weight int32 `json:"weight" protobuf:"1" schema:"range=1|100,reason.range=must be in the range 1-100"`

	// PodAffinityTerm selects the other pods.
	PodAffinityTerm PodAffinityTerm `json:"podAffinityTerm" protobuf:"2"`
}

// PodAffinityTerm selects pods and defines which nodes count as near.
type PodAffinityTerm struct {
	// LabelSelector selects the pods.
	LabelSelector *meta.LabelSelector `json:"labelSelector,omitempty" protobuf:"1" schema:"format=label-selector"`

	// Namespaces of the pods. If neither namespaces nor namespaceSelector is set, the namespace of this
	// pod.
	Namespaces []string `json:"namespaces,omitempty" protobuf:"2" schema:"listType=atomic"`

	// TopologyKey is the node label; nodes with equal values are near each other. Required.
	TopologyKey string `json:"topologyKey" protobuf:"3"`

	// NamespaceSelector selects further namespaces by label. Empty selects all namespaces.
	NamespaceSelector *meta.LabelSelector `json:"namespaceSelector,omitempty" protobuf:"4" schema:"format=label-selector"`

	// MatchLabelKeys are labels for which the pods must have the same value as this pod. They require
	// labelSelector.
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty" protobuf:"5" schema:"listType=atomic,items.format=qualified-name"`

	// MismatchLabelKeys are labels for which the pods must have another value than this pod. They
	// require labelSelector.
	MismatchLabelKeys []string `json:"mismatchLabelKeys,omitempty" protobuf:"6" schema:"listType=atomic,items.format=qualified-name"`
}
