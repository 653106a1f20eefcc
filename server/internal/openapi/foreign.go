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

// Others are other servers' documents, of versions that are part of this server. They
// never change.
type Others struct {
	Index map[string]string              // where those of version 3 are, by their path in the index
	V2    []*Foreign                     // what is part of the document of version 2
	V3    map[meta.GroupVersion]*Foreign // those of which documents of version 3 are made here
}

// Equal reports whether documents are the same with the one as with the other.
func (o *Others) Equal(p *Others) bool {
	return maps.Equal(o.Index, p.Index) && slices.Equal(o.V2, p.V2) && maps.Equal(o.V3, p.V3)
}

// Foreign is the part of another server's document of version 2 that is about one version
// of a group: its paths, and the definitions that they refer to.
type Foreign struct {
	text   Text
	bodies int // bytes of the bodies in version 3
}

// Size returns how long the part is as JSON, in the longer of both versions, in bytes. Of none
// it is zero.
func (f *Foreign) Size() int {
	if f == nil {
		return 0
	}
	return max(f.text.Size(), f.bodies)
}

// Equal reports whether two parts say the same.
func (f *Foreign) Equal(g *Foreign) bool {
	return f == g || f != nil && g != nil && slices.Equal(f.text.gzip, g.text.gzip)
}

// Bounds of what another server sends. No more than one of its paths or definitions is a
// tree at a time.
const (
	foreignDepth   = 200
	foreignEntries = 10_000  // paths, definitions and parameters, of each
	foreignValues  = 50_000  // of one of them
	foreignPart    = 8 << 20 // bytes of the part about one version
)

const (
	definitionRef = "#/definitions/"
	parameterRef  = "#/parameters/"
)

// ForeignDocument is another server's document of version 2, as text.
type ForeignDocument struct{ paths, definitions, parameters map[string][]byte }

// OpenForeign finds the parts of a document, whose text it holds on to.
func OpenForeign(text []byte) (*ForeignDocument, error) {
	if !codec.IsObject(text, foreignDepth) {
		return nil, errors.New("it is no JSON object, or too deep")
	}
	if codec.ScalarText(codec.FindField(text, "swagger")) != "2.0" {
		return nil, errors.New("it is no OpenAPI document of version 2")
	}
	d := &ForeignDocument{}
	for name, to := range map[string]*map[string][]byte{"paths": &d.paths, "definitions": &d.definitions, "parameters": &d.parameters} {
		*to = map[string][]byte{}
		for key, value := range codec.Fields(codec.FindField(text, name)) {
			if len(*to) == foreignEntries {
				return nil, fmt.Errorf("it has more than %d %s", foreignEntries, name)
			}
			(*to)[string(key)] = value
		}
	}
	return d, nil
}

// Part returns what the document says of a version, nil if that is nothing. What version 2
// does not know is left out. What clients cannot read is an error, since they could not read
// the whole of which it would be a part.
func (d *ForeignDocument) Part(gv meta.GroupVersion, p names.Profile) (*Foreign, error) {
	r := reader{document: d, version: gv, kinds: p.Extension("group-version-kind"), definitions: members{}, form: v2Messages()}
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
	for len(r.wanted) > 0 {
		name := r.wanted[len(r.wanted)-1]
		r.wanted = r.wanted[:len(r.wanted)-1]
		def, err := r.definition(d.definitions[name])
		if err != nil {
			return nil, fmt.Errorf("definition %q: %w", name, err)
		}
		r.definitions[name] = def
	}
	made := &press{}
	w := newWriter(made)
	w.value(members{"paths": paths, "definitions": r.definitions})
	return &Foreign{w.end(made), r.bodies}, nil
}

// reader makes the part that is about a version.
type reader struct {
	document    *ForeignDocument
	version     meta.GroupVersion
	kinds       string // the extension that names them
	form        messages
	definitions members  // that are referred to
	wanted      []string // those of them that are not made yet
	size        int      // of what was made
	bodies      int      // of the paths that were made, as they will be in version 3
}

