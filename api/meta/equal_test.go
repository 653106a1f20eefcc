package meta_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

func TestEqualComparesNumbersExactly(t *testing.T) {
	for _, c := range []struct {
		a, b  any
		equal bool
	}{
		{int64(1), 1.0, true},
		{int64(0), math.Copysign(0, -1), true},
		{0.0, math.Copysign(0, -1), true},
		{int64(1 << 53), float64(1 << 53), true},
		{int64(1<<53 + 1), float64(1 << 53), false},
		{int64(4611686018427388000), float64(1 << 62), true}, // the float64 is written as the integer
		{int64(1 << 62), float64(1 << 62), false},
		{int64(math.MaxInt64), float64(1 << 63), false},
		{int64(math.MinInt64), -float64(1 << 63), false},
		{int64(1), "1", false}, {int64(1), true, false}, {int64(0), nil, false},
	} {
		for _, wrap := range []func(v any) any{
			func(v any) any { return v },
			func(v any) any { return []any{"x", v} },
			func(v any) any { return map[string]any{"a": map[string]any{"b": v}} },
		} {
			assert.Equal(t, c.equal, meta.Equal(wrap(c.a), wrap(c.b)), "%v and %v", c.a, c.b)
			assert.Equal(t, c.equal, meta.Equal(wrap(c.b), wrap(c.a)), "%v and %v", c.b, c.a)
		}
	}
}

// TestEqualMatchesStoredText: two numbers are equal if and only if their stored texts have the
// same value.
func TestEqualMatchesStoredText(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	bases := []float64{0, 1, 1 << 52, 1 << 53, 1 << 60, 1 << 62, 1 << 63, 1 << 64, 1e21, 0.1}
	random := func() any {
		f := bases[r.IntN(len(bases))] * float64(1-2*r.IntN(2))
		for range r.IntN(2) {
			f = math.Nextafter(f, math.Inf(1-2*r.IntN(2)))
		}
		if f > -1<<63 && f < 1<<63 && r.IntN(2) == 0 {
			return int64(f) + r.Int64N(3) - 1
		}
		return f
	}
	stored := func(v any) any {
		o := meta.NewObject(map[string]any{})
		o.Set(struct{ V any }{v}, "x") // through encoding/json and back
		back, _ := o.Get("x", "V")
		return back
	}
	for range 20_000 {
		a, b := random(), random()
		require.Equal(t, stored(a) == stored(b), meta.Equal(a, b), "%T %v and %T %v", a, a, b, b)
		require.Equal(t, meta.Equal(a, b), meta.Equal(b, a), "%T %v and %T %v", a, a, b, b)
	}
}
