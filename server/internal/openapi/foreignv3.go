package openapi

import (
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

// foreignV3 makes a document of version 3 from a part of another server's document of version 2.
func foreignV3(f *Foreign, info Info) *Document {
	texts, definitions := f.texts()
	paths, schemas := members{}, members{}
	for path, text := range texts {
		paths[path] = func() map[string]any { return pathV3(treeOf(text.Value())) }
	}
	for name, text := range definitions {
		schemas[name] = func() map[string]any { return treeOf(schemaV3(text.Value())) }
	}
	return newDocument(members{
		"openapi":    "3.0.0",
		"info":       map[string]any{"title": info.Title, "version": info.Version},
		"paths":      paths,
		"components": members{"schemas": schemas},
	}, v3Messages(), info.maker)
}

// methods are the members of a path item that are operations.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch"}

func pathV3(item map[string]any) map[string]any {
	out := extensions(item)
	if list, _ := parametersV3(item["parameters"]); list != nil {
		out["parameters"] = list
	}
	for _, method := range methods {
		if op := treeOf(item[method]); op != nil {
			out[method] = operationV3(op)
		}
	}
	return out
}

// extensions returns the extension members of an object, which are the same in both versions.
func extensions(of map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range of {
		if strings.HasPrefix(key, "x-") {
			out[key] = v
		}
	}
	return out
}

func operationV3(op map[string]any) map[string]any {
	out := extensions(op)
	for _, key := range []string{"tags", "summary", "description", "operationId", "deprecated"} {
		if v, is := op[key]; is {
			out[key] = v
		}
	}
	list, body := parametersV3(op["parameters"])
	if list != nil {
		out["parameters"] = list
	}
	if body != nil {
		request := extensions(body)
		for _, key := range []string{"description", "required"} {
			if v, is := body[key]; is {
				request[key] = v
			}
		}
		request["content"] = content(op, "consumes", body["schema"])
		out["requestBody"] = request
	}
	responses := map[string]any{}
	for code, v := range treeOf(op["responses"]) {
		response := treeOf(v)
		if response == nil || strings.HasPrefix(code, "x-") {
			responses[code] = v
			continue
		}
		answer := extensions(response)
		answer["description"] = response["description"]
		if response["schema"] != nil {
			answer["content"] = content(op, "produces", response["schema"])
		}
		responses[code] = answer
	}
	out["responses"] = responses
	return out
}

// content returns the content of a body for each media type in a member of an operation.
func content(op map[string]any, kinds string, schema any) map[string]any {
	list := meta.NewObject(op).Strings(kinds)
	if len(list) == 0 {
		list = []string{"*/*"}
	}
	out := map[string]any{}
	for _, kind := range list {
		out[kind] = map[string]any{"schema": schemaV3(meta.Clone(schema))}
	}
	return out
}

// bodySize returns a lower bound of the size of the bodies of a path in version 3, in bytes of JSON. Version 3
// repeats a body for each media type.
func bodySize(item map[string]any) (size int) {
	for _, method := range methods {
		op := treeOf(item[method])
		length := func(kinds string) func(body any) int {
			list := meta.NewObject(op).Strings(kinds)
			once := len(strings.Join(list, ""))
			return func(body any) int {
				schema := treeOf(body)["schema"]
				if schema == nil {
					return 0
				}
				return once + len(list)*len(codec.EncodeValue(nil, schema))
			}
		}
		parameters, _ := op["parameters"].([]any)
		in, out := length("consumes"), length("produces")
		for _, parameter := range parameters {
			size += in(parameter)
		}
		for _, response := range treeOf(op["responses"]) {
			size += out(response)
		}
	}
	return size
}

// parametersV3 converts parameters to version 3. The body, which is not a parameter in version 3, is returned
// separately.
func parametersV3(v any) (list []any, body map[string]any) {
	all, _ := v.([]any)
	for _, e := range all {
		p := treeOf(e)
		switch p["in"] {
		case "body":
			body = p
			continue
		case "formData":
			continue // object APIs have no forms
		}
		out, schema := extensions(p), map[string]any{}
		for key, v := range p {
			switch key {
			case "name", "in", "description", "required", "allowEmptyValue":
				out[key] = v
			case "type", "format", "uniqueItems", "enum":
				schema[key] = v
			}
		}
		out["schema"] = schema
		list = append(list, out)
	}
	return list, body
}

// schemaV3 converts a schema to version 3 in place, in which a reference has no other members beside it.
func schemaV3(v any) any {
	rewriteRefs(v, func(ref string) string {
		return strings.Replace(ref, definitionRef, "#/components/schemas/", 1)
	})
	return wrapRefs(v)
}

// wrapRefs moves each reference that has members beside it into an allOf.
func wrapRefs(v any) any {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			v[i] = wrapRefs(e)
		}
	case map[string]any:
		for key, e := range v {
			v[key] = wrapRefs(e)
		}
		if ref, is := v["$ref"].(string); is && len(v) > 1 {
			delete(v, "$ref")
			v["allOf"] = []any{map[string]any{"$ref": ref}}
		}
	}
	return v
}
