package apiextensions

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/hooks"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CustomResourceDefinitionV1beta1 is a definition in version v1beta1. Settings that all versions share
// are set once at the top level, and schemas are optional.
type CustomResourceDefinitionV1beta1 struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata. The name must be the plural name and the group, such as
	// widgets.example.com.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the definition.
	Spec CustomResourceDefinitionSpecV1beta1 `json:"spec" protobuf:"2"`

	// Status is the state of the definition at the server.
	Status CustomResourceDefinitionStatus `json:"status,omitempty" protobuf:"3"`
}

// CustomResourceDefinitionSpecV1beta1 describes a custom resource.
type CustomResourceDefinitionSpecV1beta1 struct {
	// Group is the API group. It must contain a dot.
	Group string `json:"group" protobuf:"1" schema:"required,format=dns-subdomain"`

	// Version is the name of the first version. Without versions it is the only version.
	Version string `json:"version,omitempty" protobuf:"2"`

	// Names of the resource and its kind.
	Names CustomResourceDefinitionNames `json:"names" protobuf:"3"`

	// Scope is Namespaced (default) or Cluster.
	Scope string `json:"scope,omitempty" protobuf:"4" schema:"default=Namespaced,enum=Cluster|Namespaced"`

	// Validation is the schema of all versions. It excludes schemas of single versions.
	Validation *CustomResourceValidation `json:"validation,omitempty" protobuf:"5"`

	// Subresources of all versions. They exclude subresources of single versions.
	Subresources *CustomResourceSubresources `json:"subresources,omitempty" protobuf:"6"`

	// Versions of the resource.
	Versions []CustomResourceDefinitionVersionV1beta1 `json:"versions,omitempty" protobuf:"7" schema:"listType=atomic"`

	// AdditionalPrinterColumns of all versions. They exclude columns of single versions.
	AdditionalPrinterColumns []CustomResourceColumnDefinitionV1beta1 `json:"additionalPrinterColumns,omitempty" protobuf:"8" schema:"listType=atomic"`

	// Conversion describes the conversion between versions; by default only apiVersion changes.
	Conversion *CustomResourceConversionV1beta1 `json:"conversion,omitempty" protobuf:"9"`

	// PreserveUnknownFields keeps fields that the schema does not declare; default true.
	PreserveUnknownFields *bool `json:"preserveUnknownFields,omitempty" protobuf:"10" schema:"default=true"`

	// SelectableFields of all versions.
	SelectableFields []SelectableField `json:"selectableFields,omitempty" protobuf:"11" schema:"listType=atomic"`
}

// CustomResourceDefinitionVersionV1beta1 describes a version of a custom resource.
type CustomResourceDefinitionVersionV1beta1 struct {
	// Name of the version.
	Name string `json:"name" protobuf:"1"`

	// Served decides whether the server serves the version.
	Served bool `json:"served" protobuf:"2"`

	// Storage marks the version in which objects are stored.
	Storage bool `json:"storage" protobuf:"3"`

	// Schema of the version. It must be unset if all versions have the same schema.
	Schema *CustomResourceValidation `json:"schema,omitempty" protobuf:"4"`

	// Subresources of the version. They must be unset if all versions have the same subresources.
	Subresources *CustomResourceSubresources `json:"subresources,omitempty" protobuf:"5"`

	// AdditionalPrinterColumns of the version. They must be unset if all versions have the same
	// columns.
	AdditionalPrinterColumns []CustomResourceColumnDefinitionV1beta1 `json:"additionalPrinterColumns,omitempty" protobuf:"6" schema:"listType=atomic"`

	// Deprecated makes the server send a warning with each answer in this version.
	Deprecated bool `json:"deprecated,omitempty" protobuf:"7"`

	// DeprecationWarning replaces the text of that warning.
	DeprecationWarning *string `json:"deprecationWarning,omitempty" protobuf:"8"`

	// SelectableFields of the version.
	SelectableFields []SelectableField `json:"selectableFields,omitempty" protobuf:"9" schema:"listType=atomic"`
}

// CustomResourceColumnDefinitionV1beta1 is a printer column.
type CustomResourceColumnDefinitionV1beta1 struct {
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
	JSONPath string `json:"JSONPath" protobuf:"6"`
}

