package apiextensions

import "encoding/json"

// JSONSchemaProps is a JSON schema in the dialect of OpenAPI v3. It must be structural. Some
// fields are decoded but rejected, as their documentation states.
type JSONSchemaProps struct {
	// ID is rejected.
	ID string `json:"id,omitempty" protobuf:"1"`

	// Schema is the URI of the dialect. It is rejected.
	Schema string `json:"$schema,omitempty" protobuf:"2"`

	// Ref is rejected.
	Ref *string `json:"$ref,omitempty" protobuf:"3"`

	// Description explains the value to people.
	Description string `json:"description,omitempty" protobuf:"4"`

	// Type is object, array, string, integer, number or boolean.
	Type string `json:"type,omitempty" protobuf:"5"`

	// Format restricts strings and numbers, such as date-time or int32. Unknown formats are ignored
	// with a warning.
	Format string `json:"format,omitempty" protobuf:"6"`

	// Title is a short description.
	Title string `json:"title,omitempty" protobuf:"7"`

	// Default is the value of the field if it is absent.
	Default *JSON `json:"default,omitempty" protobuf:"8"`

	// Maximum is the upper bound of numbers.
	Maximum *float64 `json:"maximum,omitempty" protobuf:"9"`

	// ExclusiveMaximum excludes maximum itself from the range.
	ExclusiveMaximum bool `json:"exclusiveMaximum,omitempty" protobuf:"10"`

	// Minimum is the lower bound of numbers.
	Minimum *float64 `json:"minimum,omitempty" protobuf:"11"`

	// ExclusiveMinimum excludes minimum itself from the range.
	ExclusiveMinimum bool `json:"exclusiveMinimum,omitempty" protobuf:"12"`

	// MaxLength is the largest length of strings in characters.
	MaxLength *int64 `json:"maxLength,omitempty" protobuf:"13"`

	// MinLength is the smallest length of strings in characters.
	MinLength *int64 `json:"minLength,omitempty" protobuf:"14"`

	// Pattern is a regular expression (RE2) that strings must contain a match of.
	Pattern string `json:"pattern,omitempty" protobuf:"15"`

	// MaxItems is the largest length of lists.
	MaxItems *int64 `json:"maxItems,omitempty" protobuf:"16"`

	// MinItems is the smallest length of lists.
	MinItems *int64 `json:"minItems,omitempty" protobuf:"17"`

	// UniqueItems must not be true; use list type set.
	UniqueItems bool `json:"uniqueItems,omitempty" protobuf:"18"`

	// MultipleOf requires numbers to be a multiple of this number.
	MultipleOf *float64 `json:"multipleOf,omitempty" protobuf:"19"`

	// Enum lists the allowed values.
	Enum []JSON `json:"enum,omitempty" protobuf:"20" schema:"listType=atomic"`

	// MaxProperties is the largest number of fields of objects.
	MaxProperties *int64 `json:"maxProperties,omitempty" protobuf:"21"`

	// MinProperties is the smallest number of fields of objects.
	MinProperties *int64 `json:"minProperties,omitempty" protobuf:"22"`

	// Required lists the fields that must be present.
	Required []string `json:"required,omitempty" protobuf:"23" schema:"listType=atomic"`

	// Items is the schema of list items. A list of schemas is rejected.
	Items *JSONSchemaPropsOrArray `json:"items,omitempty" protobuf:"24"`

	// AllOf are schemas that must all match.
	AllOf []JSONSchemaProps `json:"allOf,omitempty" protobuf:"25" schema:"listType=atomic"`

	// OneOf are schemas of which exactly 1 must match.
	OneOf []JSONSchemaProps `json:"oneOf,omitempty" protobuf:"26" schema:"listType=atomic"`

	// AnyOf are schemas of which at least 1 must match.
	AnyOf []JSONSchemaProps `json:"anyOf,omitempty" protobuf:"27" schema:"listType=atomic"`

	// Not is a schema that must not match.
	Not *JSONSchemaProps `json:"not,omitempty" protobuf:"28"`

	// Properties are the schemas of the fields of objects.
	Properties map[string]JSONSchemaProps `json:"properties,omitempty" protobuf:"29"`

	// AdditionalProperties is the schema of map values. It excludes properties. false allows no values.
	AdditionalProperties *JSONSchemaPropsOrBool `json:"additionalProperties,omitempty" protobuf:"30"`

	// PatternProperties is rejected.
	PatternProperties map[string]JSONSchemaProps `json:"patternProperties,omitempty" protobuf:"31"`

	// Dependencies is rejected.
	Dependencies map[string]JSON `json:"dependencies,omitempty" protobuf:"32"`

	// AdditionalItems is rejected.
	AdditionalItems *JSONSchemaPropsOrBool `json:"additionalItems,omitempty" protobuf:"33"`

	// Definitions is rejected.
	Definitions map[string]JSONSchemaProps `json:"definitions,omitempty" protobuf:"34"`

	// ExternalDocs refers to further documentation.
	ExternalDocs *ExternalDocumentation `json:"externalDocs,omitempty" protobuf:"35"`

	// Example is a valid value, for documentation.
	Example *JSON `json:"example,omitempty" protobuf:"36"`

	// Nullable allows null.
	Nullable bool `json:"nullable,omitempty" protobuf:"37"`

	// PreserveUnknownFields disables the pruning of fields that the schema does not declare.
	PreserveUnknownFields *bool `json:"extension:preserve-unknown-fields,omitempty" protobuf:"38"`

	// EmbeddedResource marks a complete object with apiVersion, kind and metadata, which are validated.
	EmbeddedResource bool `json:"extension:embedded-resource,omitempty" protobuf:"39"`

	// IntOrString allows an integer or a string.
	IntOrString bool `json:"extension:int-or-string,omitempty" protobuf:"40"`

	// ListMapKeys are the fields that identify the items of a list of type map.
	ListMapKeys []string `json:"extension:list-map-keys,omitempty" protobuf:"41" schema:"listType=atomic"`

	// ListType is atomic, set or map. It decides how server-side apply merges lists and whether items
	// must be unique.
	ListType *string `json:"extension:list-type,omitempty" protobuf:"42"`

	// MapType is granular or atomic. It decides how server-side apply merges objects.
	MapType *string `json:"extension:map-type,omitempty" protobuf:"43"`

	// Validations are CEL rules that values must satisfy.
	Validations []ValidationRule `json:"extension:validations,omitempty" protobuf:"44" patchStrategy:"merge" patchMergeKey:"rule" schema:"listType=map,listMapKeys=rule,repeats"`
}

