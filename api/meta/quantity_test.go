package meta_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

func TestQuantityCanonicalForm(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "00": "0", "-0": "0", "0Ki": "0", "0m": "0", "+1": "1", "1": "1", "007": "7", "-5": "-5", ".5": "500m", "5.": "5",
		"1000": "1k", "1000m": "1", "1500m": "1500m", "0.5": "500m", "1.5": "1500m", "100m": "100m", "1000000": "1M", "1e3": "1e3", "1E3": "1e3",
		"1e2": "100", "12e6": "12e6", "1000e3": "1e6", "1e-3": "1e-3", "1e0": "1", "1024": "1024", "1Ki": "1Ki", "1024Ki": "1Mi", "1.5Gi": "1536Mi", "0.5Ki": "512",
		"0.1Ki": "102400m", "1.1Ki": "1126400m", "100.5Ki": "102912", "-1.1Ki": "-1126400m", "2048Mi": "2Gi", "1025Ki": "1025Ki", "1Ei": "1Ei",
		"0.0000000001": "1n", "-0.0000000001": "-1n", "1n": "1n", "1000n": "1u", "1000u": "1m", "100E": "100E", "-100E": "-100E",
		"9E": "9E", "1e19": "10e18", "1e20": "100e18", "1e100": "10e99", "9223372036854775808": "9223372036854775808", "-16Ei": "-9223372036854775807", "1e-1000000": "1e-9", "1000Ki": "1000Ki", "5T": "5T", "5P": "5P", "16Ei": "9223372036854775807",
	} {
		got, err := meta.CanonicalQuantity(in)
		require.NoError(t, err, in)
		assert.Equal(t, want, got, in)
		q, err := meta.ParseQuantity(in)
		require.NoError(t, err)
		assert.Equal(t, want, q.String(), in)
	}
}

func TestParseQuantityRejectsMalformed(t *testing.T) {
	for _, in := range []string{"", " ", "x", "1x", "1.2.3", "1 Ki", "--1", "1ki", "1K", "1e", "1e99999999999", "Ki", ".", "+", "0x1", "1mm", "1Mi ", fmt.Sprintf("%0300d", 1)} {
		_, err := meta.CanonicalQuantity(in)
		assert.Error(t, err, "%q", in)
	}
}

func TestQuantityArithmetic(t *testing.T) {
	parse := func(s string) meta.Quantity {
		q, err := meta.ParseQuantity(s)
		require.NoError(t, err)
		return q
	}
	assert.Equal(t, "1536Mi", parse("1Gi").Add(parse("512Mi")).String())
	assert.Equal(t, "500m", parse("1").Sub(parse("500m")).String())
	assert.Equal(t, "1Gi", meta.Quantity{}.Add(parse("1Gi")).String())
	assert.Equal(t, -1, parse("999m").Cmp(parse("1")))
	assert.Equal(t, 0, parse("1024").Cmp(parse("1Ki")))
	assert.Equal(t, int64(2), parse("1500m").Value())
	assert.Equal(t, int64(-2), parse("-1500m").Value())
	assert.Equal(t, "3/2", parse("1.5").Rat().String())
	assert.Equal(t, "1152921504606846976/1", parse("1Ei").Rat().String())
	assert.Equal(t, "0/1", meta.Quantity{}.Rat().String())
	assert.True(t, parse("2k").IsInteger())
	assert.False(t, parse("1m").IsInteger())
	assert.True(t, meta.Quantity{}.IsZero())
}

func TestNewQuantity(t *testing.T) {
	for _, c := range []struct {
		q    meta.Quantity
		want string
	}{
		{meta.NewQuantity(0, meta.BinarySI), "0"},
		{meta.NewQuantity(5000, meta.DecimalSI), "5k"},
		{meta.NewQuantity(5000, meta.DecimalExponent), "5e3"},
		{meta.NewQuantity(5000, meta.BinarySI), "5000"},
		{meta.NewQuantity(512<<20, meta.BinarySI), "512Mi"},
		{meta.NewQuantity(-3<<30, meta.BinarySI), "-3Gi"},
		{meta.NewQuantity(1000, meta.BinarySI), "1k"},
		{meta.NewQuantity(math.MaxInt64, meta.DecimalSI), "9223372036854775807"},
		{meta.NewQuantity(math.MinInt64, meta.BinarySI), "-8Ei"},
		{meta.NewMilliQuantity(5000, meta.DecimalSI), "5"},
		{meta.NewMilliQuantity(1500, meta.DecimalSI), "1500m"},
		{meta.NewMilliQuantity(1500, meta.BinarySI), "1500m"},
		{meta.NewMilliQuantity(2048*1000, meta.BinarySI), "2Ki"},
	} {
		assert.Equal(t, c.want, c.q.String())
	}
}