// CustomResourceConversionV1beta1 describes the conversion between versions.
type CustomResourceConversionV1beta1 struct {
	// Strategy is None, which changes only apiVersion, or Webhook.
	Strategy string `json:"strategy" protobuf:"1" schema:"required,enum=None|Webhook"`

	// WebhookClientConfig locates the webhook.
	WebhookClientConfig *hooks.WebhookClientConfig `json:"webhookClientConfig,omitempty" protobuf:"2"`

	// ConversionReviewVersions are the review versions that the webhook accepts; default v1beta1.
	ConversionReviewVersions []string `json:"conversionReviewVersions,omitempty" protobuf:"3" schema:"listType=atomic"`
}

func v1beta1() registry.VersionOf[CustomResourceDefinition] {
	return registry.Spoke[CustomResourceDefinitionV1beta1, CustomResourceDefinition]{
		Version: "v1beta1", ToHub: (*CustomResourceDefinitionV1beta1).hub, FromHub: (*CustomResourceDefinition).v1beta1,
		Lifetime:    registry.Lifetime{Introduced: "1.7", Deprecated: "1.16", Removed: "1.22"},
		Replacement: older.Use[CustomResourceDefinition](wellknown.GroupExtensions + "/v1"),
		Default: func(w *registry.Change[CustomResourceDefinitionV1beta1]) {
			s := &w.New.Spec
			switch {
			case len(s.Versions) == 0 && s.Version != "":
				s.Versions = []CustomResourceDefinitionVersionV1beta1{{Name: s.Version, Served: true, Storage: true}}
			case len(s.Versions) > 0 && s.Version == "":
				s.Version = s.Versions[0].Name
			}
			if c := s.Conversion; c != nil && c.Strategy == "Webhook" && len(c.ConversionReviewVersions) == 0 {
				c.ConversionReviewVersions = []string{"v1beta1"}
			}
		},
	}
}

// hub copies the shared settings to each version that does not set its own.
func (in *CustomResourceDefinitionV1beta1) hub(out *CustomResourceDefinition) error {
	s := &in.Spec
	if err := s.checkSharedFields(); err != nil {
		return err
	}
	out.Status = in.Status
	out.Spec = CustomResourceDefinitionSpec{Group: s.Group, Names: s.Names, Scope: s.Scope, PreserveUnknownFields: s.PreserveUnknownFields != nil && *s.PreserveUnknownFields}
	if c := s.Conversion; c != nil {
		out.Spec.Conversion = &CustomResourceConversion{Strategy: c.Strategy}
		if c.WebhookClientConfig != nil || c.ConversionReviewVersions != nil {
			out.Spec.Conversion.Webhook = &WebhookConversion{c.WebhookClientConfig, c.ConversionReviewVersions}
		}
	}
	for _, v := range s.Versions {
		hub := CustomResourceDefinitionVersion{
			Name: v.Name, Served: v.Served, Storage: v.Storage, Schema: v.Schema, Subresources: v.Subresources, AdditionalPrinterColumns: hubColumns(v.AdditionalPrinterColumns),
			Deprecated: v.Deprecated, DeprecationWarning: v.DeprecationWarning, SelectableFields: v.SelectableFields,
		}
		if hub.Schema == nil {
			hub.Schema = s.Validation
		}
		if hub.Subresources == nil {
			hub.Subresources = s.Subresources
		}
		if hub.AdditionalPrinterColumns == nil {
			hub.AdditionalPrinterColumns = hubColumns(s.AdditionalPrinterColumns)
		}
		if hub.SelectableFields == nil {
			hub.SelectableFields = s.SelectableFields
		}
		out.Spec.Versions = append(out.Spec.Versions, hub)
	}
	return nil
}

