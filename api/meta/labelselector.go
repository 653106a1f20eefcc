package meta

// LabelSelector is a label selector as objects hold it: all labels and expressions
// must match. An empty one matches everything.
type LabelSelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// MatchLabels are labels with the values that they must have.
	MatchLabels map[string]string `json:"matchLabels,omitempty" protobuf:"bytes,1,rep,name=matchLabels"`

	// MatchExpressions are further conditions.
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty" protobuf:"bytes,2,rep,name=matchExpressions" schema:"listType=atomic"`
}

// LabelSelectorRequirement is a condition on one label.
type LabelSelectorRequirement struct {
	// Key is the label.
	Key string `json:"key" protobuf:"bytes,1,opt,name=key" schema:"required"`

	// Operator is In, NotIn, Exists or DoesNotExist.
	Operator string `json:"operator" protobuf:"bytes,2,opt,name=operator" schema:"required"`

	// Values belong to In and NotIn.
	Values []string `json:"values,omitempty" protobuf:"bytes,3,rep,name=values" schema:"listType=atomic"`
}
