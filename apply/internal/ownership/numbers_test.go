package ownership

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// TestSeparatedNumbersDifferAsFloat64 checks that structured-merge-diff, which compares as
// float64, finds separated numbers different if and only if the numbers are different.
func TestSeparatedNumbersDifferAsFloat64(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	p := &plan{shape: shapeDeduced}
	random := func() any {
		f := []float64{1 << 53, 1 << 62, 1 << 63, 1 << 64, math.MaxFloat64}[r.IntN(5)] * float64(1-2*r.IntN(2))
		if r.IntN(2) == 0 {
			f = math.Nextafter(f, 0)
		}
		if f > -1<<63 && f < 1<<63 && r.IntN(2) == 0 {
			return int64(f) + r.Int64N(3) - 1
		}
		return f
	}
	approximate := func(a, b any) bool { // as structured-merge-diff does it
		i, ok := a.(int64)
		j, both := b.(int64)
		if ok && both {
			return i == j
		}
		float := func(v any) float64 {
			if n, ok := v.(int64); ok {
				return float64(n)
			}
			return v.(float64)
		}
		return float(a) == float(b)
	}
	for range 20_000 {
		a, b := random(), random()
		x, y := p.separated(map[string]any{"v": a})["v"], p.separated(map[string]any{"v": b})["v"]
		require.Equal(t, meta.Equal(a, b), approximate(x, y), "%T %v and %T %v", a, a, b, b)
	}
}
