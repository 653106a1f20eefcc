package openapi

import "google.golang.org/protobuf/encoding/protowire"

// withBounds adds the members from multipleOf on, which have consecutive numbers in both versions, to the members of
// a schema.
func withBounds(m map[string]member, multipleOf int) map[string]member {
	for i, f := range []struct {
		name     string
		encoding encoding
	}{
		{"multipleOf", double}, {"maximum", double}, {"exclusiveMaximum", boolean}, {"minimum", double}, {"exclusiveMinimum", boolean},
		{"maxLength", integer}, {"minLength", integer}, {"pattern", text}, {"maxItems", integer}, {"minItems", integer},
		{"uniqueItems", boolean}, {"maxProperties", integer}, {"minProperties", integer}, {"required", texts}, {"enum", yamls},
	} {
		m[f.name] = member{protowire.Number(multipleOf + i), f.encoding, ""}
	}
	return m
}

// v2Messages are the messages of package openapi.v2.
func v2Messages() messages {
	return messages{
		"Document": {large: true, extensions: 16, members: map[string]member{
			"swagger": {1, text, ""}, "info": {2, submessage, "Info"}, "host": {3, text, ""}, "basePath": {4, text, ""},
			"schemes": {5, texts, ""}, "consumes": {6, texts, ""}, "produces": {7, texts, ""}, "paths": {8, submessage, "Paths"},
			"definitions": {9, submessage, "Definitions"}, "security": {12, submessages, "SecurityRequirement"},
			"securityDefinitions": {13, submessage, "SecurityDefinitions"},
		}},
		"Info":        {extensions: 7, members: map[string]member{"title": {1, text, ""}, "version": {2, text, ""}, "description": {3, text, ""}}},
		"Paths":       {large: true, extensions: 1, entries: 2, entry: "PathItem"},
		"Definitions": {large: true, entries: 1, entry: "Schema"},
		"Properties":  named("Schema"),
		"PathItem": {extensions: 10, members: map[string]member{
			"get": {2, submessage, "Operation"}, "put": {3, submessage, "Operation"}, "post": {4, submessage, "Operation"}, "delete": {5, submessage, "Operation"},
			"options": {6, submessage, "Operation"}, "head": {7, submessage, "Operation"}, "patch": {8, submessage, "Operation"}, "parameters": {9, submessages, "ParametersItem"},
		}},
		"Operation": {extensions: 13, members: map[string]member{
			"tags": {1, texts, ""}, "summary": {2, text, ""}, "description": {3, text, ""}, "operationId": {5, text, ""},
			"produces": {6, texts, ""}, "consumes": {7, texts, ""}, "parameters": {8, submessages, "ParametersItem"},
			"responses": {9, submessage, "Responses"}, "schemes": {10, texts, ""}, "deprecated": {11, boolean, ""},
		}},
		"ParametersItem":   {wrap: referenceOr("Parameter", "JsonReference")},
		"ResponseValue":    {wrap: referenceOr("Response", "JsonReference")},
		"JsonReference":    {members: map[string]member{"$ref": {1, text, ""}, "description": {2, text, ""}}},
		"Parameter":        {wrap: parameterForm},
		"NonBodyParameter": {wrap: parameterPlace},
		"BodyParameter": {extensions: 6, members: map[string]member{
			"description": {1, text, ""}, "name": {2, text, ""}, "in": {3, text, ""}, "required": {4, boolean, ""}, "schema": {5, submessage, "Schema"},
		}},
		"QueryParameter": {extensions: 23, members: map[string]member{
			"required": {1, boolean, ""}, "in": {2, text, ""}, "description": {3, text, ""}, "name": {4, text, ""},
			"allowEmptyValue": {5, boolean, ""}, "type": {6, text, ""}, "format": {7, text, ""}, "uniqueItems": {20, boolean, ""}, "enum": {21, yamls, ""},
		}},
		"PathParameter": {extensions: 22, members: map[string]member{
			"required": {1, boolean, ""}, "in": {2, text, ""}, "description": {3, text, ""}, "name": {4, text, ""},
			"type": {5, text, ""}, "format": {6, text, ""}, "uniqueItems": {19, boolean, ""}, "enum": {20, yamls, ""},
		}},
		"Responses":  {extensions: 2, entries: 1, entry: "ResponseValue"},
		"Response":   {extensions: 5, members: map[string]member{"description": {1, text, ""}, "schema": {2, submessage, "SchemaItem"}}},
		"SchemaItem": {wrap: func(any) member { return member{1, submessage, "Schema"} }},
		"Schema": {extensions: 31, members: withBounds(map[string]member{
			"$ref": {1, text, ""}, "format": {2, text, ""}, "title": {3, text, ""}, "description": {4, text, ""}, "default": {5, yaml, ""},
			"additionalProperties": {21, submessage, "AdditionalProperties"}, "type": {22, submessage, "TypeItem"}, "items": {23, submessage, "ItemsItem"},
			"allOf": {24, submessages, "Schema"}, "properties": {25, submessage, "Properties"}, "readOnly": {27, boolean, ""}, "externalDocs": {29, submessage, "ExternalDocs"},
			"example": {30, yaml, ""},
		}, 6)},
		"ExternalDocs":            {extensions: 3, members: map[string]member{"description": {1, text, ""}, "url": {2, text, ""}}},
		"AdditionalProperties":    {wrap: schemaOrFlag("Schema")},
		"TypeItem":                {wrap: func(any) member { return member{1, text, ""} }},
		"ItemsItem":               {wrap: func(any) member { return member{1, submessage, "Schema"} }},
		"SecurityRequirement":     named("StringArray"),
		"StringArray":             {wrap: func(any) member { return member{1, texts, ""} }},
		"SecurityDefinitions":     named("SecurityDefinitionsItem"),
		"SecurityDefinitionsItem": {wrap: func(any) member { return member{2, submessage, "ApiKeySecurity"} }},
		"ApiKeySecurity": {extensions: 5, members: map[string]member{
			"type": {1, text, ""}, "name": {2, text, ""}, "in": {3, text, ""}, "description": {4, text, ""},
		}},
	}
}

