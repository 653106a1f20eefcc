package meta

// Condition is one aspect of an object's state, in the form that newer kinds
// share.
type Condition struct {
	// Type names the aspect, in CamelCase or as domain/CamelCase.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type" schema:"required"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"bytes,2,opt,name=status" schema:"required"`

	// ObservedGeneration is the generation of the object that this tells about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,3,opt,name=observedGeneration"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime Time `json:"lastTransitionTime" protobuf:"bytes,4,opt,name=lastTransitionTime" schema:"required"`

	// Reason is a word for programs.
	Reason string `json:"reason" protobuf:"bytes,5,opt,name=reason" schema:"required"`

	// Message is a text for people.
	Message string `json:"message" protobuf:"bytes,6,opt,name=message" schema:"required"`
}
