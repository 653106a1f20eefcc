package conformance

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply"
)

// TestCreateStrategicMerge creates patches between generated objects on both sides, and
// applies each with the other side.
func TestCreateStrategicMerge(t *testing.T) {
	for _, typ := range []any{corev1.Pod{}, appsv1.Deployment{}, corev1.Service{}} {
		t.Run(reflect.TypeOf(typ).Name(), func(t *testing.T) {
			s := fromTags{}.of(reflect.TypeOf(typ))
			created, same := 0, 0
			for seed := range uint64(3000) {
				r := random{rand.New(rand.NewPCG(seed, 5)), 0.25}
				a, b := r.object(s, 8), r.object(s, 8)
				b = r.mixed(a, b)
				ours, err := apply.CreateStrategicMerge(a, b, s)
				if err != nil {
					continue // an item without its merge key
				}
				theirs, err := strategicpatch.CreateTwoWayMergeMapPatch(clone(a), clone(b), typ)
				if err != nil {
					continue
				}
				created++
				if text(theirs) == text(ours) {
					same++
				}
				got, err := strategicpatch.StrategicMergeMapPatch(clone(a), clone(ours), typ)
				require.NoError(t, err, "seed %d\n%s", seed, text(ours))
				undirected(map[string]any(got))
				require.JSONEq(t, text(b), text(got), "seed %d\na      %s\npatch  %s\ntheirs %s", seed, text(a), text(ours), text(theirs))
			}
			t.Logf("%d patches, %d of them with the same text", created, same)
			require.Greater(t, created, 2000)
			require.Greater(t, same, created/2)
		})
	}
}

// TestCreateThreeWayStrategicMerge compares the results of the patches by which kubectl apply
// changes an object.
func TestCreateThreeWayStrategicMerge(t *testing.T) {
	for _, typ := range []any{corev1.Pod{}, appsv1.Deployment{}, corev1.Service{}} {
		t.Run(reflect.TypeOf(typ).Name(), func(t *testing.T) {
			s := fromTags{}.of(reflect.TypeOf(typ))
			lookup, err := strategicpatch.NewPatchMetaFromStruct(typ)
			require.NoError(t, err)
			created := 0
			for seed := range uint64(3000) {
				r := random{rand.New(rand.NewPCG(seed, 6)), 0.25}
				original := r.object(s, 8)
				modified, current := r.mixed(original, r.object(s, 8)), r.mixed(original, r.object(s, 8))
				ours, err := apply.CreateThreeWayStrategicMerge(original, modified, current, s)
				if err != nil {
					continue
				}
				body, err := strategicpatch.CreateThreeWayMergePatch([]byte(text(original)), []byte(text(modified)), []byte(text(current)), lookup, true)
				if err != nil {
					continue
				}
				theirs := parse(t, body)
				want, err := apply.StrategicMerge(current, theirs, s)
				if err != nil {
					continue
				}
				created++
				got, err := apply.StrategicMerge(current, ours, s)
				require.NoError(t, err, "seed %d\n%s", seed, text(ours))
				require.JSONEq(t, text(want), text(got), "seed %d\noriginal %s\nmodified %s\ncurrent  %s\nours     %s\ntheirs   %s", seed, text(original), text(modified), text(current), text(ours), text(theirs))
			}
			require.Greater(t, created, 1500)
		})
	}
}

// TestCreateThreeWayMergePatch compares the results of the patches by which kubectl apply
// changes a custom resource.
func TestCreateThreeWayMergePatch(t *testing.T) {
	s := fromTags{}.of(reflect.TypeFor[appsv1.Deployment]())
	for seed := range uint64(3000) {
		r := random{rand.New(rand.NewPCG(seed, 7)), 0.25}
		original := r.object(s, 8)
		modified, current := r.mixed(original, r.object(s, 8)), r.mixed(original, r.object(s, 8))
		ours := apply.CreateThreeWayMergePatch(original, modified, current)
		theirs, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(text(original)), []byte(text(modified)), []byte(text(current)))
		require.NoError(t, err)
		require.JSONEq(t, text(apply.MergePatch(current, parse(t, theirs))), text(apply.MergePatch(current, ours)),
			"seed %d\noriginal %s\nmodified %s\ncurrent  %s\nours     %s\ntheirs   %s", seed, text(original), text(modified), text(current), text(ours), theirs)
	}
}

func parse(t *testing.T, body []byte) map[string]any {
	t.Helper()
	v, err := meta.ParseJSON(body)
	require.NoError(t, err)
	return v.(map[string]any)
}

// mixed returns a copy of a with some fields and list items of b.
func (r random) mixed(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for _, k := range sorted(a) {
		if r.IntN(4) > 0 {
			out[k] = a[k]
		}
	}
	for _, k := range sorted(b) {
		x, ok := out[k].(map[string]any)
		y, both := b[k].(map[string]any)
		switch {
		case ok && both:
			out[k] = r.mixed(x, y)
		case r.IntN(2) == 0:
			out[k] = b[k]
		}
	}
	return clone(out)
}