// decode makes a tree of a part of the document.
func (r *reader) decode(text []byte) (map[string]any, error) {
	if codec.CountValues(text) > foreignValues {
		return nil, fmt.Errorf("it has more than %d values", foreignValues)
	}
	tree, _, err := codec.DecodeJSON(text, codec.Limits{Depth: foreignDepth})
	return tree, err
}

// encode makes a text of a tree.
func (r *reader) encode(tree map[string]any) (meta.RawJSON, error) {
	text := codec.EncodeValue(nil, tree)
	if r.size += len(text); r.size > foreignPart {
		return "", fmt.Errorf("what belongs to the version is longer than %d bytes", foreignPart)
	}
	return meta.RawJSON(text), nil
}

// path returns a path of the document, with the shared parameters in their places.
func (r *reader) path(text []byte) (meta.RawJSON, error) {
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
	if err := r.fit("PathItem", tree); err != nil {
		return "", err
	}
	bodies := spread(tree)
	if bodies > maxPath {
		return "", errors.New("what its media types stand for is too long")
	}
	if r.bodies += bodies; r.bodies > foreignPart {
		return "", fmt.Errorf("what the media types of all paths stand for is longer than %d bytes", foreignPart)
	}
	return r.encode(tree)
}

// maxPath bounds a path with the shared parameters in it, and what it says in version 3 of
// each media type, in bytes of their JSON: who names something long often makes much of little.
const maxPath = 1 << 20

// parameter returns a parameter, or the shared one that it refers to. size is how long the
// path is so far.
func (r *reader) parameter(p any, size *int) (any, error) {
	if name, shared := refOf(p, parameterRef); shared {
		text, ok := r.document.parameters[name]
		if !ok {
			return nil, fmt.Errorf("there is no parameter %q", name)
		}
		if *size += len(text); *size > maxPath {
			return nil, errors.New("its parameters are too long")
		}
		var err error
		if p, err = r.decode(text); err != nil {
			return nil, err
		}
	}
	if o := meta.NewObject(treeOf(p)); o.String("name") == "" || o.String("in") == "" {
		return nil, errors.New("it has a parameter without a name or a place")
	}
	return p, nil
}

func treeOf(v any) map[string]any {
	tree, _ := v.(map[string]any)
	return tree
}

// definition returns a definition of the document.
func (r *reader) definition(text []byte) (meta.RawJSON, error) {
	def, err := r.decode(text)
	if err != nil {
		return "", err
	}
	if err := r.fit("Schema", def); err != nil {
		return "", err
	}
	keepKinds(def, r.kinds, r.version)
	return r.encode(def)
}

// keepKinds leaves out of what a definition says that it describes all kinds but those of a
// version: clients find the definitions of kinds by that.
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

