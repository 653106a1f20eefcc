// Package apiextensions holds the kind that defines kinds at run time.
//
// A server that has the kind serves what its objects define: definitions are
// checked here, their schemas by package schema; accepting their names, serving
// them and removing their objects is the server's part.
package apiextensions

import (
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/hooks"
)

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind { return []*registry.Kind{definitions()} }

// CustomResourceDefinition defines a resource type that the server serves from
// then on.
type CustomResourceDefinition struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata. The name is that of the resource type and its
	// group: widgets.example.com.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the definition.
	Spec CustomResourceDefinitionSpec `json:"spec" protobuf:"2" schema:"ratcheting"`

	// Status tells how far the server is with serving it.
	Status CustomResourceDefinitionStatus `json:"status,omitempty" protobuf:"3"`
}

// CustomResourceDefinitionSpec is what a definition says.
type CustomResourceDefinitionSpec struct {
	// Group is the API group, with a dot in it. It cannot be changed.
	Group string `json:"group" protobuf:"1" schema:"required,format=dns-subdomain"`

	// Names are the names of the resource type and its kind.
	Names CustomResourceDefinitionNames `json:"names" protobuf:"3"`

	// Scope is Namespaced or Cluster. It cannot be changed.
	Scope string `json:"scope" protobuf:"4" schema:"required,enum=Cluster|Namespaced"`

	// Versions are the versions of the type; exactly one of them is stored.
	Versions []CustomResourceDefinitionVersion `json:"versions" protobuf:"7" schema:"listType=atomic"`

	// Conversion says how versions become each other.
	Conversion *CustomResourceConversion `json:"conversion,omitempty" protobuf:"9"`

	// PreserveUnknownFields may not be true; schemas have an extension for it.
	PreserveUnknownFields bool `json:"preserveUnknownFields,omitempty" protobuf:"10"`
}

// CustomResourceDefinitionNames are the names of a resource type and its kind.
type CustomResourceDefinitionNames struct {
	// Plural is the name in paths, in lower case.
	Plural string `json:"plural" protobuf:"1"`

	// Singular is the name that people may use; by default the kind in lower case.
	Singular string `json:"singular,omitempty" protobuf:"2"`

	// ShortNames are further names for people.
	ShortNames []string `json:"shortNames,omitempty" protobuf:"3" schema:"listType=atomic,items.format=dns-1035-label"`

	// Kind is the kind of the objects.
	Kind string `json:"kind" protobuf:"4"`

	// ListKind is the kind of lists; by default the kind and List.
	ListKind string `json:"listKind,omitempty" protobuf:"5"`

	// Categories are groups of resource types that people list together.
	Categories []string `json:"categories,omitempty" protobuf:"6" schema:"listType=atomic,items.format=dns-1035-label"`
}

// CustomResourceDefinitionVersion is one version of a resource type.
type CustomResourceDefinitionVersion struct {
	// Name is the version, such as v1 or v2beta1.
	Name string `json:"name" protobuf:"1"`

	// Served tells whether requests may use the version.
	Served bool `json:"served" protobuf:"2"`

	// Storage tells whether objects are stored in this version.
	Storage bool `json:"storage" protobuf:"3"`

	// Schema describes the objects.
	Schema *CustomResourceValidation `json:"schema,omitempty" protobuf:"4"`

	// Subresources are the sub-resources that objects have.
	Subresources *CustomResourceSubresources `json:"subresources,omitempty" protobuf:"5"`

	// AdditionalPrinterColumns are the columns of tables beside the name; by
	// default the age.
	AdditionalPrinterColumns []CustomResourceColumnDefinition `json:"additionalPrinterColumns,omitempty" protobuf:"6" schema:"listType=atomic"`

	// Deprecated warns the callers of this version.
	Deprecated bool `json:"deprecated,omitempty" protobuf:"7"`

	// DeprecationWarning is the text of that warning, if the usual one will not do.
	DeprecationWarning *string `json:"deprecationWarning,omitempty" protobuf:"8"`

	// SelectableFields are the fields that field selectors may name.
	SelectableFields []SelectableField `json:"selectableFields,omitempty" protobuf:"9" schema:"listType=atomic"`
}