// ValidationRule is a CEL rule.
type ValidationRule struct {
	// Rule is a CEL expression that must evaluate to true.
	Rule string `json:"rule" protobuf:"1"`

	// Message is the text of the violation.
	Message string `json:"message,omitempty" protobuf:"2"`

	// MessageExpression is a CEL expression for the text of the violation. It takes precedence over
	// message.
	MessageExpression string `json:"messageExpression,omitempty" protobuf:"3"`

	// Reason is the machine-readable reason of the violation.
	Reason *string `json:"reason,omitempty" protobuf:"4"`

	// FieldPath is the JSON path of the field that the violation names, relative to the value.
	FieldPath string `json:"fieldPath,omitempty" protobuf:"5"`

	// OptionalOldSelf also evaluates transition rules, which use oldSelf, when there is no old value.
	OptionalOldSelf *bool `json:"optionalOldSelf,omitempty" protobuf:"6"`
}

// ExternalDocumentation refers to further documentation.
type ExternalDocumentation struct {
	// Description of the documentation.
	Description string `json:"description,omitempty" protobuf:"1"`

	// URL of the documentation.
	URL string `json:"url,omitempty" protobuf:"2"`
}

// JSON is an arbitrary JSON value.
type JSON struct{ Raw json.RawMessage }

// APIForm selects the encoding in package schema.
func (JSON) APIForm() string { return "json" }

// JSONSchemaPropsOrBool is a schema or a boolean.
type JSONSchemaPropsOrBool struct {
	Allows bool
	Schema *JSONSchemaProps
}

// APIForm selects the encoding in package schema.
func (JSONSchemaPropsOrBool) APIForm() string { return "or-boolean" }

// JSONSchemaPropsOrArray is a schema or a list of schemas.
type JSONSchemaPropsOrArray struct {
	Schema *JSONSchemaProps
	List   []JSONSchemaProps
}

// APIForm selects the encoding in package schema.
func (JSONSchemaPropsOrArray) APIForm() string { return "or-list" }