// v3Messages are the messages of package openapi.v3.
func v3Messages() messages {
	schema := "SchemaOrReference"
	return messages{
		"Document": {large: true, extensions: 9, members: map[string]member{
			"openapi": {1, text, ""}, "info": {2, submessage, "Info"}, "paths": {4, submessage, "Paths"}, "components": {5, submessage, "Components"},
			"security": {6, submessages, "SecurityRequirement"},
		}},
		"Info":  {extensions: 7, members: map[string]member{"title": {1, text, ""}, "description": {2, text, ""}, "version": {6, text, ""}}},
		"Paths": {large: true, extensions: 2, entries: 1, entry: "PathItem"},
		"Components": {large: true, extensions: 10, members: map[string]member{
			"schemas": {1, submessage, "Schemas"}, "securitySchemes": {7, submessage, "SecuritySchemes"},
		}},
		"Schemas":                   {large: true, entries: 1, entry: schema},
		"Properties":                named(schema),
		"SecuritySchemes":           named("SecuritySchemeOrReference"),
		"SecuritySchemeOrReference": {wrap: referenceOr("SecurityScheme", "Reference")},
		"SecurityScheme": {extensions: 9, members: map[string]member{
			"type": {1, text, ""}, "description": {2, text, ""}, "name": {3, text, ""}, "in": {4, text, ""},
		}},
		"SecurityRequirement": named("StringArray"),
		"StringArray":         {wrap: func(any) member { return member{1, texts, ""} }},
		"PathItem": {extensions: 14, members: map[string]member{
			"summary": {2, text, ""}, "description": {3, text, ""}, "get": {4, submessage, "Operation"}, "put": {5, submessage, "Operation"},
			"post": {6, submessage, "Operation"}, "delete": {7, submessage, "Operation"}, "options": {8, submessage, "Operation"}, "head": {9, submessage, "Operation"},
			"patch": {10, submessage, "Operation"}, "parameters": {13, submessages, "ParameterOrReference"},
		}},
		"Operation": {extensions: 13, members: map[string]member{
			"tags": {1, texts, ""}, "summary": {2, text, ""}, "description": {3, text, ""}, "operationId": {5, text, ""},
			"parameters": {6, submessages, "ParameterOrReference"}, "requestBody": {7, submessage, "RequestBodyOrReference"},
			"responses": {8, submessage, "Responses"}, "deprecated": {10, boolean, ""},
		}},
		"ParameterOrReference": {wrap: referenceOr("Parameter", "Reference")},
		"Parameter": {extensions: 14, members: map[string]member{
			"name": {1, text, ""}, "in": {2, text, ""}, "description": {3, text, ""}, "required": {4, boolean, ""}, "deprecated": {5, boolean, ""},
			"schema": {10, submessage, schema},
		}},
		"RequestBodyOrReference": {wrap: referenceOr("RequestBody", "Reference")},
		"RequestBody": {extensions: 4, members: map[string]member{
			"description": {1, text, ""}, "content": {2, submessage, "MediaTypes"}, "required": {3, boolean, ""},
		}},
		"MediaTypes":          named("MediaType"),
		"MediaType":           {extensions: 5, members: map[string]member{"schema": {1, submessage, schema}}},
		"Responses":           {extensions: 3, entries: 2, entry: "ResponseOrReference"},
		"ResponseOrReference": {wrap: referenceOr("Response", "Reference")},
		"Response":            {extensions: 5, members: map[string]member{"description": {1, text, ""}, "content": {3, submessage, "MediaTypes"}}},
		"Reference":           {members: map[string]member{"$ref": {1, text, ""}, "summary": {2, text, ""}, "description": {3, text, ""}}},
		schema:                {wrap: referenceOr("Schema", "Reference")},
		"Schema": {extensions: 36, members: withBounds(map[string]member{
			"nullable": {1, boolean, ""}, "readOnly": {3, boolean, ""}, "writeOnly": {4, boolean, ""}, "externalDocs": {6, submessage, "ExternalDocs"}, "example": {7, yaml, ""},
			"deprecated": {8, boolean, ""}, "title": {9, text, ""}, "type": {25, text, ""}, "allOf": {26, submessages, schema},
			"oneOf": {27, submessages, schema}, "anyOf": {28, submessages, schema}, "not": {29, submessage, "Schema"}, "items": {30, submessage, "ItemsItem"},
			"properties": {31, submessage, "Properties"}, "additionalProperties": {32, submessage, "AdditionalProperties"}, "default": {33, submessage, "Default"},
			"description": {34, text, ""}, "format": {35, text, ""},
		}, 10)},
		"ExternalDocs":         {extensions: 3, members: map[string]member{"description": {1, text, ""}, "url": {2, text, ""}}},
		"AdditionalProperties": {wrap: schemaOrFlag(schema)},
		"ItemsItem":            {wrap: func(any) member { return member{1, submessage, schema} }},
		"Default":              {wrap: scalar},
	}
}

