// Package apiextensions defines the kind CustomResourceDefinition.
//
// This package checks definitions, with package schema for their schemas. The server accepts their
// names, serves the custom resources and deletes them with the definition.
package apiextensions

import (
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/hooks"
)

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind { return []*registry.Kind{definitions()} }

// CustomResourceDefinition defines a resource that the server serves.
type CustomResourceDefinition struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata. The name must be the plural name and the group, such as
	// widgets.example.com.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the definition.
	Spec CustomResourceDefinitionSpec `json:"spec" protobuf:"2" schema:"ratcheting"`

	// Status is the state of the definition at the server.
	Status CustomResourceDefinitionStatus `json:"status,omitempty" protobuf:"3"`
}

// CustomResourceDefinitionSpec describes a custom resource.
type CustomResourceDefinitionSpec struct {
	// Group is the API group. It must contain a dot, and is immutable once the definition is
	// established.
	Group string `json:"group" protobuf:"1" schema:"required,format=dns-subdomain"`

	// Names of the resource and its kind.
	Names CustomResourceDefinitionNames `json:"names" protobuf:"3"`

	// Scope is Namespaced or Cluster. It is immutable once the definition is established.
	Scope string `json:"scope" protobuf:"4" schema:"required,enum=Cluster|Namespaced"`

	// Versions of the resource. Exactly one of them is the storage version.
	Versions []CustomResourceDefinitionVersion `json:"versions" protobuf:"7" schema:"listType=atomic"`

	// Conversion describes the conversion between versions; by default only apiVersion changes.
	Conversion *CustomResourceConversion `json:"conversion,omitempty" protobuf:"9"`

	// PreserveUnknownFields must not be set to true in v1; use the schema extension
	// preserve-unknown-fields.
	PreserveUnknownFields bool `json:"preserveUnknownFields,omitempty" protobuf:"10"`
}

// CustomResourceDefinitionNames are the names of a resource and its kind.
type CustomResourceDefinitionNames struct {
	// Plural is the name in request paths, in lower case. It is immutable once the definition is
	// established.
	Plural string `json:"plural" protobuf:"1"`

	// Singular is an alias of the plural name in kubectl; default the kind in lower case.
	Singular string `json:"singular,omitempty" protobuf:"2"`

	// ShortNames are further aliases in kubectl.
	ShortNames []string `json:"shortNames,omitempty" protobuf:"3" schema:"listType=atomic,items.format=dns-1035-label"`

	// Kind of the objects, in CamelCase. It is immutable once the definition is established.
	Kind string `json:"kind" protobuf:"4"`

	// ListKind is the kind of lists; default the kind followed by List.
	ListKind string `json:"listKind,omitempty" protobuf:"5"`

	// Categories are groups of resources, such as all, that kubectl can list together.
	Categories []string `json:"categories,omitempty" protobuf:"6" schema:"listType=atomic,items.format=dns-1035-label"`
}

// CustomResourceDefinitionVersion describes a version of a custom resource.
type CustomResourceDefinitionVersion struct {
	// Name of the version, such as v1 or v2beta1; unique among the versions.
	Name string `json:"name" protobuf:"1"`

	// Served decides whether the server serves the version.
	Served bool `json:"served" protobuf:"2"`

	// Storage marks the version in which objects are stored.
	Storage bool `json:"storage" protobuf:"3"`

	// Schema of the objects. Required.
	Schema *CustomResourceValidation `json:"schema,omitempty" protobuf:"4"`

	// Subresources that are served for the objects.
	Subresources *CustomResourceSubresources `json:"subresources,omitempty" protobuf:"5"`

	// AdditionalPrinterColumns are the columns of tables next to the name; at most 128, default the
	// age.
	AdditionalPrinterColumns []CustomResourceColumnDefinition `json:"additionalPrinterColumns,omitempty" protobuf:"6" schema:"listType=atomic"`

	// Deprecated makes the server send a warning with each answer in this version.
	Deprecated bool `json:"deprecated,omitempty" protobuf:"7"`

	// DeprecationWarning replaces the text of that warning: at most 256 printable characters. It
	// requires deprecated.
	DeprecationWarning *string `json:"deprecationWarning,omitempty" protobuf:"8"`

	// SelectableFields are the fields that field selectors can use in addition to name and namespace;
	// at most 8.
	SelectableFields []SelectableField `json:"selectableFields,omitempty" protobuf:"9" schema:"listType=atomic"`
}

// SelectableField is a field that field selectors can use.
type SelectableField struct {
	// JSONPath is the path of the field, such as .spec.color. The field must be a string, an integer or
	// a boolean, and must not be in the metadata.
	JSONPath string `json:"jsonPath" protobuf:"1"`
}

// CustomResourceValidation holds the schema of a version.
type CustomResourceValidation struct {
	// OpenAPIV3Schema is the schema. It must be structural.
	OpenAPIV3Schema *JSONSchemaProps `json:"openAPIV3Schema,omitempty" protobuf:"1"`
}