// SelectableField is a field that field selectors may name.
type SelectableField struct {
	// JSONPath leads to a string, integer or boolean: .spec.color.
	JSONPath string `json:"jsonPath" protobuf:"1"`
}

// CustomResourceValidation holds the schema of a version.
type CustomResourceValidation struct {
	// OpenAPIV3Schema is the schema, which must be structural.
	OpenAPIV3Schema *JSONSchemaProps `json:"openAPIV3Schema,omitempty" protobuf:"1"`
}

// CustomResourceColumnDefinition is a column of tables.
type CustomResourceColumnDefinition struct {
	// Name is the head of the column.
	Name string `json:"name" protobuf:"1"`

	// Type is integer, number, string, boolean or date.
	Type string `json:"type" protobuf:"2"`

	// Format says more about the type.
	Format string `json:"format,omitempty" protobuf:"3"`

	// Description documents the column.
	Description string `json:"description,omitempty" protobuf:"4"`

	// Priority is 0 for columns that always show.
	Priority int32 `json:"priority,omitempty" protobuf:"5"`

	// JSONPath leads to the value.
	JSONPath string `json:"jsonPath" protobuf:"6"`
}

// CustomResourceSubresources are the sub-resources of objects.
type CustomResourceSubresources struct {
	// Status, if there, has the status written apart from the rest.
	Status *CustomResourceSubresourceStatus `json:"status,omitempty" protobuf:"1"`

	// Scale, if there, lets the size be read and written in a common form.
	Scale *CustomResourceSubresourceScale `json:"scale,omitempty" protobuf:"2"`
}

// CustomResourceSubresourceStatus says no more than that it is there.
type CustomResourceSubresourceStatus struct{}

// CustomResourceSubresourceScale says where the size is.
type CustomResourceSubresourceScale struct {
	// SpecReplicasPath leads to the wanted size, under .spec.
	SpecReplicasPath string `json:"specReplicasPath" protobuf:"1"`

	// StatusReplicasPath leads to the actual size, under .status.
	StatusReplicasPath string `json:"statusReplicasPath" protobuf:"2"`

	// LabelSelectorPath leads to the selector of the instances as text.
	LabelSelectorPath *string `json:"labelSelectorPath,omitempty" protobuf:"3"`
}

// CustomResourceConversion says how versions become each other.
type CustomResourceConversion struct {
	// Strategy is None, only apiVersion changes, or Webhook, which is asked.
	Strategy string `json:"strategy" protobuf:"1" schema:"required,enum=None|Webhook"`

	// Webhook converts objects, with the strategy Webhook.
	Webhook *WebhookConversion `json:"webhook,omitempty" protobuf:"2"`
}

// WebhookConversion says who converts objects, and how that one is asked.
type WebhookConversion struct {
	// ClientConfig says where the webhook is.
	ClientConfig *hooks.WebhookClientConfig `json:"clientConfig,omitempty" protobuf:"2"`

	// ConversionReviewVersions are the versions of the review that the webhook understands;
	// the first one that the server knows is sent.
	ConversionReviewVersions []string `json:"conversionReviewVersions" protobuf:"3" schema:"optional,listType=atomic"`
}

// CustomResourceDefinitionStatus tells how far the server is.
type CustomResourceDefinitionStatus struct {
	// Conditions are NamesAccepted, Established and Terminating.
	Conditions []CustomResourceDefinitionCondition `json:"conditions" protobuf:"1" schema:"optional,listType=map,listMapKeys=type,repeats"`

	// AcceptedNames are the names that are served.
	AcceptedNames CustomResourceDefinitionNames `json:"acceptedNames" protobuf:"2" schema:"optional"`

	// StoredVersions are the versions in which objects may be stored.
	StoredVersions []string `json:"storedVersions" protobuf:"3" schema:"optional,listType=atomic"`

	// ObservedGeneration is the generation that the status tells about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"4"`
}

