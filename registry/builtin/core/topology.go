package core

// TopologySelectorTerm selects nodes by label. All requirements must hold.
type TopologySelectorTerm struct {
	_ struct{} `schema:"mapType=atomic"`

	// MatchLabelExpressions are the requirements.
	MatchLabelExpressions []TopologySelectorLabelRequirement `json:"matchLabelExpressions,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// TopologySelectorLabelRequirement requires a label to have any of the values.
type TopologySelectorLabelRequirement struct {
	// Key of the label.
	Key string `json:"key" protobuf:"1" schema:"format=qualified-name"`

	// Values of the label; at least one.
	Values []string `json:"values" protobuf:"2" schema:"required,listType=atomic,items.format=label-value"`
}