// schema checks that clients can read a schema, of which the members are those of one. They
// read no document with one that they cannot.
func (r *reader) schema(s map[string]any) error {
	if ref, is := s["$ref"].(string); is {
		return r.take(ref)
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

// take wants the definition that a schema refers to.
func (r *reader) take(ref string) error {
	name, ok := strings.CutPrefix(ref, definitionRef)
	if !ok || r.document.definitions[name] == nil {
		return fmt.Errorf("there is no definition %q", ref)
	}
	if _, taken := r.definitions[name]; !taken {
		r.definitions[name] = nil
		r.wanted = append(r.wanted, name)
	}
	return nil
}

// refOf returns the rest of what a value refers to, if that begins with a prefix.
func refOf(v any, prefix string) (string, bool) {
	ref, _ := treeOf(v)["$ref"].(string)
	return strings.CutPrefix(ref, prefix)
}

// texts returns the members of a part, as text.
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

// merge adds the part to the document that is made. A definition of a name that is taken
// by another one gets a name of its own.
func (b *builder) merge(f *Foreign) {
	paths, definitions := f.texts()
	renamed := map[string]string{}
	for name, def := range definitions {
		if _, taken := b.definitions[name]; taken && !b.same(name, def) {
			renamed[name] = b.free(name, definitions)
		}
	}
	for name, def := range definitions {
		if _, taken := b.definitions[name]; !taken || renamed[name] != "" {
			b.definitions[cmp.Or(renamed[name], name)] = redirected(def, renamed)
			continue
		}
		said := codec.FindField([]byte(def), b.names.Extension("group-version-kind"))
		if kinds, _ := meta.RawJSON(said).Value().([]any); len(kinds) > 0 {
			b.ofKinds(b.opened(name), kinds)
		}
	}
	for path, item := range paths {
		b.paths[path] = redirected(item, renamed)
	}
}

// opened returns a definition as a tree, which is then what the document has.
func (b *builder) opened(name string) map[string]any {
	if text, is := b.definitions[name].(meta.RawJSON); is {
		b.definitions[name] = text.Value()
	}
	return b.tree(name)
}

// redirected returns a part of a document with the new names of definitions.
func redirected(text meta.RawJSON, to map[string]string) meta.RawJSON {
	if len(to) == 0 {
		return text
	}
	tree := text.Value()
	redirect(tree, func(ref string) string {
		if name, ok := strings.CutPrefix(ref, definitionRef); ok && to[name] != "" {
			return definitionRef + to[name]
		}
		return ref
	})
	return meta.RawJSON(codec.EncodeValue(nil, tree))
}

// free returns a name that neither the document nor the part has.
func (b *builder) free(name string, part map[string]meta.RawJSON) string {
	for i := 2; ; i++ {
		next := name + "_v" + strconv.Itoa(i)
		if _, is := part[next]; !is && b.definitions[next] == nil {
			return next
		}
	}
}

// same reports whether a definition says what that of its name says here. Those that are
// made late are of definitions, and no others.
func (b *builder) same(name string, def meta.RawJSON) bool {
	there, late := b.definitions[name], false
	switch is := there.(type) {
	case map[string]any:
		there = meta.RawJSON(codec.EncodeValue(nil, is)).Value()
	case meta.RawJSON:
		if is == def {
			return true
		}
		there = is.Value()
	default:
		late = true
	}
	one, other := treeOf(there), treeOf(def.Value())
	key := b.names.Extension("group-version-kind") // each server has kinds of its own
	delete(one, key)
	delete(other, key)
	return !late && meta.Equal(one, other)
}

// ofKinds says that a definition is of kinds, beside those that it has already.
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

// redirect changes what the schemas of a tree refer to.
func redirect(v any, to func(ref string) string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			redirect(e, to)
		}
	case map[string]any:
		if ref, is := v["$ref"].(string); is {
			v["$ref"] = to(ref)
		}
		for _, e := range v {
			redirect(e, to)
		}
	}
}

// fit makes a value one of a message: it leaves out the keys that the message does not
// know. An error says what is of another type, or refers to what is not there.
func (r *reader) fit(name string, v any) error {
	msg := r.form[name]
	if msg.wrap != nil {
		return r.fitMember(name, msg.wrap(v), v)
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is no object", name)
	}
	for key, value := range tree {
		f, known := msg.members[key]
		var err error
		switch {
		case known:
			err = r.fitMember(key, f, value)
		case msg.extensions != 0 && strings.HasPrefix(key, "x-"):
		case msg.entries != 0:
			err = r.fit(msg.entry, value)
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
		return fmt.Errorf("there is nothing called %q", tree["$ref"])
	}
	return nil
}

// single is the form of an item of a list.
var single = map[form]form{texts: text, yamls: yaml, many: one}

func (r *reader) fitMember(name string, f member, v any) error {
	ok := false
	switch f.form {
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
	case yaml, none:
		ok = true
	case one:
		return r.fit(f.message, v)
	default:
		var list []any
		if list, ok = v.([]any); ok {
			for _, e := range list {
				if err := r.fitMember(name, member{f.number, single[f.form], f.message}, e); err != nil {
					return err
				}
			}
		}
	}
	if !ok {
		return fmt.Errorf("%q is of another type", name)
	}
	return nil
}
