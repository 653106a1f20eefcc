package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/api/meta"
)

// DecodeYAML decodes one object in YAML 1.1, which includes JSON, with the rules of DecodeJSON:
// an empty stream is ErrNull, and several documents are an error. Numbers such as 3.0 and 3e0
// are integers. The expansion of aliases is limited. duplicates has the decoder's messages,
// such as: line 9: key "a" already set in map.
func DecodeYAML(data []byte, l Limits) (tree map[string]any, duplicates []string, err error) {
	l = l.withDefaults()
	l.WholeFloats = true
	if l.Bytes > 0 && len(data) > l.Bytes {
		return nil, nil, tooLarge(l.Bytes)
	}
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return nil, nil, ErrNull
	}
	if text[0] == '{' { // most clients send JSON as YAML
		if tree, duplicates, err := DecodeJSON(data, l); err == nil && len(duplicates) == 0 {
			return tree, nil, nil
		}
	}
	if directives(data) > maxDirectives {
		return nil, nil, badYAML("more than %d directives", maxDirectives)
	}
	if err := onlyDocument(data); err != nil {
		return nil, nil, err
	}
	if bytes.IndexByte(data, '&') >= 0 && bytes.IndexByte(data, '*') >= 0 {
		if err := walkYAML(data, l); err != nil {
			return nil, nil, err
		}
	}
	asJSON, strictErr := yaml.YAMLToJSONStrict(data)
	if strictErr != nil {
		if asJSON, err = yaml.YAMLToJSON(data); err != nil {
			return nil, nil, badYAML("%v", err)
		}
		var repeated *yamlv2.TypeError
		if errors.As(strictErr, &repeated) {
			duplicates = repeated.Errors[:min(len(repeated.Errors), l.Duplicates)]
		}
	}
	tree, _, err = DecodeJSON(asJSON, l)
	return tree, duplicates, err
}

func badYAML(format string, args ...any) *meta.Status {
	why := fmt.Sprintf(format, args...)
	if len(why) > 256 {
		why = strings.ToValidUTF8(why[:256], "") + "…"
	}
	return meta.BadRequest("the body is no valid YAML: %s", why)
}

// onlyDocument returns an error if another document follows: the decoder stops at the end of
// the first document, which in flow style is its last brace.
func onlyDocument(data []byte) error {
	d := yamlv2.NewDecoder(bytes.NewReader(data))
	for n := 0; ; n++ {
		var doc yamlNode
		switch err := d.Decode(&doc); {
		case err == io.EOF:
			return nil
		case err != nil:
			return badYAML("%v", err)
		case doc.decode != nil && n > 0:
			return badYAML("more than one document")
		}
	}
}

// maxDirectives limits the lines that may be directives, because the decoder compares each with
// all earlier ones.
const maxDirectives = 100

// directives counts the lines that begin with a percent sign, for all line ends of YAML. A zero
// counts as a line end because UTF-16 has zeros between ASCII characters.
func directives(data []byte) (n int) {
	for i, c := range data {
		if c == '%' && (i == 0 || endsLine(data[:i])) {
			n++
		}
	}
	return n
}

func endsLine(data []byte) bool {
	return slices.ContainsFunc([]string{"\n", "\r", "\u0085", "\u2028", "\u2029", "\ufeff", "\x00"}, func(end string) bool {
		return bytes.HasSuffix(data, []byte(end))
	})
}

// Limits on the expansion of aliases: maxExpanded bytes of text, and maxAliased bytes in each
// key of a text with aliases, which may repeat the key. A text may expand to fewValues values
// plus valuesPerByte for each of its bytes, so that a short text cannot take much time.
const (
	maxExpanded   = 32 << 20
	maxAliased    = 1 << 10
	fewValues     = 10_000
	valuesPerByte = 10
)

// walkYAML checks the limits on the expansion of aliases, including merge keys (<<), and
// rejects keys that are not scalars, because the decoder would print them in full.
func walkYAML(data []byte, l Limits) error {
	var root yamlNode
	if err := yamlv2.Unmarshal(data, &root); err != nil {
		return badYAML("%v", err)
	}
	l.Values = min(l.Values, fewValues+valuesPerByte*len(data))
	w := yamlWalk{limits: l}
	return w.value(root, 0)
}

// yamlNode is a value that is decoded on demand. The zero value is null.
type yamlNode struct{ decode func(any) error }

// UnmarshalYAML implements yamlv2.Unmarshaler.
func (n *yamlNode) UnmarshalYAML(decode func(any) error) error {
	n.decode = decode
	return nil
}

type yamlWalk struct {
	limits Limits
	values int
	bytes  int
}

func (w *yamlWalk) value(n yamlNode, depth int) error {
	if w.values++; w.values > w.limits.Values {
		return badYAML("its aliases expand to more than %d values", w.limits.Values)
	}
	if depth > w.limits.Depth {
		return badYAML("more than %d levels deep", w.limits.Depth)
	}
	if w.bytes > maxExpanded {
		return badYAML("more than %d bytes of text", maxExpanded)
	}
	if n.decode == nil {
		return nil
	}
	var text string
	if n.decode(&text) == nil {
		w.bytes += len(text)
		return nil
	}
	var list []yamlNode
	if n.decode(&list) == nil {
		return w.list(list, depth+1)
	}
	var members map[string]yamlNode
	if err := n.decode(&members); err != nil {
		return badYAML("%v", err)
	}
	return w.members(members, depth+1)
}

func (w *yamlWalk) list(list []yamlNode, depth int) error {
	for _, item := range list {
		if err := w.value(item, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *yamlWalk) members(members map[string]yamlNode, depth int) error {
	for key, item := range members {
		if len(key) > maxAliased {
			return badYAML("a key of more than %d bytes beside aliases", maxAliased)
		}
		w.bytes += len(key)
		if err := w.value(item, depth); err != nil {
			return err
		}
	}
	return nil
}

// EncodeYAML converts JSON to YAML with sorted keys, formatted as in the reference server.
func EncodeYAML(data []byte) ([]byte, error) {
	out, err := yaml.JSONToYAML(data)
	if err != nil {
		return nil, fmt.Errorf("codec: write YAML: %w", err)
	}
	return out, nil
}