// referenceOr returns the wrap function of a value that is either a message or, if it has $ref, a reference.
func referenceOr(message, reference string) func(any) member {
	return func(v any) member {
		tree, _ := v.(map[string]any)
		if _, is := tree["$ref"]; is {
			return member{2, submessage, reference}
		}
		return member{1, submessage, message}
	}
}

func schemaOrFlag(schema string) func(any) member {
	return func(v any) member {
		if _, is := v.(bool); is {
			return member{2, boolean, ""}
		}
		return member{1, submessage, schema}
	}
}

// scalar is the wrap function of a default. The message of version 3 supports numbers, booleans and strings. Other
// defaults become an empty message.
func scalar(v any) member {
	switch v.(type) {
	case int64, float64:
		return member{1, double, ""}
	case bool:
		return member{2, boolean, ""}
	case string:
		return member{3, text, ""}
	}
	return member{encoding: omitted}
}

func parameterForm(v any) member {
	if location(v) == "body" {
		return member{1, submessage, "BodyParameter"}
	}
	return member{2, submessage, "NonBodyParameter"}
}

func parameterPlace(v any) member {
	if location(v) == "path" {
		return member{4, submessage, "PathParameter"}
	}
	return member{3, submessage, "QueryParameter"}
}

func location(v any) string {
	tree, _ := v.(map[string]any)
	s, _ := tree["in"].(string)
	return s
}
