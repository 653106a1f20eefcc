package openapi

import "google.golang.org/protobuf/encoding/protowire"

// withBounds adds the members of a schema that both versions number by the same
// distance from multipleOf on.
func withBounds(m map[string]member, multipleOf int) map[string]member {
	for i, f := range []struct {
		name string
		form form
	}{
		{"multipleOf", double}, {"maximum", double}, {"exclusiveMaximum", boolean}, {"minimum", double}, {"exclusiveMinimum", boolean},
		{"maxLength", integer}, {"minLength", integer}, {"pattern", text}, {"maxItems", integer}, {"minItems", integer},
		{"uniqueItems", boolean}, {"maxProperties", integer}, {"minProperties", integer}, {"required", texts}, {"enum", yamls},
	} {
		m[f.name] = member{protowire.Number(multipleOf + i), f.form, ""}
	}
	return m
}

// v2Messages are the messages of package openapi.v2.
func v2Messages() messages {
	return messages{
		"Document": {large: true, extensions: 16, members: map[string]member{
			"swagger": {1, text, ""}, "info": {2, one, "Info"}, "host": {3, text, ""}, "basePath": {4, text, ""},
			"schemes": {5, texts, ""}, "consumes": {6, texts, ""}, "produces": {7, texts, ""}, "paths": {8, one, "Paths"},
			"definitions": {9, one, "Definitions"}, "security": {12, many, "SecurityRequirement"},
			"securityDefinitions": {13, one, "SecurityDefinitions"},
		}},
		"Info":        {extensions: 7, members: map[string]member{"title": {1, text, ""}, "version": {2, text, ""}, "description": {3, text, ""}}},
		"Paths":       {large: true, extensions: 1, entries: 2, entry: "PathItem"},
		"Definitions": {large: true, entries: 1, entry: "Schema"},
		"Properties":  named("Schema"),
		"PathItem": {extensions: 10, members: map[string]member{
			"get": {2, one, "Operation"}, "put": {3, one, "Operation"}, "post": {4, one, "Operation"}, "delete": {5, one, "Operation"},
			"options": {6, one, "Operation"}, "head": {7, one, "Operation"}, "patch": {8, one, "Operation"}, "parameters": {9, many, "ParametersItem"},
		}},
		"Operation": {extensions: 13, members: map[string]member{
			"tags": {1, texts, ""}, "summary": {2, text, ""}, "description": {3, text, ""}, "operationId": {5, text, ""},
			"produces": {6, texts, ""}, "consumes": {7, texts, ""}, "parameters": {8, many, "ParametersItem"},
			"responses": {9, one, "Responses"}, "schemes": {10, texts, ""}, "deprecated": {11, boolean, ""},
		}},
		"ParametersItem":   {wrap: referenceOr("Parameter", "JsonReference")},
		"ResponseValue":    {wrap: referenceOr("Response", "JsonReference")},
		"JsonReference":    {members: map[string]member{"$ref": {1, text, ""}, "description": {2, text, ""}}},
		"Parameter":        {wrap: parameterForm},
		"NonBodyParameter": {wrap: parameterPlace},
		"BodyParameter": {extensions: 6, members: map[string]member{
			"description": {1, text, ""}, "name": {2, text, ""}, "in": {3, text, ""}, "required": {4, boolean, ""}, "schema": {5, one, "Schema"},
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
		"Response":   {extensions: 5, members: map[string]member{"description": {1, text, ""}, "schema": {2, one, "SchemaItem"}}},
		"SchemaItem": {wrap: func(any) member { return member{1, one, "Schema"} }},
		"Schema": {extensions: 31, members: withBounds(map[string]member{
			"$ref": {1, text, ""}, "format": {2, text, ""}, "title": {3, text, ""}, "description": {4, text, ""}, "default": {5, yaml, ""},
			"additionalProperties": {21, one, "AdditionalProperties"}, "type": {22, one, "TypeItem"}, "items": {23, one, "ItemsItem"},
			"allOf": {24, many, "Schema"}, "properties": {25, one, "Properties"}, "readOnly": {27, boolean, ""}, "externalDocs": {29, one, "ExternalDocs"},
			"example": {30, yaml, ""},
		}, 6)},
		"ExternalDocs":            {extensions: 3, members: map[string]member{"description": {1, text, ""}, "url": {2, text, ""}}},
		"AdditionalProperties":    {wrap: schemaOrFlag("Schema")},
		"TypeItem":                {wrap: func(any) member { return member{1, text, ""} }},
		"ItemsItem":               {wrap: func(any) member { return member{1, one, "Schema"} }},
		"SecurityRequirement":     named("StringArray"),
		"StringArray":             {wrap: func(any) member { return member{1, texts, ""} }},
		"SecurityDefinitions":     named("SecurityDefinitionsItem"),
		"SecurityDefinitionsItem": {wrap: func(any) member { return member{2, one, "ApiKeySecurity"} }},
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
			"openapi": {1, text, ""}, "info": {2, one, "Info"}, "paths": {4, one, "Paths"}, "components": {5, one, "Components"},
			"security": {6, many, "SecurityRequirement"},
		}},
		"Info":  {extensions: 7, members: map[string]member{"title": {1, text, ""}, "description": {2, text, ""}, "version": {6, text, ""}}},
		"Paths": {large: true, extensions: 2, entries: 1, entry: "PathItem"},
		"Components": {large: true, extensions: 10, members: map[string]member{
			"schemas": {1, one, "Schemas"}, "securitySchemes": {7, one, "SecuritySchemes"},
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
			"summary": {2, text, ""}, "description": {3, text, ""}, "get": {4, one, "Operation"}, "put": {5, one, "Operation"},
			"post": {6, one, "Operation"}, "delete": {7, one, "Operation"}, "options": {8, one, "Operation"}, "head": {9, one, "Operation"},
			"patch": {10, one, "Operation"}, "parameters": {13, many, "ParameterOrReference"},
		}},
		"Operation": {extensions: 13, members: map[string]member{
			"tags": {1, texts, ""}, "summary": {2, text, ""}, "description": {3, text, ""}, "operationId": {5, text, ""},
			"parameters": {6, many, "ParameterOrReference"}, "requestBody": {7, one, "RequestBodyOrReference"},
			"responses": {8, one, "Responses"}, "deprecated": {10, boolean, ""},
		}},
		"ParameterOrReference": {wrap: referenceOr("Parameter", "Reference")},
		"Parameter": {extensions: 14, members: map[string]member{
			"name": {1, text, ""}, "in": {2, text, ""}, "description": {3, text, ""}, "required": {4, boolean, ""}, "deprecated": {5, boolean, ""},
			"schema": {10, one, schema},
		}},
		"RequestBodyOrReference": {wrap: referenceOr("RequestBody", "Reference")},
		"RequestBody": {extensions: 4, members: map[string]member{
			"description": {1, text, ""}, "content": {2, one, "MediaTypes"}, "required": {3, boolean, ""},
		}},
		"MediaTypes":          named("MediaType"),
		"MediaType":           {extensions: 5, members: map[string]member{"schema": {1, one, schema}}},
		"Responses":           {extensions: 3, entries: 2, entry: "ResponseOrReference"},
		"ResponseOrReference": {wrap: referenceOr("Response", "Reference")},
		"Response":            {extensions: 5, members: map[string]member{"description": {1, text, ""}, "content": {3, one, "MediaTypes"}}},
		"Reference":           {members: map[string]member{"$ref": {1, text, ""}, "summary": {2, text, ""}, "description": {3, text, ""}}},
		schema:                {wrap: referenceOr("Schema", "Reference")},
		"Schema": {extensions: 36, members: withBounds(map[string]member{
			"nullable": {1, boolean, ""}, "readOnly": {3, boolean, ""}, "writeOnly": {4, boolean, ""}, "externalDocs": {6, one, "ExternalDocs"}, "example": {7, yaml, ""},
			"deprecated": {8, boolean, ""}, "title": {9, text, ""}, "type": {25, text, ""}, "allOf": {26, many, schema},
			"oneOf": {27, many, schema}, "anyOf": {28, many, schema}, "not": {29, one, "Schema"}, "items": {30, one, "ItemsItem"},
			"properties": {31, one, "Properties"}, "additionalProperties": {32, one, "AdditionalProperties"}, "default": {33, one, "Default"},
			"description": {34, text, ""}, "format": {35, text, ""},
		}, 10)},
		"ExternalDocs":         {extensions: 3, members: map[string]member{"description": {1, text, ""}, "url": {2, text, ""}}},
		"AdditionalProperties": {wrap: schemaOrFlag(schema)},
		"ItemsItem":            {wrap: func(any) member { return member{1, one, schema} }},
		"Default":              {wrap: scalar},
	}
}