// CustomResourceColumnDefinition is a printer column.
type CustomResourceColumnDefinition struct {
	// Name is the heading of the column.
	Name string `json:"name" protobuf:"1"`

	// Type is integer, number, string, boolean or date.
	Type string `json:"type" protobuf:"2"`

	// Format refines the type, such as int64 or date-time.
	Format string `json:"format,omitempty" protobuf:"3"`

	// Description explains the column to people.
	Description string `json:"description,omitempty" protobuf:"4"`

	// Priority of the column: columns with a priority above 0 are shown in wide output only.
	Priority int32 `json:"priority,omitempty" protobuf:"5"`

	// JSONPath is the path of the value, beginning with a dot.
	JSONPath string `json:"jsonPath" protobuf:"6"`
}

// CustomResourceSubresources selects the subresources that are served.
type CustomResourceSubresources struct {
	// Status, if set, enables the status subresource: other writes ignore the status, and writes of the
	// status change nothing else.
	Status *CustomResourceSubresourceStatus `json:"status,omitempty" protobuf:"1"`

	// Scale, if set, enables the scale subresource.
	Scale *CustomResourceSubresourceScale `json:"scale,omitempty" protobuf:"2"`
}

// CustomResourceSubresourceStatus enables the status subresource. It has no settings.
type CustomResourceSubresourceStatus struct{}

// CustomResourceSubresourceScale locates the fields of the scale subresource.
type CustomResourceSubresourceScale struct {
	// SpecReplicasPath is the JSON path of the desired number of replicas, below .spec.
	SpecReplicasPath string `json:"specReplicasPath" protobuf:"1"`

	// StatusReplicasPath is the JSON path of the observed number of replicas, below .status.
	StatusReplicasPath string `json:"statusReplicasPath" protobuf:"2"`

	// LabelSelectorPath is the JSON path of a string with the label selector of the instances, below
	// .spec or .status.
	LabelSelectorPath *string `json:"labelSelectorPath,omitempty" protobuf:"3"`
}

// CustomResourceConversion describes the conversion between versions.
type CustomResourceConversion struct {
	// Strategy is None, which changes only apiVersion, or Webhook.
	Strategy string `json:"strategy" protobuf:"1" schema:"required,enum=None|Webhook"`

	// Webhook converts the objects. It must be set exactly for strategy Webhook.
	Webhook *WebhookConversion `json:"webhook,omitempty" protobuf:"2"`
}

// WebhookConversion configures a conversion webhook.
type WebhookConversion struct {
	// ClientConfig locates the webhook.
	ClientConfig *hooks.WebhookClientConfig `json:"clientConfig,omitempty" protobuf:"2"`

	// ConversionReviewVersions are the review versions that the webhook accepts, in order of
	// preference. The server sends the first that it supports.
	ConversionReviewVersions []string `json:"conversionReviewVersions" protobuf:"3" schema:"optional,listType=atomic"`
}

// CustomResourceDefinitionStatus is the state of a definition at the server.
type CustomResourceDefinitionStatus struct {
	// Conditions include NamesAccepted, Established and Terminating.
	Conditions []CustomResourceDefinitionCondition `json:"conditions" protobuf:"1" schema:"optional,listType=map,listMapKeys=type,repeats"`

	// AcceptedNames are the names under which the server serves the resource.
	AcceptedNames CustomResourceDefinitionNames `json:"acceptedNames" protobuf:"2" schema:"optional"`

	// StoredVersions are the versions in which objects may be stored. A version can be removed from the
	// spec only after its objects were migrated and it was removed from this list.
	StoredVersions []string `json:"storedVersions" protobuf:"3" schema:"optional,listType=atomic"`

	// ObservedGeneration is the generation that the status was computed for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"4"`
}

// CustomResourceDefinitionCondition is an aspect of the state of a definition.
type CustomResourceDefinitionCondition struct {
	// Type identifies the condition.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`

	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"5"`

	// ObservedGeneration is the generation that the condition was computed for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"6"`
}

func definitions() *registry.Kind {
	return registry.Of(registry.Definition[CustomResourceDefinition]{
		Group:      wellknown.GroupExtensions,
		Version:    "v1",
		Lifetime:   registry.Lifetime{Introduced: "1.16"},
		Versions:   []registry.VersionOf[CustomResourceDefinition]{v1beta1()},
		ShortNames: []string{"crd", "crds"},
		Categories: []string{"api-extensions"},
		Scope:      registry.Cluster,
		Status:     true,
		Columns:    columns(),
		Behavior: registry.Behavior{
			Default:     setDefaults,
			Prepare:     prepare,
			Validate:    validate,
			Warn:        warn,
			BeginDelete: terminate,
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

// setDefaults derives names from the kind, sets the conversion strategy, and records the storage
// version if status.storedVersions was cleared.
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
		addStoredVersion(obj) // a status write must not drop the only record of stored versions
	}
}

// prepare clears the status of a new definition, and records the storage version.
func prepare(w *registry.Change[meta.Object]) {
	if w.Old == nil {
		w.New.Set(map[string]any{}, "status")
	}
	addStoredVersion(w.New)
}

// addStoredVersion adds the storage version to status.storedVersions.
func addStoredVersion(obj *meta.Object) {
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

// terminate is called when the deletion begins. It adds the finalizer that keeps the definition until
// its objects are deleted. The deletion does not count as a change of the spec, so that the generation
// is taken back.
func terminate(w *registry.Change[meta.Object]) {
	obj := w.New
	obj.SetGeneration(obj.Generation() - 1)
	obj.Delete("metadata", "deletionGracePeriodSeconds")
	mine := w.Names.Wire(wellknown.DefinitionFinalizer)
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