// CustomResourceDefinitionCondition is one aspect of how far the server is.
type CustomResourceDefinitionCondition struct {
	// Type names the aspect.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`

	// Reason is a word for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"5"`

	// ObservedGeneration is the generation that the condition tells about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"6"`
}

func definitions() *registry.Kind {
	return registry.Of(registry.Definition[CustomResourceDefinition]{
		Group:      names.GroupExtensions,
		Version:    "v1",
		Lifetime:   registry.Lifetime{Introduced: "1.16"},
		Versions:   []registry.VersionOf[CustomResourceDefinition]{v1beta1()},
		ShortNames: []string{"crd", "crds"},
		Categories: []string{"api-extensions"},
		Scope:      registry.Cluster,
		Status:     true,
		Columns:    columns(),
		Behavior: registry.Behavior{
			Default:   setDefaults,
			Prepare:   prepare,
			Validate:  validate,
			Warn:      warn,
			Terminate: terminate,
		},
		Reference: &compat.Reference{
			DiscoveredAs:   "v1beta1",
			AnyNamespace:   true,
			PutWithVersion: true,
			StatusMetadata: compat.CallersMetadata(),
			FreeFinalizers: true,
		},
	})
}

// setDefaults derives the names that the kind gives, and the conversion.
func setDefaults(w *registry.Change[meta.Object]) {
	obj := w.New
	if kind := obj.String("spec", "names", "kind"); kind != "" {
		if obj.String("spec", "names", "singular") == "" {
			obj.Set(strings.ToLower(kind), "spec", "names", "singular")
		}
		if obj.String("spec", "names", "listKind") == "" {
			obj.Set(kind+"List", "spec", "names", "listKind")
		}
	}
	if obj.Map("spec", "conversion") == nil {
		obj.Set(map[string]any{"strategy": "None"}, "spec", "conversion")
	}
	if len(obj.List("status", "storedVersions")) == 0 {
		noteStored(obj) // nobody can make it forget that objects may be stored
	}
}

// prepare begins the status of a new definition, and notes every version that
// objects may be stored in from now on.
func prepare(w *registry.Change[meta.Object]) {
	if w.Old == nil {
		w.New.Set(map[string]any{}, "status")
	}
	noteStored(w.New)
}

// noteStored adds the storage version to those that objects may be stored in.
func noteStored(obj *meta.Object) {
	stored := obj.List("status", "storedVersions")
	for _, v := range obj.List("spec", "versions") {
		m, _ := v.(map[string]any)
		if name, _ := m["name"].(string); m["storage"] == true {
			if !slices.Contains(stored, any(name)) {
				stored = append(slices.Clone(stored), name)
			}
			break
		}
	}
	obj.Set(stored, "status", "storedVersions")
}

// terminate holds a definition that is being deleted until its objects are gone.
// That is no change of its spec.
func terminate(w *registry.Change[meta.Object]) {
	obj := w.New
	obj.SetGeneration(obj.Generation() - 1)
	obj.Delete("metadata", "deletionGracePeriodSeconds")
	mine := w.Names.Wire(names.DefinitionFinalizer)
	if held := obj.Finalizers(); !slices.Contains(held, mine) {
		obj.SetFinalizers(append(held, mine))
	}
	conditions := slices.DeleteFunc(slices.Clone(obj.List("status", "conditions")), func(v any) bool {
		m, _ := v.(map[string]any)
		return m["type"] == "Terminating"
	})
	obj.Set(append(conditions, map[string]any{
		"type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
		"message": "the objects of this kind will be deleted", "lastTransitionTime": meta.FormatTime(time.Now()),
	}), "status", "conditions")
}
