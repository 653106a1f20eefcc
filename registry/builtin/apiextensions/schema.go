package apiextensions

import "encoding/json"

// JSONSchemaProps is a JSON schema as OpenAPI v3 has it. Only structural schemas
// are accepted; the fields whose docs say so are known but refused.
type JSONSchemaProps struct {
	// ID is refused.
	ID string `json:"id,omitempty" protobuf:"1"`

	// Schema names the dialect; it is refused.
	Schema string `json:"$schema,omitempty" protobuf:"2"`

	// Ref is refused.
	Ref *string `json:"$ref,omitempty" protobuf:"3"`

	// Description documents the value.
	Description string `json:"description,omitempty" protobuf:"4"`

	// Type is object, array, string, integer, number or boolean.
	Type string `json:"type,omitempty" protobuf:"5"`

	// Format says more about strings and numbers, such as date-time or int32.
	// Unknown formats say nothing.
	Format string `json:"format,omitempty" protobuf:"6"`

	// Title is a short description.
	Title string `json:"title,omitempty" protobuf:"7"`

	// Default is the value of the field where it is left out.
	Default *JSON `json:"default,omitempty" protobuf:"8"`

	// Maximum bounds numbers from above.
	Maximum *float64 `json:"maximum,omitempty" protobuf:"9"`

	// ExclusiveMaximum refuses the maximum itself.
	ExclusiveMaximum bool `json:"exclusiveMaximum,omitempty" protobuf:"10"`

	// Minimum bounds numbers from below.
	Minimum *float64 `json:"minimum,omitempty" protobuf:"11"`

	// ExclusiveMinimum refuses the minimum itself.
	ExclusiveMinimum bool `json:"exclusiveMinimum,omitempty" protobuf:"12"`

	// MaxLength bounds the characters of strings.
	MaxLength *int64 `json:"maxLength,omitempty" protobuf:"13"`

	// MinLength bounds the characters of strings.
	MinLength *int64 `json:"minLength,omitempty" protobuf:"14"`

	// Pattern is a regular expression (RE2) that strings must match somewhere.
	Pattern string `json:"pattern,omitempty" protobuf:"15"`

	// MaxItems bounds the length of lists.
	MaxItems *int64 `json:"maxItems,omitempty" protobuf:"16"`

	// MinItems bounds the length of lists.
	MinItems *int64 `json:"minItems,omitempty" protobuf:"17"`

	// UniqueItems may not be true; list type set does the same.
	UniqueItems bool `json:"uniqueItems,omitempty" protobuf:"18"`

	// MultipleOf is what numbers must be a multiple of.
	MultipleOf *float64 `json:"multipleOf,omitempty" protobuf:"19"`

	// Enum lists the values that are allowed.
	Enum []JSON `json:"enum,omitempty" protobuf:"20" schema:"listType=atomic"`

	// MaxProperties bounds the number of fields of objects.
	MaxProperties *int64 `json:"maxProperties,omitempty" protobuf:"21"`

	// MinProperties bounds the number of fields of objects.
	MinProperties *int64 `json:"minProperties,omitempty" protobuf:"22"`

	// Required lists the fields that must be there.
	Required []string `json:"required,omitempty" protobuf:"23" schema:"listType=atomic"`

	// Items describes the items of a list; a list of schemas is refused.
	Items *JSONSchemaPropsOrArray `json:"items,omitempty" protobuf:"24"`

	// AllOf lists schemas that must all fit.
	AllOf []JSONSchemaProps `json:"allOf,omitempty" protobuf:"25" schema:"listType=atomic"`

	// OneOf lists schemas of which exactly one must fit.
	OneOf []JSONSchemaProps `json:"oneOf,omitempty" protobuf:"26" schema:"listType=atomic"`

	// AnyOf lists schemas of which one must fit.
	AnyOf []JSONSchemaProps `json:"anyOf,omitempty" protobuf:"27" schema:"listType=atomic"`

	// Not is a schema that may not fit.
	Not *JSONSchemaProps `json:"not,omitempty" protobuf:"28"`

	// Properties describes the fields of objects.
	Properties map[string]JSONSchemaProps `json:"properties,omitempty" protobuf:"29"`

	// AdditionalProperties describes the values of maps; false leaves no values.
	AdditionalProperties *JSONSchemaPropsOrBool `json:"additionalProperties,omitempty" protobuf:"30"`

	// PatternProperties is refused.
	PatternProperties map[string]JSONSchemaProps `json:"patternProperties,omitempty" protobuf:"31"`

	// Dependencies is refused.
	Dependencies map[string]JSON `json:"dependencies,omitempty" protobuf:"32"`

	// AdditionalItems is refused.
	AdditionalItems *JSONSchemaPropsOrBool `json:"additionalItems,omitempty" protobuf:"33"`

	// Definitions is refused.
	Definitions map[string]JSONSchemaProps `json:"definitions,omitempty" protobuf:"34"`

	// ExternalDocs leads to more documentation.
	ExternalDocs *ExternalDocumentation `json:"externalDocs,omitempty" protobuf:"35"`

	// Example is a value that fits, for documentation.
	Example *JSON `json:"example,omitempty" protobuf:"36"`

	// Nullable allows null.
	Nullable bool `json:"nullable,omitempty" protobuf:"37"`

	// PreserveUnknownFields keeps fields that the schema does not have.
	PreserveUnknownFields *bool `json:"extension:preserve-unknown-fields,omitempty" protobuf:"38"`

	// EmbeddedResource says that the value is a whole object with apiVersion, kind
	// and metadata.
	EmbeddedResource bool `json:"extension:embedded-resource,omitempty" protobuf:"39"`

	// IntOrString allows an integer or a string.
	IntOrString bool `json:"extension:int-or-string,omitempty" protobuf:"40"`

	// ListMapKeys are the fields that identify the items of a list of type map.
	ListMapKeys []string `json:"extension:list-map-keys,omitempty" protobuf:"41" schema:"listType=atomic"`

	// ListType is atomic, set or map: how lists are merged by apply.
	ListType *string `json:"extension:list-type,omitempty" protobuf:"42"`

	// MapType is granular or atomic: how objects are merged by apply.
	MapType *string `json:"extension:map-type,omitempty" protobuf:"43"`

	// Validations are expressions in CEL that are true of a value.
	Validations []ValidationRule `json:"extension:validations,omitempty" protobuf:"44" patchStrategy:"merge" patchMergeKey:"rule" schema:"listType=map,listMapKeys=rule,repeats"`
}

