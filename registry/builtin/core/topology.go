package core

// TopologySelectorTerm says which nodes are meant by their labels: all of its
// expressions hold.
type TopologySelectorTerm struct {
	_ struct{} `schema:"mapType=atomic"`

	// MatchLabelExpressions are what the labels of a node must be.
	MatchLabelExpressions []TopologySelectorLabelRequirement `json:"matchLabelExpressions,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// TopologySelectorLabelRequirement asks for one of several values of a label.
type TopologySelectorLabelRequirement struct {
	// Key of the label.
	Key string `json:"key" protobuf:"1" schema:"format=qualified-name"`

	// Values of which the label has one.
	Values []string `json:"values" protobuf:"2" schema:"required,listType=atomic,items.format=label-value"`
}
