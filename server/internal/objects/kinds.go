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

// kind is a registered type with stored objects.
type kind struct {
	t     *resource.Type
	shape string // of the type; the signature of its records

	newShape   bool        // no release of this shape has served the store
	hasUnshown atomic.Bool // a record with unshown data has been read
}

// kindsOf returns the kinds of registered types. It skips defined types, because their objects are normalized
// whenever they are shown, and virtual types, because their objects are not stored.
func kindsOf(types []*resource.Type) map[meta.GroupResource]*kind {
	kinds := map[meta.GroupResource]*kind{}
	for _, t := range types {
		if !t.Virtual && !t.ConformOnRead {
			kinds[t.GroupResource()] = &kind{t: t, shape: t.Fingerprint()}
		}
	}
	return kinds
}

// shapeLength is the length of a signature, in hexadecimal digits. A record is the JSON of an object, a newline, and
// the shape of the type that wrote it.
const shapeLength = 16

// sign returns the record of an object. The result does not share the object.
func sign(object []byte, shape string) []byte {
	record := make([]byte, 0, len(object)+1+len(shape))
	record = append(append(record, object...), '\n')
	return append(record, shape...)
}

// unsign splits a record into the object and its signature, which is nil if the record is not signed. Both share the
// record.
func unsign(record []byte) (object, shape []byte) {
	end := len(record) - shapeLength
	if end < 1 || record[end-1] != '\n' || slices.ContainsFunc(record[end:], func(c byte) bool { return !isHex(c) }) {
		return record, nil
	}
	return record[: end-1 : end-1], record[end:]
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// servedBy records which releases served a kind.
type servedBy struct {
	Shapes []string `json:"seen"` // of the newest maxShapes releases, in the order in which they first served the kind
}

// maxShapes bounds the number of releases that a store records for a kind.
const maxShapes = 32

// readServed returns which releases served each kind, by the kind's name in storage keys, and the record that holds
// this. The map is nil if the record does not exist or cannot be read.
func readServed(ctx context.Context, b storage.Backend) (map[string]servedBy, storage.Record, error) {
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
	var by map[string]servedBy
	if json.Unmarshal(rec.Value, &by) != nil {
		by = nil
	}
	return by, rec, nil
}

// noteServed adds this release to the record of the releases that served the store. It drops all other fields of that
// record: older releases kept a statement about all records of a kind there, which does not hold when releases sign
// their records.
func (r *Records) noteServed(ctx context.Context) error {
	for !r.noted {
		by, rec, err := readServed(ctx, r.Backend)
		if err != nil {
			return err
		}
		if by == nil {
			by = map[string]servedBy{}
		}
		for of, k := range r.kinds {
			name := of.String()
			if shapes := by[name].Shapes; !slices.Contains(shapes, k.shape) {
				shapes = append(shapes, k.shape)
				by[name] = servedBy{shapes[max(0, len(shapes)-maxShapes):]}
			}
		}
		text, err := json.Marshal(by) // sorted by kind
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
