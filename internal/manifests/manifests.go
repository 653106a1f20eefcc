// Package manifests reads objects from the YAML and JSON files of a directory.
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

// Read returns the objects of some kinds, or of all if none is named, in the files of a directory
// and those below it, in the order of their paths; other documents are skipped. The error tells of every
// file that cannot be read.
func Read(files fs.FS, kinds ...string) ([]*meta.Object, error) {
	var found []*meta.Object
	var faults []error
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return nil
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		objects, err := Parse(data, kinds...)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
		}
		found = append(found, objects...)
		return nil
	})
	return found, errors.Join(append(faults, err)...)
}

// Parse returns the objects of some kinds, or of all if none is named, in the documents of a file.
func Parse(data []byte, kinds ...string) (found []*meta.Object, err error) {
	for i, doc := range split(data) {
		tree, _, err := codec.DecodeYAML(doc, codec.Limits{})
		if err != nil {
			return found, fmt.Errorf("document %d: %w", i+1, err)
		}
		if o := meta.NewObject(tree); len(kinds) == 0 || slices.Contains(kinds, o.Kind()) {
			found = append(found, o)
		}
	}
	return found, nil
}

// split splits YAML at the lines that separate documents; those that hold nothing but
// comments are left out.
func split(data []byte) (docs [][]byte) {
	var doc []byte
	filled := false
	end := func() {
		if filled {
			docs = append(docs, doc)
		}
		doc, filled = nil, false
	}
	for line := range bytes.Lines(data) {
		text := bytes.TrimRight(line, " \t\r\n")
		if bytes.Equal(text, []byte("---")) || bytes.HasPrefix(text, []byte("--- ")) {
			end()
			continue
		}
		text = bytes.TrimSpace(text)
		filled = filled || len(text) > 0 && text[0] != '#'
		doc = append(doc, line...)
	}
	end()
	return docs
}
