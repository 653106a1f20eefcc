// Package registrytest checks that objects of a kind survive round trips: through JSON, through
// protobuf, and from each version through the hub.
//
//	func TestWidgets(t *testing.T) { registrytest.RoundTrip(t, registry.Of(widgets)) }
//
// Options add generators for values that the schemas do not describe sufficiently.
package registrytest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

// defaultSeeds is the number of objects that are made of each version.
const defaultSeeds = 100

// RoundTrip makes objects of every version of the kinds from their schemas (see Options) and checks
// that
//
//   - an object is unchanged by encoding and decoding as JSON, and as protobuf if the kind has field
//     numbers,
//   - setting defaults a second time changes nothing,
//   - a conversion does not modify its argument,
//   - an object of a spoke is unchanged by conversion to the hub and back,
//   - an object of the hub is unchanged if a client of a spoke writes it as read,
//   - a client of a spoke that writes another object reads that object back.
//
// Each run makes the same objects. A failure names the kind, the version, the seed and the first
// field that differs; run Options with that seed to repeat it. Objects of a spoke for which ToHub
// returns an error are skipped, unless these are more than half of the objects.
func RoundTrip(t testing.TB, kinds ...*registry.Kind) {
	t.Helper()
	Options{}.RoundTrip(t, kinds...)
}

// compile returns the type of a kind, or reports its errors and returns nil.
func compile(t testing.TB, k *registry.Kind) *resource.Type {
	t.Helper()
	typ, err := resource.Compile(k, names.Orch)
	if err != nil {
		t.Errorf("%v", err)
		return nil
	}
	return typ
}

// check runs the checks for each version of a type.
func check(t testing.TB, typ *resource.Type, m *maker, seeds []uint64) {
	t.Helper()
	for _, v := range typ.Versions {
		if v.Schema() == nil {
			continue
		}
		rejected, why := 0, error(nil)
		for _, seed := range seeds {
			r := &run{ctx: t.Context(), version: v, maker: m, seed: seed}
			err := r.all()
			if rejection, ok := err.(*rejectedError); ok {
				rejected, why = rejected+1, rejection
				continue
			}
			if err != nil {
				t.Errorf("%s, version %s, seed %d: %v", typ.GroupKind(), v.Name, seed, err)
				break // the other seeds would most likely fail in the same way
			}
		}
		if rejected > len(seeds)/2 {
			t.Errorf("%s, version %s: ToHub rejects %d of %d objects, see Options.Generators; the last: %v", typ.GroupKind(), v.Name, rejected, len(seeds), why)
		}
	}
}

// run is the check of one object.
type run struct {
	ctx     context.Context
	version *resource.Version
	maker   *maker
	seed    uint64
}

// rejectedError is the error of a ToHub that rejects an object.
type rejectedError struct{ error }

// all makes the object and runs all checks.
func (r *run) all() error {
	obj, err := r.maker.object(r.version, r.seed)
	if err != nil {
		return err
	}
	for _, check := range []func(*meta.Object) error{r.json, r.protobuf, r.defaults, r.throughHub, r.throughSpokes} {
		if err := check(obj); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) json(obj *meta.Object) error {
	tree, _, err := codec.DecodeJSON(codec.EncodeJSON(nil, obj.Tree()), codec.Limits{})
	if err != nil {
		return fmt.Errorf("JSON: %w", err)
	}
	return r.same("after JSON", obj, meta.NewObject(tree))
}

func (r *run) protobuf(obj *meta.Object) error {
	p := r.version.Proto()
	if p == nil {
		return nil
	}
	tree, err := p.Decode(p.Append(nil, obj.Tree()), codec.Limits{})
	if err != nil {
		return fmt.Errorf("protobuf: %w", err)
	}
	back := meta.NewObject(tree)
	back.SetGVK(r.version.GVK()) // the envelope, not the message, holds the type
	if _, faults := r.version.Normalize(back); len(faults) > 0 {
		return fmt.Errorf("protobuf: %w", r.version.DecodeError(faults))
	}
	return r.same("after protobuf", withoutEmpty(obj), withoutEmpty(back))
}

// withoutEmpty returns a copy of an object without empty lists and maps, which protobuf does not
// distinguish from missing fields.
func withoutEmpty(obj *meta.Object) *meta.Object {
	out := obj.Clone()
	dropEmpty(out.Tree())
	return out
}

// dropEmpty removes empty lists and maps from v and reports whether v itself is empty.
func dropEmpty(v any) (empty bool) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, below any) bool { return dropEmpty(below) })
		return len(v) == 0
	case []any:
		for _, item := range v {
			dropEmpty(item)
		}
		return len(v) == 0
	}
	return v == nil
}

