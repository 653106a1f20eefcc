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

// Manifests is Object for the documents of a file, YAML or JSON. A document of which nothing
// is to be converted, and one whose kind has no such version, stays as it is to the byte;
// those that are converted keep the comments before them and their form, JSON or YAML.
// Warnings tell what a server would not take of the objects in their new versions, and which objects
// are of versions that their kinds do not have.
func (c *Converter) Manifests(ctx context.Context, data []byte, apiVersion string) (out []byte, warnings []string, err error) {
	if c.Form != "" && c.Form != "yaml" && c.Form != "json" {
		return nil, nil, fmt.Errorf("the form %q is neither yaml nor json", c.Form)
	}
	if err := c.known(apiVersion); err != nil {
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
	form string // that all shall have
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

// head returns what stands before a document that is written in YAML: what stood there,
// with a separator on its own line, and one if JSON needed none.
func (w *writer) head(d manifests.Document) []byte {
	if trimmed := bytes.TrimRight(d.Head, " \t"); bytes.HasSuffix(trimmed, []byte("---")) {
		return append(bytes.Clone(trimmed), '\n')
	}
	if !d.JSON || w.out.Len() == 0 || bytes.Contains(d.Head, []byte("---")) {
		return d.Head
	}
	return []byte("---\n")
}

// encode returns an object as a document, JSON indented as it was.
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
