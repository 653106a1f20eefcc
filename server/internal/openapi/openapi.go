// Package openapi makes OpenAPI documents, version 2 and 3, from the types of a
// catalog.
//
// The way of a document: V3 or V2 collects paths (operations.go) and
// definitions (schemas.go); they are encoded as JSON (document.go), and, when a
// client asks for that, from JSON as protobuf (protobuf.go). Cache keeps the
// documents of a server, compressed, and makes them when they are first asked for.
// With many custom kinds they are large: no more than one such kind is a tree at a time.
package openapi

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
)

// Info is what documents say about the server.
type Info struct {
	Title, Version string
	Names          names.Profile
	Docs           *schema.Docs // of the Go types of programs, or nil
	Others         *Others      // of other servers, or nil

	press *press // of a Cache, or nil
}

// V3 returns the OpenAPI 3.0 document of one group version, whose served types
// are given.
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
	}, v3Messages(), info.press)
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
	}, v2Messages(), info.press)
}

// builder gathers what goes into one document.
type builder struct {
	names       names.Profile
	dialect     dialect
	docs        *schema.Docs
	paths       members                   // encoded already
	definitions members                   // of Go types; those of definitions are made when they are written
	defined     map[*schema.Struct]string // names of those in definitions
	lists       map[string]string         // names of lists, by item and kind
	described   map[parameter]map[string]any
	canonical   bool // the schemas at hand come from Go
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
	if v.Dummy == "" {
		item = b.kind(v)
	}
	b.operations(v, item)
}

// kindTree is how documents write a kind.
func kindTree(k meta.GroupVersionKind) map[string]any {
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}
