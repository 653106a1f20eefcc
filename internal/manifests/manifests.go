// Package manifests reads objects from the YAML and JSON files of a directory.
package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"orch.io/controlplane/api/meta"
)

// Limits of a file. The decoders limit the size of a document.
const (
	maxBytes     = 64 << 20
	maxDocuments = 100_000
)

var errNotRegular = errors.New("not a regular file")

// Read returns the objects of the given kinds, or of all kinds if none is given, in the .yaml, .yml
// and .json files of a directory tree, ordered by path. Other documents are skipped. The error
// names each file that cannot be read; the objects of the other files are still returned.
func Read(files fs.FS, kinds ...string) ([]*meta.Object, error) {
	var found []*meta.Object
	var errs []error
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return nil
		}
		info, err := fs.Stat(files, name)
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			err = errNotRegular
		case info.Size() > maxBytes:
			err = errTooLarge
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			return nil
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		objects, err := Parse(data, kinds...)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		found = append(found, objects...)
		return nil
	})
	return found, errors.Join(append(errs, err)...)
}

// Parse returns the objects of the given kinds, or of all kinds if none is given, in the documents
// of a file. If a document cannot be read, the objects before it are returned with the error.
func Parse(data []byte, kinds ...string) (found []*meta.Object, err error) {
	docs, _, err := Documents(data)
	for _, d := range docs {
		if len(kinds) == 0 || slices.Contains(kinds, d.Object.Kind()) {
			found = append(found, d.Object)
		}
	}
	return found, err
}
