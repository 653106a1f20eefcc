package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/manifests"
)

// Manifests converts the documents of a YAML or JSON file, see Object. A document that needs no
// conversion, or whose kind does not have apiVersion, is returned byte for byte. Converted
// documents keep the comments before them, and their format unless c.Form is set.
//
// Each warning names an object that a server would reject in its new version and the reason, or an
// object whose version its kind does not have.
func (c *Converter) Manifests(ctx context.Context, data []byte, apiVersion string) (out []byte, warnings []string, err error) {
	if c.Form != "" && c.Form != "yaml" && c.Form != "json" {
		return nil, nil, fmt.Errorf("the format must be yaml, json or empty, not %q", c.Form)
	}
	if err := c.checkVersion(apiVersion); err != nil {
		return nil, nil, err
	}
	docs, rest, err := manifests.Documents(data)
	if err != nil {
		return nil, nil, err
	}
	run := conversion{Converter: c, ctx: ctx, apiVersion: apiVersion}
	w := writer{form: c.Form}
	for i, d := range docs {
		run.place = fmt.Sprintf("document %d: ", i+1)
		converted, err := run.object(d.Object)
		if errors.Is(err, ErrVersion) {
			converted, err = d.Object, nil
		}
		if err == nil {
			err = w.write(d, converted)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("document %d (line %d): %w", i+1, d.Line, err)
		}
	}
	if c.Form != "json" {
		w.out.Write(rest)
	}
	return w.out.Bytes(), run.warnings, nil
}

// writer writes the documents of a file.
type writer struct {
	out  bytes.Buffer
	form string // format of all documents; empty: that of each document
}

func (w *writer) write(d manifests.Document, obj *meta.Object) (err error) {
	asJSON := w.form == "json" || w.form == "" && d.JSON
	head, text := d.Head, d.Body
	if obj != d.Object || asJSON != d.JSON {
		if text, err = encode(d, obj, asJSON); err != nil {
			return err
		}
		if !asJSON {
			head = w.head(d)
		}
	}
	if w.form == "json" {
		head, text = nil, slices.Concat(bytes.TrimSpace(text), []byte("\n"))
	}
	w.out.Write(head)
	w.out.Write(text)
	return nil
}

// head returns the text before a document that is written in YAML. It ends with a separator on a
// line of its own; a separator is added if the document was JSON, which needs none.
func (w *writer) head(d manifests.Document) []byte {
	if trimmed := bytes.TrimRight(d.Head, " \t"); bytes.HasSuffix(trimmed, []byte("---")) {
		return append(bytes.Clone(trimmed), '\n')
	}
	if !d.JSON || w.out.Len() == 0 || bytes.Contains(d.Head, []byte("---")) {
		return d.Head
	}
	return []byte("---\n")
}

// encode returns an object in JSON or YAML. JSON is indented like the original document.
func encode(d manifests.Document, obj *meta.Object, asJSON bool) ([]byte, error) {
	text := codec.EncodeJSON(nil, obj.Tree())
	if !asJSON {
		return codec.EncodeYAML(text)
	}
	indent := "    "
	if d.JSON {
		_, second, lines := bytes.Cut(d.Body, []byte("\n"))
		if !lines {
			return text, nil
		}
		indent = string(second[:len(second)-len(bytes.TrimLeft(second, " \t"))])
	}
	var out bytes.Buffer
	err := json.Indent(&out, text, "", indent)
	return out.Bytes(), err
}
