package operator

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the operator's kinds.
var GroupVersion = schema.GroupVersion{Group: "sea.example.com", Version: "v1"}

// AddToScheme registers the operator's kinds.
func AddToScheme(s *runtime.Scheme) {
	s.AddKnownTypes(GroupVersion, &Fleet{}, &FleetList{})
	metav1.AddToGroupVersion(s, GroupVersion)
}

// Fleet requests ships. The same type defines the schema of the kind for the server, and decodes its
// objects in the client.
type Fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FleetSpec   `json:"spec"`
	Status            FleetStatus `json:"status,omitempty"`
}

// FleetSpec is the desired state.
type FleetSpec struct {
	Ships int32  `json:"ships" schema:"min=0,max=100"`
	Flag  string `json:"flag,omitempty" schema:"default=white,enum=white|black"`
}

// FleetStatus is the observed state.
type FleetStatus struct {
	Ships      int32              `json:"ships,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty" schema:"listType=map,listMapKeys=type"`
}

// FleetList is a list of fleets.
type FleetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Fleet `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (f *Fleet) DeepCopyObject() runtime.Object {
	out := *f
	f.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = append([]metav1.Condition(nil), f.Status.Conditions...)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *FleetList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]Fleet, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Fleet)
	}
	return &out
}
