package openapi

import (
	"cmp"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
)

// operation is a method of a path.
type operation struct {
	method, action, id, doc string
	kind                    meta.GroupVersionKind // kind of the objects
	deprecated              bool
	body                    string   // definition of the request body; "": none
	takes                   []string // media types of the body; nil: any
	answer                  string   // definition of the response
	gives                   []string // media types of the response
	codes                   []int
}

// endpoint is a path below a version of a type, with the properties that its operations share.
type endpoint struct {
	*resource.Version
	path       string
	id         string // suffix of operation ids
	params     []parameter
	tag        string
	protobuf   bool
	item, list string // definitions of objects and lists
}

// operations adds the paths of a version.
func (b *builder) operations(v *resource.Version, item string) {
	base, proto := basePath(v.GroupVersion()), v.Proto() != nil
	at := endpoint{Version: v, path: base + "/" + v.Plural, id: cmp.Or(v.DiscoveryKind, v.Kind), tag: b.tag(v.GroupVersion()), protobuf: proto, item: item}
	if v.Act != nil {
		if v.Namespaced {
			at = at.namespaced(base)
		}
		b.add(at, []string{"create"})
		return
	}
	if v.DiscoveryKind == "" {
		at.list = b.list(v, item)
	}
	if v.Namespaced {
		everywhere := at
		everywhere.id += "ForAllNamespaces"
		b.add(everywhere, intersect(v.Verbs(), "list"))
		at = at.namespaced(base)
	}
	b.add(at, intersect(v.Verbs(), "list", "create", "deletecollection"))
	one := at
	one.path += "/{name}"
	one.params = append([]parameter{pathName}, at.params...)
	b.add(one, intersect(v.Verbs(), "get", "update", "patch", "delete"))
	for i := range v.Subresources {
		b.subresource(one, &v.Subresources[i])
	}
}

func (at endpoint) namespaced(base string) endpoint {
	at.path, at.id = base+"/namespaces/{namespace}/"+at.Plural, "Namespaced"+at.id
	at.params = []parameter{pathNamespace}
	return at
}

// subresource adds the path of a subresource.
func (b *builder) subresource(at endpoint, sub *resource.Subresource) {
	at.path += "/" + sub.Name
	at.id += camel(sub.Name)
	if sub.Connect != nil {
		b.connection(at, sub)
		return
	}
	kind := sub.WireKind(at.Version)
	if sub.Body != nil {
		at.item, at.protobuf = b.kind(sub.Body), sub.Body.Proto() != nil
	} else if kind != at.GVK() {
		at.item = ""
	}
	item := map[string]any{}
	for _, verb := range sub.Verbs() {
		op := b.operation(at, verb)
		op.kind = kind
		item[op.method] = b.render(op, at.tag)
	}
	b.path(at, item)
}

func intersect(have []string, want ...string) []string {
	var out []string
	for _, w := range want {
		for _, h := range have {
			if h == w {
				out = append(out, w)
			}
		}
	}
	return out
}

// add adds a path with the operations of verbs.
func (b *builder) add(at endpoint, verbs []string) {
	if len(verbs) == 0 {
		return
	}
	item := map[string]any{}
	for _, verb := range verbs {
		op := b.operation(at, verb)
		item[op.method] = b.render(op, at.tag)
	}
	b.path(at, item)
}

func (b *builder) path(at endpoint, item map[string]any) {
	item["parameters"] = b.parameters(append(at.params[:len(at.params):len(at.params)], queryPretty))
	b.paths[at.path] = meta.RawJSON(codec.EncodeValue(nil, item))
}

// operation returns the description of a verb at an endpoint.
func (b *builder) operation(at endpoint, verb string) operation {
	op := operation{kind: at.GVK(), deprecated: at.Deprecated != "", answer: at.item, gives: b.media(at.protobuf), codes: []int{200}}
	gv := b.idPart(at.Version.GroupVersion())
	id := func(word string) { op.id = word + gv + at.id }
	switch verb {
	case "list":
		op.method, op.action, op.doc, op.answer = "get", "list", "list or watch objects of kind "+at.Kind, at.list
		op.gives = append(op.gives, streams(op.gives)...)
		id("list")
	case "create":
		op.method, op.action, op.doc, op.body = "post", "post", "create "+article(at.Kind), at.item
		op.takes = nil
		op.codes = []int{200, 201, 202}
		id("create")
	case "deletecollection":
		op.method, op.action, op.doc = "delete", "deletecollection", "delete all selected objects of kind "+at.Kind
		op.body, op.answer = common[DeleteOptions](b), common[Status](b)
		op.id = "delete" + gv + "Collection" + at.id
	case "get":
		op.method, op.action, op.doc = "get", "get", "read "+article(at.Kind)
		id("read")
	case "update":
		op.method, op.action, op.doc, op.body = "put", "put", "replace "+article(at.Kind), at.item
		op.codes = []int{200, 201}
		id("replace")
	case "patch":
		op.method, op.action, op.doc = "patch", "patch", "change parts of "+article(at.Kind)
		op.body, op.takes, op.codes = common[Patch](b), patchTypes(at.Version), []int{200, 201}
		id("patch")
	case "delete":
		op.method, op.action, op.doc = "delete", "delete", "delete "+article(at.Kind)
		op.body, op.codes = common[DeleteOptions](b), []int{200, 202}
		if at.DeleteAnswersStatus {
			op.answer = common[Status](b)
		}
		id("delete")
	}
	return op
}

