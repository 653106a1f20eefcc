package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// kind is a registered type of which there are records.
type kind struct {
	t     *resource.Type
	shape string      // of the type, with which its records are signed
	first bool        // no release of this shape has served the store
	keeps atomic.Bool // a record was read that holds what the type does not show
}

// kindsOf returns the kinds of types. A defined type has none: its objects are fitted
// whenever they are shown.
func kindsOf(types []*resource.Type) map[meta.GroupResource]*kind {
	kinds := map[meta.GroupResource]*kind{}
	for _, t := range types {
		if !t.Virtual && !t.ConformOnRead {
			kinds[t.GroupResource()] = &kind{t: t, shape: t.Fingerprint()}
		}
	}
	return kinds
}

// A record is signed with the shape of the type that wrote it: the JSON of the object, a
// newline, and the shape in so many hexadecimal digits.
const shapeLength = 16

// sign returns the record of an object.
func sign(object []byte, shape string) []byte {
	record := make([]byte, 0, len(object)+1+len(shape))
	record = append(append(record, object...), '\n')
	return append(record, shape...)
}

// unsign returns the object of a record, and the shape that it is signed with; none if it is
// not.
func unsign(record []byte) (object, shape []byte) {
	end := len(record) - shapeLength
	if end < 1 || record[end-1] != '\n' || slices.ContainsFunc(record[end:], func(c byte) bool { return !isHex(c) }) {
		return record, nil
	}
	return record[: end-1 : end-1], record[end:]
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// served is what a store says of who served a kind.
type served struct {
	Shapes []string `json:"seen"` // of the releases, the newest ones, in order
}

// maxShapes bounds how many releases of a kind a store knows.
const maxShapes = 32

// readServed returns what a store says of who served it, by kinds as storage keys name them,
// in a record of its own, with which a store begins. What cannot be read says nothing.
func readServed(ctx context.Context, b storage.Backend) (map[string]served, storage.Record, error) {
	rec, err := b.Get(ctx, resource.KindsKey, 0)
	var damaged *storage.DamagedError
	switch {
	case errors.As(err, &damaged):
		return nil, storage.Record{Revision: damaged.Revision}, nil
	case errors.Is(err, storage.ErrNotFound):
		return nil, storage.Record{}, nil
	case err != nil:
		return nil, storage.Record{}, fmt.Errorf("reading which releases served the store: %w", err)
	}
	var by map[string]served
	if json.Unmarshal(rec.Value, &by) != nil {
		by = nil
	}
	return by, rec, nil
}

// noteServed adds this release to those that served the store. All else that the record says
// goes, as a promise about all records of a kind, which no release that signs them keeps.
func (r *Records) noteServed(ctx context.Context) error {
	for !r.noted {
		by, rec, err := readServed(ctx, r.Backend)
		if err != nil {
			return err
		}
		if by == nil {
			by = map[string]served{}
		}
		for of, k := range r.kinds {
			name := of.String()
			if shapes := by[name].Shapes; !slices.Contains(shapes, k.shape) {
				shapes = append(shapes, k.shape)
				by[name] = served{shapes[max(0, len(shapes)-maxShapes):]}
			}
		}
		text, err := json.Marshal(by) // in order
		if err != nil {
			return err
		}
		if !bytes.Equal(text, rec.Value) {
			_, err = r.Backend.Commit(ctx, storage.Write{Key: resource.KindsKey, Value: text, Expect: rec.Revision})
		}
		if conflict := (*storage.ConflictError)(nil); errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			return err
		}
		r.noted = true
	}
	return nil
}