// ValidationRule is an expression that must hold.
type ValidationRule struct {
	// Rule is the expression.
	Rule string `json:"rule" protobuf:"1"`

	// Message tells callers what is wrong.
	Message string `json:"message,omitempty" protobuf:"2"`

	// MessageExpression makes the message.
	MessageExpression string `json:"messageExpression,omitempty" protobuf:"3"`

	// Reason is the reason of the cause.
	Reason *string `json:"reason,omitempty" protobuf:"4"`

	// FieldPath is the field that the cause names.
	FieldPath string `json:"fieldPath,omitempty" protobuf:"5"`

	// OptionalOldSelf lets rules on transitions see values that are new.
	OptionalOldSelf *bool `json:"optionalOldSelf,omitempty" protobuf:"6"`
}

// ExternalDocumentation leads to documentation elsewhere.
type ExternalDocumentation struct {
	// Description says what is there.
	Description string `json:"description,omitempty" protobuf:"1"`

	// URL is where it is.
	URL string `json:"url,omitempty" protobuf:"2"`
}

// JSON is any JSON value.
type JSON struct{ Raw json.RawMessage }

// APIForm tells package schema how the value is written.
func (JSON) APIForm() string { return "json" }

// JSONSchemaPropsOrBool is a schema, or true or false.
type JSONSchemaPropsOrBool struct {
	Allows bool
	Schema *JSONSchemaProps
}

// APIForm tells package schema how the value is written.
func (JSONSchemaPropsOrBool) APIForm() string { return "or-boolean" }

// JSONSchemaPropsOrArray is a schema, or a list of them.
type JSONSchemaPropsOrArray struct {
	Schema *JSONSchemaProps
	List   []JSONSchemaProps
}

// APIForm tells package schema how the value is written.
func (JSONSchemaPropsOrArray) APIForm() string { return "or-list" }
