// Package registrytest proves that objects of a kind come back as they were: from
// JSON, from protobuf, and from every version through the hub.
//
//	func TestWidgets(t *testing.T) { registrytest.RoundTrip(t, registry.Of(widgets)) }
//
// Options give generators for values that schemas do not say enough of.
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

// defaultSeeds is how many objects of each version are made.
const defaultSeeds = 100

// RoundTrip makes objects of every version of the kinds, of their schemas alone (see
// Options) and the same ones at every run, and checks of each that
//
//   - it is the same after JSON and, if the kind has field numbers, after protobuf,
//   - defaults that were filled in once change nothing the next time,
//   - a conversion does not change what it converts,
//   - an object of a spoke is the same after it was one of the hub,
//   - an object of the hub that a client of a spoke writes as he read it is the same,
//   - and what such a client writes instead is what he reads then.
//
// A failure names the kind, the version, the seed and the first field that differs;
// Options repeat it, with that seed. An object of a spoke that ToHub refuses with an
// error is passed over, unless it refuses more than half of them.
func RoundTrip(t testing.TB, kinds ...*registry.Kind) {
	t.Helper()
	Options{}.RoundTrip(t, kinds...)
}

func compile(t testing.TB, k *registry.Kind) *resource.Type {
	t.Helper()
	typ, err := resource.Compile(k, names.Orch)
	if err != nil {
		t.Errorf("%v", err)
		return nil
	}
	return typ
}

func check(t testing.TB, typ *resource.Type, m *maker, seeds []uint64) {
	t.Helper()
	for _, v := range typ.Versions {
		if v.Schema() == nil {
			continue
		}
		refused, why := 0, error(nil)
		for _, seed := range seeds {
			r := &run{ctx: t.Context(), version: v, maker: m, seed: seed}
			err := r.all()
			if refusal, ok := err.(*refusedError); ok {
				refused, why = refused+1, refusal
				continue
			}
			if err != nil {
				t.Errorf("%s, version %s, seed %d: %v", typ.GroupKind(), v.Name, seed, err)
				break // the next ones would most likely say the same
			}
		}
		if refused > len(seeds)/2 {
			t.Errorf("%s, version %s: ToHub refuses %d of %d objects, see Options.Generators; the last: %v", typ.GroupKind(), v.Name, refused, len(seeds), why)
		}
	}
}

// run is the checks of one object.
type run struct {
	ctx     context.Context
	version *resource.Version
	maker   *maker
	seed    uint64
}

// refusedError is what ToHub says of an object that it does not take.
type refusedError struct{ error }

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
	back.SetGVK(r.version.GVK()) // which the envelope has
	if _, faults := r.version.Normalize(back); len(faults) > 0 {
		return fmt.Errorf("protobuf: %w", r.version.DecodeError(faults))
	}
	return r.same("after protobuf", withoutEmpty(obj), withoutEmpty(back))
}

// withoutEmpty returns an object without empty lists and maps, which protobuf does not
// tell from those that are not there.
func withoutEmpty(obj *meta.Object) *meta.Object {
	out := obj.Clone()
	dropEmpty(out.Tree())
	return out
}

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

// convert makes an object one of another version, and checks that it stays as it is.
func (r *run) convert(obj *meta.Object, to *resource.Version) (*meta.Object, error) {
	before := obj.Clone()
	out, err := to.Convert(r.ctx, obj)
	if err != nil {
		return nil, err
	}
	if err := r.same("which the conversion to "+to.Name+" changed in what it converts", before, obj); err != nil {
		return nil, err
	}
	return out.Clone(), nil // metadata may be shared
}

// refused reports whether an error of convert is that of the conversion, and it did
// not panic.
func refused(err error) bool {
	var conversion *resource.ConversionError
	return errors.As(err, &conversion) && conversion.Stack() == nil
}

// throughHub takes an object of a spoke to the hub and back.
func (r *run) throughHub(obj *meta.Object) error {
	v := r.version
	if v.Working() == v {
		return nil
	}
	hub, err := r.convert(obj, v.Hub)
	if refused(err) {
		return &refusedError{err}
	}
	if err != nil {
		return err
	}
	back, err := r.convert(hub, v)
	if err != nil {
		return err
	}
	return r.same("after the hub, "+v.Hub.Name, obj, back)
}

// throughSpokes lets a client of each spoke write an object of the hub as he reads it,
// and then something else.
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
		if err := r.same("after a write in "+spoke.Name+" that changes nothing", obj, written); err != nil {
			return err
		}
		if err := r.rewrite(obj, read, spoke); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) rewrite(obj, read *meta.Object, spoke *resource.Version) error {
	other, err := r.maker.object(spoke, r.seed+1)
	if err != nil {
		return err
	}
	_, err = r.convert(other, spoke.Hub)
	if refused(err) {
		return nil // which throughHub counts
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
	return r.same("after another object was written over it in "+spoke.Name+" and read there", other, now)
}

// same says where two objects differ.
func (r *run) same(when string, want, got *meta.Object) error {
	path, was, is, differ := difference("", want.Tree(), got.Tree())
	if !differ {
		return nil
	}
	return fmt.Errorf("%s is %s, and was %s, %s", path, is, was, when)
}