// media returns the media types of objects.
func (b *builder) media(protobuf bool) []string {
	types := []string{"application/json", "application/yaml"}
	if protobuf {
		types = append(types, b.names.ProtobufType())
	}
	return types
}

func streams(types []string) []string {
	var out []string
	for _, t := range types {
		if !strings.HasSuffix(t, "/yaml") {
			out = append(out, t+";stream=watch")
		}
	}
	return out
}

func article(kind string) string {
	if strings.ContainsRune("AEIO", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

// render returns an operation in the representation of the document's version.
func (b *builder) render(op operation, tag string) map[string]any {
	tree := map[string]any{
		"operationId": op.id, "description": op.doc, "tags": []any{tag}, b.names.Extension("action"): op.action,
	}
	if op.kind.Kind != "" {
		tree[b.names.Extension("group-version-kind")] = kindTree(op.kind)
	}
	if op.deprecated {
		tree["deprecated"] = true
	}
	params := b.parameters(query(op.action))
	if b.dialect == v2 {
		b.renderV2(tree, op, params)
		return tree
	}
	responses := map[string]any{"401": map[string]any{"description": "Unauthorized"}}
	for _, code := range op.codes {
		content := map[string]any{}
		for _, t := range op.gives {
			content[t] = map[string]any{"schema": b.referOrAny(op.answer)}
		}
		responses[strconv.Itoa(code)] = map[string]any{"description": codeText[code], "content": content}
	}
	tree["responses"] = responses
	if len(params) > 0 {
		tree["parameters"] = params
	}
	if op.method == "get" {
		return tree
	}
	content := map[string]any{}
	for _, t := range op.consumes() {
		content[t] = map[string]any{"schema": b.referOrAny(op.body)}
	}
	body := map[string]any{"content": content}
	if op.method != "delete" {
		body["required"] = true
	}
	tree["requestBody"] = body
	return tree
}

func (b *builder) renderV2(tree map[string]any, op operation, params []any) {
	tree["schemes"] = []any{"https"}
	tree["consumes"], tree["produces"] = meta.StringList(op.consumes()), meta.StringList(op.gives)
	responses := map[string]any{"401": map[string]any{"description": "Unauthorized"}}
	for _, code := range op.codes {
		responses[strconv.Itoa(code)] = map[string]any{"description": codeText[code], "schema": b.referOrAny(op.answer)}
	}
	tree["responses"] = responses
	if op.method != "get" {
		body := map[string]any{"name": "body", "in": "body", "schema": b.referOrAny(op.body)}
		if op.method != "delete" {
			body["required"] = true
		}
		params = append(params, body)
	}
	if len(params) > 0 {
		tree["parameters"] = params
	}
}

// consumes returns the media types of the request body.
func (op operation) consumes() []string {
	if op.takes == nil {
		return []string{"*/*"}
	}
	return op.takes
}

// plainText replaces the name of a definition if a response is not an object.
const plainText = "string"

func (b *builder) referOrAny(name string) map[string]any {
	switch name {
	case "":
		return map[string]any{"type": "object"}
	case plainText:
		return map[string]any{"type": "string"}
	}
	return b.refer(name)
}

var codeText = map[int]string{200: "OK", 201: "Created", 202: "Accepted"}

// group adds the content of a group version that does not depend on its types: the path that lists the types, and the
// definitions that clients look up.
func (b *builder) group(gv meta.GroupVersion) {
	resources, options, event := common[APIResourceList](b), common[DeleteOptions](b), common[WatchEvent](b)
	common[Status](b)
	for _, of := range []meta.GroupVersion{{Version: "v1"}, gv} {
		b.ofKind(b.tree(options), meta.GroupVersionKind{Group: of.Group, Version: of.Version, Kind: "DeleteOptions"})
		b.ofKind(b.tree(event), meta.GroupVersionKind{Group: of.Group, Version: of.Version, Kind: "WatchEvent"})
	}
	b.ofKind(b.tree(resources), meta.GroupVersionKind{Version: "v1", Kind: "APIResourceList"})
	b.ofKind(b.tree(common[Status](b)), meta.GroupVersionKind{Version: "v1", Kind: "Status"})
	op := operation{method: "get", doc: "list the resource types", id: "get" + b.idPart(gv) + "APIResources",
		answer: resources, gives: b.media(false), codes: []int{200}, action: "get"}
	tree := b.render(op, b.tag(gv))
	delete(tree, b.names.Extension("action"))
	b.paths[basePath(gv)+"/"] = map[string]any{"get": tree}
}

func (b *builder) tree(name string) map[string]any {
	def, _ := b.definitions[name].(map[string]any)
	return def
}

// basePath returns the path of a group version.
func basePath(gv meta.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// tag returns the tag of the operations of a group version.
func (b *builder) tag(gv meta.GroupVersion) string {
	return strings.ToLower(b.groupWords(gv.Group, "_")) + "_" + gv.Version
}

// idPart returns the part of operation ids for a group version.
func (b *builder) idPart(gv meta.GroupVersion) string {
	return b.groupWords(gv.Group, "") + camel(gv.Version)
}

// groupWords joins the words of a group name, without the domain that the groups of the API share.
func (b *builder) groupWords(group, sep string) string {
	if group == "" {
		return "Core"
	}
	var words []string
	for _, w := range strings.FieldsFunc(b.names.GroupBase(group), func(r rune) bool { return r == '.' || r == '-' }) {
		words = append(words, camel(w))
	}
	return strings.Join(words, sep)
}

func camel(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}