// checkSharedFields checks that shared settings are either at the top level or in the versions, and
// that versions do not all have the same. It is an error of the conversion, because the hub cannot
// represent the difference.
func (s *CustomResourceDefinitionSpecV1beta1) checkSharedFields() error {
	var f check.Violations
	if len(s.Versions) > 0 && s.Version != "" && s.Version != s.Versions[0].Name {
		f.Invalid(check.At("spec", "version"), s.Version, "must match the first version in spec.versions")
	}
	for _, part := range []struct {
		field, name string
		topLevel    bool
		of          func(CustomResourceDefinitionVersionV1beta1) (value any, given bool)
	}{
		{"validation", "schemas", s.Validation != nil, func(v CustomResourceDefinitionVersionV1beta1) (any, bool) { return v.Schema, v.Schema != nil }},
		{"subresources", "subresources", s.Subresources != nil, func(v CustomResourceDefinitionVersionV1beta1) (any, bool) {
			return v.Subresources, v.Subresources != nil
		}},
		{"additionalPrinterColumns", "additionalPrinterColumns", len(s.AdditionalPrinterColumns) > 0, func(v CustomResourceDefinitionVersionV1beta1) (any, bool) {
			return v.AdditionalPrinterColumns, len(v.AdditionalPrinterColumns) > 0
		}},
	} {
		anySet, allSame := false, len(s.Versions) > 0
		for _, v := range s.Versions {
			value, given := part.of(v)
			first, _ := part.of(s.Versions[0])
			anySet, allSame = anySet || given, allSame && given && check.SemanticEqual(value, first)
		}
		if part.topLevel && anySet {
			f.Forbidden(check.At("spec", part.field), "top-level and per-version "+part.name+" are mutually exclusive")
		}
		if allSame {
			f.Invalid(check.At("spec", "versions"), len(s.Versions), "per-version "+part.name+" may not all be set to identical values (top-level "+part.field+" should be used instead)")
		}
	}
	return f.Err()
}

// v1beta1 converts the hub to v1beta1.
func (in *CustomResourceDefinition) v1beta1(out *CustomResourceDefinitionV1beta1) error {
	s := &in.Spec
	out.Status = in.Status
	out.Spec = CustomResourceDefinitionSpecV1beta1{Group: s.Group, Names: s.Names, Scope: s.Scope, PreserveUnknownFields: &s.PreserveUnknownFields}
	if c := s.Conversion; c != nil {
		out.Spec.Conversion = &CustomResourceConversionV1beta1{Strategy: c.Strategy}
		if c.Webhook != nil {
			out.Spec.Conversion.WebhookClientConfig, out.Spec.Conversion.ConversionReviewVersions = c.Webhook.ClientConfig, c.Webhook.ConversionReviewVersions
		}
	}
	for _, v := range s.Versions {
		out.Spec.Versions = append(out.Spec.Versions, CustomResourceDefinitionVersionV1beta1{
			Name: v.Name, Served: v.Served, Storage: v.Storage, Schema: v.Schema, Subresources: v.Subresources, AdditionalPrinterColumns: columnsV1beta1(v.AdditionalPrinterColumns),
			Deprecated: v.Deprecated, DeprecationWarning: v.DeprecationWarning, SelectableFields: v.SelectableFields,
		})
	}
	out.Spec.liftShared()
	return nil
}

// liftShared moves settings that all versions share to the top level, where v1beta1 requires them.
func (s *CustomResourceDefinitionSpecV1beta1) liftShared() {
	if len(s.Versions) == 0 {
		return
	}
	first, schemas, subresources, columns, fields := s.Versions[0], true, true, true, true
	s.Version = first.Name
	for _, v := range s.Versions {
		schemas = schemas && check.SemanticEqual(v.Schema, first.Schema)
		subresources = subresources && check.SemanticEqual(v.Subresources, first.Subresources)
		columns = columns && check.SemanticEqual(v.AdditionalPrinterColumns, first.AdditionalPrinterColumns)
		fields = fields && check.SemanticEqual(v.SelectableFields, first.SelectableFields)
	}
	for i := range s.Versions {
		v := &s.Versions[i]
		if schemas {
			s.Validation, v.Schema = first.Schema, nil
		}
		if subresources {
			s.Subresources, v.Subresources = first.Subresources, nil
		}
		if columns {
			s.AdditionalPrinterColumns, v.AdditionalPrinterColumns = first.AdditionalPrinterColumns, nil
		}
		if fields {
			s.SelectableFields, v.SelectableFields = first.SelectableFields, nil
		}
	}
}

func hubColumns(list []CustomResourceColumnDefinitionV1beta1) (out []CustomResourceColumnDefinition) {
	for _, c := range list {
		out = append(out, CustomResourceColumnDefinition(c))
	}
	return out
}

func columnsV1beta1(list []CustomResourceColumnDefinition) (out []CustomResourceColumnDefinitionV1beta1) {
	for _, c := range list {
		out = append(out, CustomResourceColumnDefinitionV1beta1(c))
	}
	return out
}
