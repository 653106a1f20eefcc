package meta_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
)

// TestSetConvertsGoValues: Set converts every value to tree types.
func TestSetConvertsGoValues(t *testing.T) {
	type port struct {
		Number uint16 `json:"number"`
		Name   string `json:"name,omitempty"`
	}
	type word string
	noon := time.Date(2026, 1, 1, 12, 0, 0, 999, time.FixedZone("", 3600))
	n := 7
	for _, c := range []struct{ value, want any }{
		{nil, nil}, {"a", "a"}, {true, true}, {int64(1), int64(1)}, {1.5, 1.5}, {float32(1.5), 1.5},
		{1, int64(1)}, {int8(-1), int64(-1)}, {int16(1), int64(1)}, {int32(1), int64(1)},
		{uint(1), int64(1)}, {uint8(1), int64(1)}, {uint16(1), int64(1)}, {uint32(1), int64(1)}, {uint64(math.MaxUint64), float64(math.MaxUint64)},
		{json.Number("3"), int64(3)}, {json.Number("3.5"), 3.5}, {&n, int64(7)}, {(*int)(nil), nil},
		{[]string{"a", "b"}, []any{"a", "b"}}, {[]string{}, []any{}}, {[]int{1}, []any{int64(1)}}, {word("a"), "a"},
		{map[string]string{"a": "b"}, map[string]any{"a": "b"}},
		{[]port{{80, "web"}, {Number: 81}}, []any{map[string]any{"number": int64(80), "name": "web"}, map[string]any{"number": int64(81)}}},
		{noon, "2026-01-01T11:00:00Z"}, {meta.NewTime(noon), "2026-01-01T11:00:00Z"}, {meta.FromString("50%"), "50%"},
		{meta.RawJSON("{}"), meta.RawJSON("{}")}, {func() {}, nil},
	} {
		o := &meta.Object{}
		o.Set(c.value, "a", "b")
		got, ok := o.Get("a", "b")
		assert.True(t, ok)
		assert.Equal(t, c.want, got, "%T", c.value)
	}
}
