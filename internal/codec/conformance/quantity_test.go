package conformance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"orch.io/controlplane/api/meta"
)

// Quantities are read, written and compared as the clients do.
func TestQuantityMatchesClients(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	suffixes := []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "e3", "E3", "e-3", "e0", "E", "Pi", "e5", "e-7"}
	before, oursBefore := resource.MustParse("1"), mustParse(t, "1")
	for range 20000 {
		text := fmt.Sprint(r.Int64N(100000))
		switch r.IntN(4) {
		case 0:
			text += fmt.Sprintf(".%d", r.IntN(1000))
		case 1:
			text = "-" + text
		case 2:
			text = fmt.Sprint(r.Int64N(5) * 1024)
		}
		text += suffixes[r.IntN(len(suffixes))]
		theirs, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatal(text, err)
		}
		theirs.Add(resource.Quantity{}) // forgets the text that it came from
		if beyond(theirs) {
			continue
		}
		ours := mustParse(t, text)
		if ours.String() != theirs.String() {
			t.Errorf("%s: %s, want %s", text, ours, theirs.String())
		}
		if got, want := ours.Cmp(oursBefore), theirs.Cmp(before); got != want {
			t.Errorf("%s against %s: %d, want %d", text, oursBefore, got, want)
		}
		if got, want := ours.Value(), theirs.Value(); got != want && theirs.Sign() >= 0 {
			t.Errorf("value of %s: %d, want %d", text, got, want)
		}
		sum := theirs.DeepCopy()
		sum.Add(before)
		if got := ours.Add(oursBefore); got.String() != sum.String() {
			t.Errorf("%s + %s: %s, want %s", text, oursBefore, got, sum.String())
		}
		before, oursBefore = theirs, ours
	}
}

// beyond reports what ours cuts off.
func beyond(q resource.Quantity) bool {
	limit := resource.MustParse("9223372036854775807")
	low := resource.MustParse("-9223372036854775807")
	return q.Cmp(limit) >= 0 || q.Cmp(low) <= 0
}

func mustParse(t *testing.T, s string) meta.Quantity {
	t.Helper()
	q, err := meta.ParseQuantity(s)
	if err != nil {
		t.Fatal(s, err)
	}
	return q
}

// Quantities that are made of numbers are written as the clients do.
func TestNewQuantityMatchesClients(t *testing.T) {
	formats := map[meta.QuantityFormat]resource.Format{
		meta.DecimalSI: resource.DecimalSI, meta.BinarySI: resource.BinarySI, meta.DecimalExponent: resource.DecimalExponent,
	}
	for _, n := range []int64{0, 1, -1, 5, 1000, 1023, 1024, 1500, -1500, 2048, 5000, 5e6, 512 << 20, -3 << 30, 1<<60 + 1, 1 << 62, 1<<63 - 1} {
		for ours, theirs := range formats {
			if got, want := meta.NewQuantity(n, ours), resource.NewQuantity(n, theirs); got.String() != want.String() {
				t.Errorf("%d in %s: %s, want %s", n, theirs, got, want)
			}
			if got, want := meta.NewMilliQuantity(n, ours), resource.NewMilliQuantity(n, theirs); got.String() != want.String() {
				t.Errorf("%d thousandths in %s: %s, want %s", n, theirs, got, want)
			}
		}
	}
}