// referenceOr wraps a value that is a message or, with $ref, a reference to one.
func referenceOr(message, reference string) func(any) member {
	return func(v any) member {
		tree, _ := v.(map[string]any)
		if _, is := tree["$ref"]; is {
			return member{2, one, reference}
		}
		return member{1, one, message}
	}
}

func schemaOrFlag(schema string) func(any) member {
	return func(v any) member {
		if _, is := v.(bool); is {
			return member{2, boolean, ""}
		}
		return member{1, one, schema}
	}
}

// scalar wraps a default, of which version 3 knows numbers, booleans and texts;
// others are an empty message.
func scalar(v any) member {
	switch v.(type) {
	case int64, float64:
		return member{1, double, ""}
	case bool:
		return member{2, boolean, ""}
	case string:
		return member{3, text, ""}
	}
	return member{form: none}
}

func parameterForm(v any) member {
	if in(v) == "body" {
		return member{1, one, "BodyParameter"}
	}
	return member{2, one, "NonBodyParameter"}
}

func parameterPlace(v any) member {
	if in(v) == "path" {
		return member{4, one, "PathParameter"}
	}
	return member{3, one, "QueryParameter"}
}

func in(v any) string {
	tree, _ := v.(map[string]any)
	s, _ := tree["in"].(string)
	return s
}
