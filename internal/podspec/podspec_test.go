package podspec_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// TestMergeTolerations compares the result for few tolerations with that of comparing all pairs.
func TestMergeTolerations(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	maybe := func(to map[string]any, field string, values ...any) {
		if i := random.IntN(len(values) + 1); i < len(values) {
			to[field] = values[i]
		}
	}
	for range 20_000 {
		var list []any
		for range random.IntN(6) {
			toleration := map[string]any{}
			maybe(toleration, "key", "a", "b", "")
			maybe(toleration, "operator", "Exists", "Equal", "", "Lt")
			maybe(toleration, "value", "x", "")
			maybe(toleration, "effect", "NoExecute", "NoExecute", "NoSchedule", "")
			maybe(toleration, "tolerationSeconds", int64(1), 1.0, int64(2), int64(-1), int64(math.MaxInt64), nil)
			list = append(list, toleration)
		}
		n := random.IntN(len(list) + 1)
		spec := meta.NewObject(map[string]any{"tolerations": list[:n:n]})
		all := meta.NewObject(map[string]any{"tolerations": list}).Objects("tolerations")
		podspec.MergeTolerations(spec, all[n:]...)
		require.True(t, meta.Equal(mergeByPairs(all), spec.List("tolerations")), "%v: %v", list, spec.List("tolerations"))
	}
}

func mergeByPairs(all []*meta.Object) []any {
	var merged []*meta.Object
	list := []any{}
	for i, t := range all {
		covers := func(by *meta.Object) bool { return podspec.Covers(by, t) }
		wider := func(by *meta.Object) bool { return podspec.Covers(by, t) && !meta.Equal(by.Tree(), t.Tree()) }
		if !slices.ContainsFunc(merged, covers) && !slices.ContainsFunc(all[i+1:], wider) {
			merged, list = append(merged, t), append(list, t.Tree())
		}
	}
	return list
}

// TestMergeManyTolerations checks the linear time: with quadratic time the test would exceed the test
// timeout.
func TestMergeManyTolerations(t *testing.T) {
	list := make([]any, 200_000)
	for i := range list {
		list[i] = map[string]any{"key": fmt.Sprint(i), "operator": "Exists"}
	}
	spec := meta.NewObject(map[string]any{"tolerations": list})
	podspec.MergeTolerations(spec, meta.NewObject(map[string]any{"key": "7", "value": "a"}))
	require.Len(t, spec.List("tolerations"), len(list))
}