// TestQuantityAsInteger: AsInt64 reports values that do not fit, and Value returns the nearest
// number.
func TestQuantityAsInteger(t *testing.T) {
	parse := func(s string) meta.Quantity {
		q, err := meta.ParseQuantity(s)
		require.NoError(t, err)
		return q
	}
	most := parse("9223372036854775807")
	for _, c := range []struct {
		q            meta.Quantity
		value, milli int64
		whole, exact bool // AsInt64 and AsMilli fit
	}{
		{meta.Quantity{}, 0, 0, true, true},
		{parse("2Ki"), 2048, 2048000, true, true},
		{parse("1500m"), 2, 1500, false, true},
		{parse("-1500m"), -2, -1500, false, true},
		{parse("1n"), 1, 1, false, false},
		{parse("-1n"), -1, -1, false, false},
		{parse("1E"), 1e18, math.MaxInt64, true, false},
		{parse("-1E"), -1e18, math.MinInt64, true, false},
		{most, math.MaxInt64, math.MaxInt64, true, false},
		{most.Add(parse("1")), math.MaxInt64, math.MaxInt64, false, false},
		{meta.Quantity{}.Sub(most).Sub(parse("1")), math.MinInt64, math.MinInt64, true, false},
		{meta.Quantity{}.Sub(most).Sub(parse("2")), math.MinInt64, math.MinInt64, false, false},
	} {
		assert.Equal(t, c.value, c.q.Value(), c.q)
		n, ok := c.q.AsInt64()
		assert.Equal(t, c.whole, ok, c.q)
		if ok {
			assert.Equal(t, c.value, n, c.q)
		}
		m, ok := c.q.AsMilli()
		assert.Equal(t, c.exact, ok, c.q)
		if ok {
			assert.Equal(t, c.milli, m, c.q)
		}
	}
	assert.True(t, most.Equal(most.Add(most).Sub(most)), "sums have no bound")
}

func TestSpecialFormsInJSON(t *testing.T) {
	type all struct {
		Q meta.Quantity     `json:"q"`
		I meta.IntOrString  `json:"i"`
		S meta.IntOrString  `json:"s"`
		R meta.RawExtension `json:"r"`
		D meta.Duration     `json:"d"`
		T meta.Time         `json:"t"`
		M meta.MicroTime    `json:"m"`
		Z meta.Time         `json:"z"`
	}
	in := `{"q":1.5,"i":7,"s":"50%","r":{"x":[1]},"d":"90s","t":"2024-01-02T03:04:05.9+01:00","m":"2024-01-02T03:04:05Z","z":null}`
	var v all
	require.NoError(t, json.Unmarshal([]byte(in), &v))
	out, err := json.Marshal(v)
	require.NoError(t, err)
	assert.JSONEq(t, `{"q":"1500m","i":7,"s":"50%","r":{"x":[1]},"d":"1m30s","t":"2024-01-02T02:04:05Z","m":"2024-01-02T03:04:05.000000Z","z":null}`, string(out))
	for _, bad := range []string{`{"q":"x"}`, `{"i":1.5}`, `{"i":99999999999}`, `{"d":"x"}`, `{"d":1}`, `{"t":"x"}`, `{"t":5}`} {
		assert.Error(t, json.Unmarshal([]byte(bad), &all{}), bad)
	}
}

func ExampleParseQuantity() {
	q, err := meta.ParseQuantity("1.5Gi")
	fmt.Println(q, q.Value(), err)
	// Output: 1536Mi 1610612736 <nil>
}

func ExampleNewQuantity() {
	fmt.Println(meta.NewQuantity(512<<20, meta.BinarySI), meta.NewQuantity(5000, meta.DecimalSI), meta.NewMilliQuantity(250, meta.DecimalSI))
	// Output: 512Mi 5k 250m
}

// A quota adds up its use and checks whether a further request fits.
func ExampleQuantity_Add() {
	hard, used := meta.NewQuantity(2<<30, meta.BinarySI), meta.Quantity{}
	for _, asked := range []string{"1Gi", "512Mi", "640Mi"} {
		q, err := meta.ParseQuantity(asked)
		if sum := used.Add(q); err == nil && sum.Cmp(hard) <= 0 {
			used = sum
		} else {
			fmt.Println("no room for", asked)
		}
	}
	fmt.Println("used", used, "left", hard.Sub(used))
	// Output:
	// no room for 640Mi
	// used 1536Mi left 512Mi
}

func ExampleQuantity_AsInt64() {
	for _, text := range []string{"2Ki", "1500m"} {
		q, _ := meta.ParseQuantity(text)
		n, ok := q.AsInt64()
		fmt.Println(n, ok, q.Value())
	}
	// Output:
	// 2048 true 2048
	// 0 false 2
}

func ExampleQuantity_Rat() {
	disk, _ := meta.ParseQuantity("1Pi")
	part, _ := meta.ParseQuantity("4Mi")
	parts := new(big.Rat).Quo(disk.Rat(), part.Rat())
	fmt.Println(parts.IsInt(), parts.FloatString(0))
	// Output: true 268435456
}

func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"0", "1.5Gi", "-1e3", "100m", "1024Ki", "12E", "0.0000000001", "1E5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, err := meta.CanonicalQuantity(s)
		if err != nil {
			return
		}
		q, err := meta.ParseQuantity(s)
		if err != nil || q.String() != once {
			t.Fatalf("%q: short cut says %q, the number %q, %v", s, once, q, err)
		}
		twice, err := meta.CanonicalQuantity(once)
		if err != nil || twice != once {
			t.Fatalf("%q gives %q, which gives %q, %v", s, once, twice, err)
		}
	})
}
