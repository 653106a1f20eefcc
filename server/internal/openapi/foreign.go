package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
)

// Others holds the documents of other servers, for the group versions that this server proxies. It is immutable.
type Others struct {
	Index map[string]string              // URLs of their documents of version 3, by path in the index
	V2    []*Foreign                     // parts to merge into the document of version 2
	V3    map[meta.GroupVersion]*Foreign // parts from which this server makes documents of version 3
}

// Equal reports whether documents made with o and p are the same.
func (o *Others) Equal(p *Others) bool {
	return maps.Equal(o.Index, p.Index) && slices.Equal(o.V2, p.V2) && maps.Equal(o.V3, p.V3)
}

// Foreign is the part of another server's document of version 2 for one group version: its paths, and the definitions
// that they refer to. It is immutable.
type Foreign struct {
	text   Text
	bodies int // size of the request and response bodies in version 3, in bytes
}

// Size returns the size of the part as JSON, in version 2 or version 3, whichever is larger, in bytes. The size of
// nil is 0.
func (f *Foreign) Size() int {
	if f == nil {
		return 0
	}
	return max(f.text.Size(), f.bodies)
}

// Equal reports whether two parts have the same content.
func (f *Foreign) Equal(g *Foreign) bool {
	return f == g || f != nil && g != nil && slices.Equal(f.text.gzip, g.text.gzip)
}

// Limits for the document of another server. Only one of its paths or definitions is decoded at a time.
const (
	foreignDepth   = 200
	foreignEntries = 10_000  // limit for each of paths, definitions and parameters
	foreignValues  = 50_000  // limit for a single path, definition or parameter
	foreignPart    = 8 << 20 // limit for the part of a group version, in bytes
)

const (
	definitionRef = "#/definitions/"
	parameterRef  = "#/parameters/"
)

// ForeignDocument is another server's document of version 2. Its members are not decoded.
type ForeignDocument struct{ paths, definitions, parameters map[string][]byte }

// OpenForeign finds the members of a document. The result shares text.
func OpenForeign(text []byte) (*ForeignDocument, error) {
	if !codec.IsObject(text, foreignDepth) {
		return nil, errors.New("not a JSON object, or nested too deeply")
	}
	if codec.ScalarText(codec.FindField(text, "swagger")) != "2.0" {
		return nil, errors.New("not an OpenAPI document of version 2")
	}
	d := &ForeignDocument{}
	for name, to := range map[string]*map[string][]byte{"paths": &d.paths, "definitions": &d.definitions, "parameters": &d.parameters} {
		*to = map[string][]byte{}
		for key, value := range codec.Fields(codec.FindField(text, name)) {
			if len(*to) == foreignEntries {
				return nil, fmt.Errorf("more than %d %s", foreignEntries, name)
			}
			(*to)[string(key)] = value
		}
	}
	return d, nil
}

