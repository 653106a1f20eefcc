package ownership

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// FuzzPlan compares the walks of this package with structured-merge-diff's.
func FuzzPlan(f *testing.F) {
	item := object(false, fields{"k": text(), "p": withDefault(text(), "x"), "v": numeric()})
	loose := &schema.Schema{Type: schema.Object, Preserve: true}
	s := object(false, fields{"spec": object(false, fields{
		"set": {Type: schema.Array, Items: text(), ListType: "set"}, "any": loose,
		"map":    {Type: schema.Array, Items: item, ListType: "map", ListKeys: []string{"k", "p"}},
		"list":   listOf(item),
		"atomic": atomic(object(false, fields{"a": mapOf(text())})), "gran": mapOf(mapOf(numeric())),
		"int": {IntOrString: true},
	})})
	for _, seed := range [][2]string{
		{`{"spec":{"set":["a","b","c"],"map":[{"k":"1"},{"k":"2","v":1}]}}`, `{"spec":{"set":["d","c","a"],"map":[{"k":"3"},{"k":"2","p":"x","v":2},{"k":"1","p":"y"}]}}`},
		{`{"spec":{"any":{"a":{"b":1},"l":[1]},"gran":{"x":{"y":1}}}}`, `{"spec":{"any":{"a":null,"l":{},"n":1.5},"gran":{"x":{},"z":null}}}`},
		{`{"spec":{"atomic":{"a":{"x":"1"}},"list":[{"k":"1"}]},"metadata":{"labels":{"a":"b"},"finalizers":["x"]}}`, `{"spec":{"atomic":{"a":{}},"list":[],"set":null,"map":null},"metadata":{"labels":null,"finalizers":["y","x"]}}`},
		{`{"spec":{"map":[{"k":"1"},{"k":"1"}],"int":"5"}}`, `{"spec":{"map":[{"k":"1","v":2}],"int":5},"unknown":1}`},
		{`{"spec":{"set":null,"list":null,"atomic":null,"int":null}}`, `{"spec":{"set":["a"],"list":[{"k":"1"}],"atomic":{"a":{}},"int":1,"gran":{"x":{"y":1}},"map":[{"k":"1"}]}}`},
		{`{"spec":{"any":null,"gran":null,"map":null,"set":null}}`, `{"spec":{"any":[1],"gran":{"x":{"y":1}},"map":[{"k":"1"}],"set":["a"]}}`},
		{`{"spec":{"any":null,"gran":null,"map":null,"set":null}}`, `{"spec":{"any":{"a":{}},"gran":{},"map":[],"set":[]}}`},
		{`{}`, `{"spec":[{}]}`}, // the wrong type is found later
		{`{"spec":{}}`, `{"spec":{"gran":[{"x":1}],"map":{"k":"1"}}}`},
		{`{"spec":{"map":[{"k":"1","v":1},{"k":"2","v":2}]}}`, `{"spec":{"map":[{"k":"1","v":1},{"k":"2","v":3}]}}`},
	} {
		f.Add(seed[0], seed[1])
	}
	v := Compile(s)
	f.Fuzz(func(t *testing.T, one, two string) {
		x, err1 := meta.ParseJSON([]byte(one))
		y, err2 := meta.ParseJSON([]byte(two))
		live, ok1 := x.(map[string]any)
		patch, ok2 := y.(map[string]any)
		if err1 != nil || err2 != nil || !ok1 || !ok2 {
			return
		}
		v.sameFields(t, patch)
		v.sameMerge(t, live, patch)
		v.sameChange(t, live, patch)
	})
}

func (v *Type) sameFields(t *testing.T, patch map[string]any) {
	set, ok := v.plan.fieldSet(patch)
	theirs, err := v.strict().FromUnstructured(patch)
	if !ok {
		return
	}
	require.NoError(t, err)
	want, err := theirs.ToFieldSet()
	require.NoError(t, err)
	require.True(t, want.Equals(set), "%s\nwant %s", set, want)
}

func (v *Type) sameMerge(t *testing.T, live, patch map[string]any) {
	if _, ok := v.plan.fieldSet(patch); !ok {
		return
	}
	got, ok := v.plan.merge(live, patch)
	if !ok {
		return
	}
	theirs, err := v.Value(live).Merge(v.Value(patch))
	if err != nil {
		return
	}
	want := theirs.AsValue().Unstructured()
	if len(live)+len(patch) == 0 {
		want = map[string]any{}
	}
	if !meta.Equal(want, got) {
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		t.Errorf("got  %s\nwant %s", a, b)
	}
}

func (v *Type) sameChange(t *testing.T, old, new map[string]any) {
	want, err := v.Value(old).Compare(v.Value(new))
	if err != nil {
		return
	}
	a, b, same := v.plan.reduce(old, new)
	if same {
		require.True(t, want.Added.Empty() && want.Modified.Empty() && want.Removed.Empty(), "%v", want)
		return
	}
	got, err := v.Value(a).Compare(v.Value(b))
	require.NoError(t, err)
	require.Equal(t, want.String(), got.String())
	if set := (&fieldpath.Set{}); v.plan.added(a, b, set) {
		require.True(t, want.Removed.Empty(), "removed: %s", want.Removed)
		both := want.Added.Union(want.Modified)
		require.True(t, both.Equals(set), "%s\nwant %s", set, both)
	}
}

// TestLongListsBackwards checks that a list in reverse order takes as little time as a sorted
// list. It would take minutes if each item moved all items before it.
func TestLongListsBackwards(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, in one goroutine")
	}
	v := Compile(object(false, fields{"spec": object(false, fields{"set": {Type: schema.Array, Items: text(), ListType: "set"}})}))
	list := make([]any, 300_000)
	for i := range list {
		list[i] = fmt.Sprintf("%06d", len(list)-i)
	}
	tree := map[string]any{"spec": map[string]any{"set": list}}
	added := &fieldpath.Set{}
	require.True(t, v.plan.added(map[string]any{}, tree, added))
	set, ok := v.plan.fieldSet(tree)
	require.True(t, ok)
	require.Equal(t, len(list), set.Size())
	require.GreaterOrEqual(t, added.Size(), len(list))
}
