package number

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIntegerUsesShortestText(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "0", 1: "1", -1: "-1", 1e3: "1000",
		1<<53 - 1: "9007199254740991", 1 << 53: "9007199254740992", 1<<53 + 2: "9007199254740994",
		1 << 62:        "4611686018427388000",
		1<<63 - 1024:   "9223372036854775000",
		-1<<63 + 1024:  "-9223372036854775000",
		0.5:            "",
		1 << 63:        "",
		-1 << 63:       "",
		1 << 64:        "",
		1e300:          "",
		math.Inf(1):    "",
		math.NaN():     "",
		5e-324:         "",
		1<<51 + 0.5:    "",
		4503599627.375: "",
	} {
		n, ok := Integer(f)
		assert.Equal(t, want != "", ok, "%v", f)
		if ok {
			assert.Equal(t, want, strconv.FormatInt(n, 10), "%v", f)
		}
	}
}

// rational returns the value of a JSON number.
func rational(t *testing.T, v any) *big.Rat {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	r, ok := new(big.Rat).SetString(string(text))
	require.True(t, ok, "%s", text)
	return r
}

// numbers returns numbers near the limits of int64 and of exact float64 integers.
func numbers(r *rand.Rand) any {
	edges := []float64{0, 1, 1 << 31, 1 << 52, 1 << 53, 1 << 54, 1 << 62, 1 << 63, 1 << 64, 1e19, 1e21, 0.5, 1e-7, math.MaxFloat64}
	f := edges[r.IntN(len(edges))]
	for range r.IntN(3) {
		f = math.Nextafter(f, math.Inf(1-2*r.IntN(2)))
	}
	if r.IntN(2) == 0 {
		f = -f
	}
	switch {
	case math.IsInf(f, 0):
		return math.MaxFloat64
	case math.Abs(f) <= 1<<63 && r.IntN(2) == 0:
		near := new(big.Int)
		big.NewFloat(f).Int(near)
		near.Add(near, big.NewInt(r.Int64N(7)-3))
		if near.IsInt64() {
			return near.Int64()
		}
	}
	return f
}

func TestCompareIsExactAndSymmetric(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		a, b := numbers(r), numbers(r)
		got, ok := Compare(a, b)
		require.True(t, ok)
		require.Equal(t, rational(t, a).Cmp(rational(t, b)), got, "%T %v and %T %v", a, a, b, b)
		back, _ := Compare(b, a)
		require.Equal(t, -got, back, "%T %v and %T %v", a, a, b, b)
		if n, whole := a.(int64); whole {
			if f, ok := b.(float64); ok {
				require.Equal(t, got == 0, Equal(n, f), "%d and %v", n, f)
			}
		}
	}
	_, ok := Compare(int64(1), "1")
	assert.False(t, ok)
}

func TestSameTextComparesValues(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"18446744073709551615", "18446744073709551614", false},
		{"18446744073709551615", "1.8446744073709551615e19", true},
		{"0.10", "1e-1", true}, {"0.1000000000000000055511151231257827", "0.1", false}, {"9007199254740993.0", "9007199254740993", true},
		{"1e99999999999999999999", "1e-99999999999999999999", false}, {"0e99999999999999999999", "-0", true},
		{"1e400", "10e399", true}, {"1e400", "1e401", false}, {"-1", "1", false}, {"-0", "0.00", true}, {"100", "1e2", true},
	} {
		assert.Equal(t, c.same, SameText(c.a, c.b), "%s and %s", c.a, c.b)
		assert.Equal(t, c.same, SameText(c.b, c.a), "%s and %s", c.b, c.a)
	}
}

func TestTextRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5_000 {
		n := numbers(r)
		text, ok := Text(n)
		require.True(t, ok)
		want, err := json.Marshal(n)
		require.NoError(t, err)
		require.True(t, SameText(text, string(want)), "%s and %s", text, want)
	}
	_, ok := Text("1")
	assert.False(t, ok)
}
