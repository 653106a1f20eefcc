// Package openapi makes OpenAPI documents, version 2 and 3, from the types of a catalog.
//
// V3 and V2 collect the paths (operations.go) and definitions (schemas.go) of a document. They are encoded as JSON
// (document.go). If a client requests protobuf, the JSON is converted (protobuf.go). Cache keeps the documents of a
// server, compressed, and makes each document when it is first requested. Documents are large if there are many
// custom kinds. Therefore only one custom kind is held in decoded form at a time.
package openapi

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
)

// Info describes the server in its documents.
type Info struct {
	Title, Version string
	Names          names.Profile
	Docs           *schema.Docs // documentation of Go types, or nil
	Others         *Others      // documents of other servers, or nil

	maker *maker // of a Cache, or nil
}

// V3 returns the OpenAPI 3.0 document of a group version. versions are its served types.
func V3(gv meta.GroupVersion, versions []*resource.Version, info Info) *Document {
	b := newBuilder(info, v3)
	for _, v := range versions {
		b.version(v)
	}
	b.group(gv)
	return newDocument(members{
		"openapi": "3.0.0",
		"info":    map[string]any{"title": info.Title, "version": info.Version},
		"paths":   b.paths,
		"components": members{
			"schemas": b.definitions,
			"securitySchemes": map[string]any{"BearerToken": map[string]any{
				"description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header"}},
		},
	}, v3Messages(), info.maker)
}

// V2 returns the OpenAPI 2.0 document of all served versions of the types.
func V2(types []*resource.Type, info Info) *Document {
	b := newBuilder(info, v2)
	seen := map[meta.GroupVersion]bool{}
	for _, t := range types {
		for _, v := range t.Versions {
			if !v.Served {
				continue
			}
			b.version(v)
			if gv := v.GroupVersion(); !seen[gv] {
				seen[gv] = true
				b.group(gv)
			}
		}
	}
	if info.Others != nil {
		for _, f := range info.Others.V2 {
			b.merge(f)
		}
	}
	return newDocument(members{
		"swagger": "2.0",
		"info":    map[string]any{"title": info.Title, "version": info.Version},
		"paths":   b.paths, "definitions": b.definitions,
		"security": []any{map[string]any{"BearerToken": []any{}}},
		"securityDefinitions": map[string]any{"BearerToken": map[string]any{
			"description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header"}},
	}, v2Messages(), info.maker)
}

// builder collects the content of a document.
type builder struct {
	names       names.Profile
	dialect     dialect
	docs        *schema.Docs
	paths       members                   // encoded
	definitions members                   // of Go types; the definitions of custom kinds are made when they are encoded
	defined     map[*schema.Struct]string // names of the structs in definitions
	lists       map[string]string         // names of lists, by item and kind
	described   map[parameter]map[string]any
	canonical   bool // the present schemas come from Go types
}

// dialect is the version of OpenAPI.
type dialect int

const (
	v2 dialect = 2
	v3 dialect = 3
)

func newBuilder(info Info, d dialect) *builder {
	return &builder{
		names: info.Names, dialect: d, docs: info.Docs,
		paths: members{}, definitions: members{}, defined: map[*schema.Struct]string{}, lists: map[string]string{},
		described: map[parameter]map[string]any{},
	}
}

// version adds the paths and the definitions of a type in one version.
func (b *builder) version(v *resource.Version) {
	item := ""
	if v.DiscoveryKind == "" {
		item = b.kind(v)
	}
	b.operations(v, item)
}

// kindTree returns a kind in the representation of the documents.
func kindTree(k meta.GroupVersionKind) map[string]any {
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}
