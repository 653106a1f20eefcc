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
	Index map[string]string // where those of version 3 are, by their path in the index
	V2    []*Foreign        // what is part of the document of version 2
}

// Equal reports whether documents are the same with the one as with the other.
func (o *Others) Equal(p *Others) bool {
	return maps.Equal(o.Index, p.Index) && slices.Equal(o.V2, p.V2)
}

// Foreign is the part of another server's document of version 2 that is about one version
// of a group: its paths, and the definitions that they refer to.
type Foreign struct{ text Text }

// Size returns how long the part is as JSON, in bytes.
func (f *Foreign) Size() int { return f.text.Size() }

// Equal reports whether two parts say the same.
func (f *Foreign) Equal(g *Foreign) bool {
	return f == g || f != nil && g != nil && slices.Equal(f.text.gzip, g.text.gzip)
}

// foreignDepth bounds the nesting of what another server sends.
const foreignDepth = 200

const (
	definitionRef = "#/definitions/"
	parameterRef  = "#/parameters/"
)

// ReadForeign reads another server's document of version 2. What version 2 does not know
// is left out; what is no such document is an error, since the whole of which it would be a
// part would be none either.
func ReadForeign(text []byte, gv meta.GroupVersion, p names.Profile) (*Foreign, error) {
	tree, _, err := codec.DecodeJSON(text, codec.Limits{Depth: foreignDepth})
	if err != nil {
		return nil, err
	}
	doc := meta.NewObject(tree)
	if doc.String("swagger") != "2.0" {
		return nil, errors.New("it is no OpenAPI document of version 2")
	}
	paths, below := map[string]any{}, basePath(gv)+"/"
	for path, item := range doc.Map("paths") {
		if strings.HasPrefix(path+"/", below) {
			paths[path] = item
		}
	}
	r := reader{shared: doc.Map("parameters"), all: doc.Map("definitions"), definitions: map[string]any{}, sizes: map[string]int{}}
	if err := r.resolve(paths); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		name string
		tree map[string]any
	}{{"Paths", paths}, {"Definitions", r.definitions}} {
		if err := v2Messages().fit(part.name, part.tree); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.ToLower(part.name), err)
		}
	}
	for _, def := range r.definitions {
		keepKinds(def.(map[string]any), p.Extension("group-version-kind"), gv)
	}
	made := &press{}
	w := newWriter(made)
	w.value(members{"paths": paths, "definitions": r.definitions})
	return &Foreign{w.end(made)}, nil
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

// maxCopied bounds what copies of shared parameters take, in bytes of JSON.
const maxCopied = 8 << 20

// reader gathers what the paths of a document refer to.
type reader struct {
	shared, all map[string]any // parameters, definitions
	definitions map[string]any // that are referred to
	sizes       map[string]int // of the shared parameters that are referred to
	copied      int
}

// resolve puts shared parameters into the place of what refers to them, and takes the
// definitions that a value refers to.
func (r *reader) resolve(v any) error {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			name, shared := refOf(e, parameterRef)
			var err error
			if shared {
				v[i], err = r.parameter(name)
			} else {
				err = r.resolve(e)
			}
			if err != nil {
				return err
			}
		}
	case map[string]any:
		if name, ok := refOf(v, definitionRef); ok {
			return r.take(name)
		}
		for _, e := range v {
			if err := r.resolve(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// parameter returns a shared parameter. It holds no others, or a short document could be a
// tree without end.
func (r *reader) parameter(name string) (any, error) {
	p, ok := r.shared[name]
	if !ok {
		return nil, fmt.Errorf("there is no parameter %q", name)
	}
	size, known := r.sizes[name]
	if !known {
		size = len(codec.EncodeValue(nil, p))
		r.sizes[name] = size
		own := reader{all: r.all, definitions: r.definitions}
		if err := own.resolve(p); err != nil {
			return nil, err
		}
	}
	if r.copied += size; r.copied > maxCopied {
		return nil, errors.New("its parameters are too long")
	}
	return p, nil
}

func (r *reader) take(name string) error {
	if _, done := r.definitions[name]; done {
		return nil
	}
	def, ok := r.all[name]
	if !ok {
		return fmt.Errorf("there is no definition %q", name)
	}
	r.definitions[name] = def
	return r.resolve(def)
}

// refOf returns the rest of what a value refers to, if that begins with a prefix.
func refOf(v any, prefix string) (string, bool) {
	tree, _ := v.(map[string]any)
	ref, _ := tree["$ref"].(string)
	return strings.CutPrefix(ref, prefix)
}

// merge adds the part to the document that is made. A definition of a name that is taken
// by another one gets a name of its own.
func (b *builder) merge(f *Foreign) {
	tree, _, err := codec.DecodeJSON(f.text.Bytes(), codec.Limits{})
	if err != nil {
		return // it is our own encoding
	}
	doc := meta.NewObject(tree)
	definitions, renamed := doc.Map("definitions"), map[string]string{}
	for name, def := range definitions {
		if _, taken := b.definitions[name]; taken && !b.same(name, def) {
			renamed[name] = b.free(name, definitions)
		}
	}
	redirect(tree, renamed)
	for name, def := range definitions {
		if _, taken := b.definitions[name]; !taken || renamed[name] != "" {
			b.definitions[cmp.Or(renamed[name], name)] = def
			continue
		}
		kinds, _ := def.(map[string]any)[b.names.Extension("group-version-kind")].([]any)
		b.ofKinds(b.tree(name), kinds)
	}
	maps.Copy(b.paths, doc.Map("paths"))
}

// free returns a name that neither the document nor the part has.
func (b *builder) free(name string, part map[string]any) string {
	for i := 2; ; i++ {
		next := name + "_v" + strconv.Itoa(i)
		if b.definitions[next] == nil && part[next] == nil {
			return next
		}
	}
}

// same reports whether a definition says what that of its name says here. Those that are
// made late are of definitions, and no others.
func (b *builder) same(name string, def any) bool {
	there, ok := b.definitions[name].(map[string]any)
	other, known := def.(map[string]any)
	if !ok || !known {
		return false
	}
	there, other = maps.Clone(there), maps.Clone(other)
	key := b.names.Extension("group-version-kind") // each server has kinds of its own
	delete(there, key)
	delete(other, key)
	return meta.Equal(meta.RawJSON(codec.EncodeValue(nil, there)).Value(), other)
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

func redirect(v any, to map[string]string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			redirect(e, to)
		}
	case map[string]any:
		if name, ok := refOf(v, definitionRef); ok && to[name] != "" {
			v["$ref"] = definitionRef + to[name]
		}
		for _, e := range v {
			redirect(e, to)
		}
	}
}

// fit makes a value one of a message: it leaves out the keys that the message does not
// know. An error says what is of another type.
func (m messages) fit(name string, v any) error {
	msg := m[name]
	if msg.wrap != nil {
		return m.fitMember(name, msg.wrap(v), v)
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
			err = m.fitMember(key, f, value)
		case msg.extensions != 0 && strings.HasPrefix(key, "x-"):
		case msg.entries != 0:
			err = m.fit(msg.entry, value)
		default:
			delete(tree, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// single is the form of an item of a list.
var single = map[form]form{texts: text, yamls: yaml, many: one}

func (m messages) fitMember(name string, f member, v any) error {
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
		return m.fit(f.message, v)
	default:
		var list []any
		if list, ok = v.([]any); ok {
			for _, e := range list {
				if err := m.fitMember(name, member{f.number, single[f.form], f.message}, e); err != nil {
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