func (r *run) defaults(obj *meta.Object) error {
	once := obj.Clone()
	if err := r.fill(once); err != nil {
		return err
	}
	twice := once.Clone()
	if err := r.fill(twice); err != nil {
		return err
	}
	return r.same("after the defaults ran again", once, twice)
}

func (r *run) fill(obj *meta.Object) error {
	return r.version.Defaults(r.version.NewChange(r.ctx, obj, nil, ""))
}

// convert converts an object and checks that the conversion does not modify it.
func (r *run) convert(obj *meta.Object, to *resource.Version) (*meta.Object, error) {
	before := obj.Clone()
	out, err := to.Convert(r.ctx, obj)
	if err != nil {
		return nil, err
	}
	if err := r.same("because the conversion to "+to.Name+" modified its argument", before, obj); err != nil {
		return nil, err
	}
	return out.Clone(), nil // the conversion shares the metadata
}

// rejected reports whether an error of convert is the error of a conversion function that did not
// panic.
func rejected(err error) bool {
	var conversion *resource.ConversionError
	return errors.As(err, &conversion) && conversion.Stack() == nil
}

// throughHub converts an object of a spoke to the hub and back.
func (r *run) throughHub(obj *meta.Object) error {
	v := r.version
	if v.Working() == v {
		return nil
	}
	hub, err := r.convert(obj, v.Hub)
	if rejected(err) {
		return &rejectedError{err}
	}
	if err != nil {
		return err
	}
	back, err := r.convert(hub, v)
	if err != nil {
		return err
	}
	return r.same("after conversion to the hub "+v.Hub.Name+" and back", obj, back)
}

// throughSpokes writes an object of the hub in each spoke, first as read and then changed.
func (r *run) throughSpokes(obj *meta.Object) error {
	v := r.version
	if !v.Converts() || v != v.Hub {
		return nil
	}
	for _, spoke := range v.Versions {
		if spoke == v {
			continue
		}
		read, err := r.convert(obj, spoke)
		if err != nil {
			return err
		}
		written, err := v.Merge(r.ctx, obj, read, read.Clone())
		if err != nil {
			return err
		}
		if err := r.same("after a write without changes in "+spoke.Name, obj, written); err != nil {
			return err
		}
		if err := r.rewrite(obj, read, spoke); err != nil {
			return err
		}
	}
	return nil
}

// rewrite replaces obj by another object of the spoke, and checks that it is read back in the
// spoke.
func (r *run) rewrite(obj, read *meta.Object, spoke *resource.Version) error {
	other, err := r.maker.object(spoke, r.seed+1)
	if err != nil {
		return err
	}
	_, err = r.convert(other, spoke.Hub)
	if rejected(err) {
		return nil // throughHub counts it
	}
	if err != nil {
		return err
	}
	written, err := spoke.Hub.Merge(r.ctx, obj, read, other)
	if err != nil {
		return err
	}
	now, err := r.convert(written, spoke)
	if err != nil {
		return err
	}
	return r.same("after it was written over another object in "+spoke.Name+" and read back", other, now)
}

// same returns an error that describes the first difference between two objects.
func (r *run) same(when string, want, got *meta.Object) error {
	path, wantText, gotText, differ := difference("", want.Tree(), got.Tree())
	if !differ {
		return nil
	}
	return fmt.Errorf("%s is %s, want %s, %s", path, gotText, wantText, when)
}
