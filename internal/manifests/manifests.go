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

// The bounds of a file. What one document may be is bounded by the decoders.
const (
	maxBytes     = 64 << 20
	maxDocuments = 100_000
)

var errNoFile = errors.New("it is no regular file")

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
		info, err := fs.Stat(files, name)
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			err = errNoFile
		case info.Size() > maxBytes:
			err = errTooLarge
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
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

// Parse returns the objects of some kinds, or of all if none is named, in the documents of
// a file, up to the first that cannot be read.
func Parse(data []byte, kinds ...string) (found []*meta.Object, err error) {
	docs, _, err := Documents(data)
	for _, d := range docs {
		if len(kinds) == 0 || slices.Contains(kinds, d.Object.Kind()) {
			found = append(found, d.Object)
		}
	}
	return found, err
}
