package openapi

import (
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

var pathRest = parameter{"path", "path", "string", "The path of the request that is forwarded."}

// connection adds the paths of a connecting subresource. Its options are described as query parameters.
func (b *builder) connection(at endpoint, sub *resource.Subresource) {
	var options []parameter
	for _, f := range sub.Body.Schema().Struct.Fields {
		kind := map[schema.Type]string{schema.Boolean: "boolean", schema.Integer: "integer"}[f.Schema.Type]
		if f.Schema.Type == schema.Array && f.Schema.Items.Type == schema.Integer {
			kind = "integer"
		} else if kind == "" {
			kind = "string"
		}
		switch f.Name {
		case "apiVersion", "kind", "metadata":
			continue
		}
		options = append(options, parameter{f.Name, "query", kind, b.docs.Field(sub.Body.Schema().Struct, f)})
	}
	at.params = append(options, at.params...)
	if sub.Connect.Style == registry.Reads {
		op := operation{method: "get", action: "get", doc: "read " + sub.Name + " of " + article(at.Kind), kind: at.GVK(), codes: []int{200}, answer: plainText,
			id: "read" + b.idPart(at.Version.GroupVersion()) + at.id, gives: append([]string{"text/plain"}, b.media(at.Proto() != nil)...)}
		b.path(at, map[string]any{"get": b.render(op, at.tag)})
		return
	}
	b.connectPath(at, sub)
	if sub.Connect.Style == registry.Proxies {
		at.path, at.id = at.path+"/{path}", at.id+"WithPath"
		at.params = append([]parameter{pathRest}, at.params...)
		b.connectPath(at, sub)
	}
}

func (b *builder) connectPath(at endpoint, sub *resource.Subresource) {
	methods := map[string]string{"get": "Get", "post": "Post"}
	if sub.Connect.Style == registry.Proxies {
		methods = map[string]string{"get": "Get", "post": "Post", "put": "Put", "patch": "Patch", "delete": "Delete", "head": "Head", "options": "Options"}
	}
	item := map[string]any{}
	for method, word := range methods {
		op := operation{method: "get", action: "connect", doc: "connect " + method + " requests to " + sub.Name + " of " + article(at.Kind),
			kind: sub.WireKind(at.Version), codes: []int{200}, id: "connect" + b.idPart(at.Version.GroupVersion()) + word + at.id, answer: plainText, gives: []string{"*/*"}}
		item[method] = b.render(op, at.tag) // rendered as a get, so that no body is described
	}
	b.path(at, item)
}