// Part returns the part of the document for a group version, or nil if the document has no path of it. Members that
// version 2 does not define are dropped. It returns an error if clients could not read the part, because they could
// then not read the whole document into which the part is merged.
func (d *ForeignDocument) Part(gv meta.GroupVersion, p names.Profile) (*Foreign, error) {
	r := partReader{document: d, version: gv, kinds: p.Extension("group-version-kind"), definitions: members{}, encodings: v2Messages()}
	paths, below := members{}, basePath(gv)+"/"
	for path, text := range d.paths {
		if strings.HasPrefix(path+"/", below) {
			item, err := r.path(text)
			if err != nil {
				return nil, fmt.Errorf("path %q: %w", path, err)
			}
			paths[path] = item
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	for len(r.pending) > 0 {
		name := r.pending[len(r.pending)-1]
		r.pending = r.pending[:len(r.pending)-1]
		def, err := r.definition(d.definitions[name])
		if err != nil {
			return nil, fmt.Errorf("definition %q: %w", name, err)
		}
		r.definitions[name] = def
	}
	m := &maker{}
	w := newWriter(m)
	w.value(members{"paths": paths, "definitions": r.definitions})
	return &Foreign{w.end(m), r.bodies}, nil
}

// partReader makes the part of a document for a group version.
type partReader struct {
	document    *ForeignDocument
	version     meta.GroupVersion
	kinds       string // name of the extension with the kinds of a definition
	encodings   messages
	definitions members  // definitions that are referred to
	pending     []string // definitions that are not made yet
	size        int      // of the paths and definitions made so far, in bytes
	bodies      int      // size of the bodies of these paths in version 3, in bytes
}

// decode decodes a member of the document.
func (r *partReader) decode(text []byte) (map[string]any, error) {
	if codec.CountValues(text) > foreignValues {
		return nil, fmt.Errorf("more than %d values", foreignValues)
	}
	tree, _, err := codec.DecodeJSON(text, codec.Limits{Depth: foreignDepth})
	return tree, err
}

// encode encodes a path or definition, and counts its size.
func (r *partReader) encode(tree map[string]any) (meta.RawJSON, error) {
	text := codec.EncodeValue(nil, tree)
	if r.size += len(text); r.size > foreignPart {
		return "", fmt.Errorf("the paths and definitions of the version exceed %d bytes", foreignPart)
	}
	return meta.RawJSON(text), nil
}

// path returns a path of the document, with references to shared parameters replaced by the parameters.
func (r *partReader) path(text []byte) (meta.RawJSON, error) {
	tree, err := r.decode(text)
	if err != nil {
		return "", err
	}
	size := len(text)
	for _, part := range append(slices.Collect(maps.Values(tree)), tree) {
		of, _ := part.(map[string]any)
		list, _ := of["parameters"].([]any)
		for i, p := range list {
			if list[i], err = r.parameter(p, &size); err != nil {
				return "", err
			}
		}
	}
	if err := r.sanitize("PathItem", tree); err != nil {
		return "", err
	}
	bodies := bodySize(tree)
	if bodies > maxPath {
		return "", errors.New("the bodies are too long when repeated for each media type")
	}
	if r.bodies += bodies; r.bodies > foreignPart {
		return "", fmt.Errorf("the bodies of all paths, repeated for each media type, exceed %d bytes", foreignPart)
	}
	return r.encode(tree)
}

// maxPath bounds the size of a path with its shared parameters, and the size of its bodies in version 3, in bytes of
// JSON. A short document could otherwise expand to a very long document, because version 3 repeats a body for each
// media type, and each reference repeats a parameter.
const maxPath = 1 << 20

// parameter returns a parameter, or the shared parameter that it refers to. It adds the size of the latter to size,
// the size of the path.
func (r *partReader) parameter(p any, size *int) (any, error) {
	if name, shared := refName(p, parameterRef); shared {
		text, ok := r.document.parameters[name]
		if !ok {
			return nil, fmt.Errorf("unknown parameter %q", name)
		}
		if *size += len(text); *size > maxPath {
			return nil, errors.New("the parameters are too long")
		}
		var err error
		if p, err = r.decode(text); err != nil {
			return nil, err
		}
	}
	if o := meta.NewObject(treeOf(p)); o.String("name") == "" || o.String("in") == "" {
		return nil, errors.New("a parameter has no name or no location")
	}
	return p, nil
}

func treeOf(v any) map[string]any {
	tree, _ := v.(map[string]any)
	return tree
}

// definition returns a definition of the document.
func (r *partReader) definition(text []byte) (meta.RawJSON, error) {
	def, err := r.decode(text)
	if err != nil {
		return "", err
	}
	if err := r.sanitize("Schema", def); err != nil {
		return "", err
	}
	keepKinds(def, r.kinds, r.version)
	return r.encode(def)
}

// keepKinds removes the kinds of other group versions from a definition, because clients find the definition of a
// kind by this extension.
func keepKinds(def map[string]any, key string, gv meta.GroupVersion) {
	kinds, _ := def[key].([]any)
	kinds = slices.DeleteFunc(kinds, func(e any) bool {
		k, _ := e.(map[string]any)
		return k["group"] != gv.Group || k["version"] != gv.Version
	})
	if delete(def, key); len(kinds) > 0 {
		def[key] = kinds
	}
}

// schema checks that clients can read a schema with sanitized members. Clients reject a whole document
// if they cannot read one of its schemas.
func (r *partReader) schema(s map[string]any) error {
	if ref, is := s["$ref"].(string); is {
		return r.require(ref)
	}
	switch s["type"] {
	case nil, "object", "string", "number", "integer", "boolean":
	case "array":
		if s["items"] == nil {
			return errors.New("an array has no items")
		}
	default:
		return fmt.Errorf("unknown type %q", s["type"])
	}
	return nil
}

// require adds the definition that a schema refers to.
func (r *partReader) require(ref string) error {
	name, ok := strings.CutPrefix(ref, definitionRef)
	if !ok || r.document.definitions[name] == nil {
		return fmt.Errorf("unknown definition %q", ref)
	}
	if _, added := r.definitions[name]; !added {
		r.definitions[name] = nil
		r.pending = append(r.pending, name)
	}
	return nil
}

// refName returns the rest of the reference in v, if the reference begins with prefix.
func refName(v any, prefix string) (string, bool) {
	ref, _ := treeOf(v)["$ref"].(string)
	return strings.CutPrefix(ref, prefix)
}

// texts returns the paths and definitions of a part as JSON.
func (f *Foreign) texts() (paths, definitions map[string]meta.RawJSON) {
	paths, definitions = map[string]meta.RawJSON{}, map[string]meta.RawJSON{}
	text := f.text.Bytes()
	for name, to := range map[string]map[string]meta.RawJSON{"paths": paths, "definitions": definitions} {
		for key, value := range codec.Fields(codec.FindField(text, name)) {
			to[string(key)] = meta.RawJSON(value)
		}
	}
	return paths, definitions
}

// merge adds a part to the document. A definition is renamed if the document has a different definition of that name.
func (b *builder) merge(f *Foreign) {
	paths, definitions := f.texts()
	renamed := map[string]string{}
	for name, def := range definitions {
		if _, taken := b.definitions[name]; taken && !b.sameDefinition(name, def) {
			renamed[name] = b.freeName(name, definitions)
		}
	}
	for name, def := range definitions {
		if _, taken := b.definitions[name]; !taken || renamed[name] != "" {
			b.definitions[cmp.Or(renamed[name], name)] = withRenamedRefs(def, renamed)
			continue
		}
		text := codec.FindField([]byte(def), b.names.Extension("group-version-kind"))
		if kinds, _ := meta.RawJSON(text).Value().([]any); len(kinds) > 0 {
			b.ofKinds(b.definitionTree(name), kinds)
		}
	}
	for path, item := range paths {
		b.paths[path] = withRenamedRefs(item, renamed)
	}
}

// definitionTree returns a definition in decoded form, and stores it in the document in this form.
func (b *builder) definitionTree(name string) map[string]any {
	if text, is := b.definitions[name].(meta.RawJSON); is {
		b.definitions[name] = text.Value()
	}
	return b.tree(name)
}

// withRenamedRefs returns a part of a document with the new names in references to definitions.
func withRenamedRefs(text meta.RawJSON, to map[string]string) meta.RawJSON {
	if len(to) == 0 {
		return text
	}
	tree := text.Value()
	rewriteRefs(tree, func(ref string) string {
		if name, ok := strings.CutPrefix(ref, definitionRef); ok && to[name] != "" {
			return definitionRef + to[name]
		}
		return ref
	})
	return meta.RawJSON(codec.EncodeValue(nil, tree))
}

// freeName returns a name that neither the document nor the part has.
func (b *builder) freeName(name string, part map[string]meta.RawJSON) string {
	for i := 2; ; i++ {
		next := name + "_v" + strconv.Itoa(i)
		if _, is := part[next]; !is && b.definitions[next] == nil {
			return next
		}
	}
}

// sameDefinition reports whether def equals the document's definition of that name. A definition that is made when it
// is encoded, as of a custom kind, equals no other.
func (b *builder) sameDefinition(name string, def meta.RawJSON) bool {
	present, late := b.definitions[name], false
	switch is := present.(type) {
	case map[string]any:
		present = meta.RawJSON(codec.EncodeValue(nil, is)).Value()
	case meta.RawJSON:
		if is == def {
			return true
		}
		present = is.Value()
	default:
		late = true
	}
	own, other := treeOf(present), treeOf(def.Value())
	key := b.names.Extension("group-version-kind") // ignore the kinds, which differ between servers
	delete(own, key)
	delete(other, key)
	return !late && meta.Equal(own, other)
}

// ofKinds adds kinds to the kinds that a definition describes.
func (b *builder) ofKinds(def map[string]any, more []any) {
	key := b.names.Extension("group-version-kind")
	kinds, _ := def[key].([]any)
	for _, k := range more {
		if !slices.ContainsFunc(kinds, func(e any) bool { return meta.Equal(e, k) }) {
			kinds = append(kinds, k)
		}
	}
	if kinds != nil {
		def[key] = kinds
	}
}

// rewriteRefs replaces each reference in a tree by the result of to.
func rewriteRefs(v any, to func(ref string) string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			rewriteRefs(e, to)
		}
	case map[string]any:
		if ref, is := v["$ref"].(string); is {
			v["$ref"] = to(ref)
		}
		for _, e := range v {
			rewriteRefs(e, to)
		}
	}
}

