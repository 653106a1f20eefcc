package conformance

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/authentication"
	"orch.io/controlplane/registry/authorization"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/codec"
	"orch.io/controlplane/registry/names"
)

// Every built-in kind of ours that the clients know has their bytes, for all
// fields that ours has.
func TestProtobufOfKinds(t *testing.T) {
	all := slices.Concat(builtin.Kinds(names.Kubernetes), authentication.Kinds(authentication.Answers{}), authorization.Kinds(authorization.Answers{}))
	seen := 0
	for _, kind := range all {
		if kind.NoProtobuf {
			continue
		}
		typ, err := kind.Compile(names.Kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range typ.Versions {
			theirs := theirType(v)
			if theirs == nil {
				t.Errorf("%s: the clients' type is not among those of this test", v.GVK())
				continue
			}
			seen++
			t.Run(v.GVK().String(), func(t *testing.T) {
				p, err := codec.NewProto(v.Schema)
				if err != nil {
					t.Fatal(err)
				}
				r := rand.New(rand.NewPCG(2, uint64(len(v.Kind))))
				for i := range 60 {
					f := newFiller(r, i)
					f.known = v.Schema
					checkBothWays(t, p, theirs, f)
				}
			})
		}
	}
	if seen < 6 {
		t.Fatalf("only %d kinds were checked", seen)
	}
}

// theirType finds the clients' type by the kind's name and its version.
func theirType(v *registry.Version) reflect.Type {
	for _, k := range kinds {
		t := reflect.TypeOf(k).Elem()
		group := groupOf[t.PkgPath()]
		if t.Name() == v.Kind && group == v.APIVersion() {
			return t
		}
	}
	return nil
}