// sanitize removes the members of v that the message with that name does not define. It returns an error for a member
// of the wrong type, or a reference to something that does not exist.
func (r *partReader) sanitize(name string, v any) error {
	msg := r.encodings[name]
	if msg.wrap != nil {
		return r.sanitizeMember(name, msg.wrap(v), v)
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is not an object", name)
	}
	for key, value := range tree {
		f, known := msg.members[key]
		var err error
		switch {
		case known:
			err = r.sanitizeMember(key, f, value)
		case msg.extensions != 0 && strings.HasPrefix(key, "x-"):
		case msg.entries != 0:
			err = r.sanitize(msg.entry, value)
		default:
			delete(tree, key)
		}
		if err != nil {
			return err
		}
	}
	switch name {
	case "Schema":
		return r.schema(tree)
	case "JsonReference":
		return fmt.Errorf("unsupported reference %q", tree["$ref"])
	}
	return nil
}

// itemEncoding is the encoding of an item of a list.
var itemEncoding = map[encoding]encoding{texts: text, yamls: yaml, submessages: submessage}

func (r *partReader) sanitizeMember(name string, f member, v any) error {
	ok := false
	switch f.encoding {
	case text:
		_, ok = v.(string)
	case boolean:
		_, ok = v.(bool)
	case integer:
		_, ok = v.(int64)
	case double:
		_, whole := v.(int64)
		_, ok = v.(float64)
		ok = ok || whole
	case yaml, omitted:
		ok = true
	case submessage:
		return r.sanitize(f.message, v)
	default:
		var list []any
		if list, ok = v.([]any); ok {
			for _, e := range list {
				if err := r.sanitizeMember(name, member{f.number, itemEncoding[f.encoding], f.message}, e); err != nil {
					return err
				}
			}
		}
	}
	if !ok {
		return fmt.Errorf("%q has the wrong type", name)
	}
	return nil
}
