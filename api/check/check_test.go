package check_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

func ExampleViolations() {
	var f check.Violations
	containers := check.At("spec", "containers")
	f.Required(containers.Index(0).Field("name"), "")
	f.OneOf(containers.Index(1).Field("env").Key("a.b"), "x", "y", "z")
	for _, c := range f {
		fmt.Printf("%s %s: %s\n", c.Reason, c.Field, c.Message)
	}
	// Output:
	// FieldValueRequired spec.containers[0].name: Required value
	// FieldValueNotSupported spec.containers[1].env[a.b]: Unsupported value: "x": supported values: "y", "z"
}

// A function returns an error that names the invalid fields, or nil.
func ExampleViolations_Err() {
	parse := func(size string) (q meta.Quantity, err error) {
		var f check.Violations
		if q, err = meta.ParseQuantity(size); err != nil {
			f.Invalid(check.At("spec", "size"), size, "is no quantity, such as 10Gi")
		}
		return q, f.Err()
	}
	for _, size := range []string{"10Gi", "big"} {
		q, err := parse(size)
		fmt.Println(q, err)
		var faulty *check.Error
		if errors.As(err, &faulty) {
			fmt.Println(faulty.Faults[0].Field, faulty.Faults[0].Reason)
		}
	}
	// Output:
	// 10Gi <nil>
	// 0 spec.size: Invalid value: "big": is no quantity, such as 10Gi
	// spec.size FieldValueInvalid
}

func TestPaths(t *testing.T) {
	var root *check.Path
	for want, p := range map[string]*check.Path{
		"": root, "a": check.At("a"), "a.b[3].c": check.At("a", "b").Index(3).Field("c"),
		"data[k.x]": check.At("data").Key("k.x"), "[]": check.At("").Key(""),
	} {
		require.Equal(t, want, p.String())
	}
}

func TestSame(t *testing.T) {
	type inner struct {
		List []string
		At   meta.Time
		Q    map[string]meta.Quantity
	}
	type outer struct {
		P *inner
		N *int
	}
	q := func(s string) meta.Quantity { v, err := meta.ParseQuantity(s); require.NoError(t, err); return v }
	one, uno := 1, 1
	for _, c := range []struct {
		a, b any
		same bool
	}{
		{inner{}, inner{List: []string{}}, true},
		{inner{Q: map[string]meta.Quantity{"m": q("1Gi")}}, inner{Q: map[string]meta.Quantity{"m": q("1024Mi")}}, true},
		{inner{Q: map[string]meta.Quantity{"m": q("1Gi")}}, inner{Q: map[string]meta.Quantity{"m": q("1G")}}, false},
		{inner{Q: map[string]meta.Quantity{"m": q("1")}}, inner{Q: map[string]meta.Quantity{"n": q("1")}}, false},
		{inner{List: []string{"a"}}, inner{List: []string{"b"}}, false},
		{outer{P: &inner{}}, outer{}, false},
		{outer{N: &one}, outer{N: &uno}, true},
		{"a", 1, false},
		{nil, nil, true},
		{nil, "a", false},
	} {
		require.Equal(t, c.same, check.SemanticEqual(c.a, c.b), "%+v %+v", c.a, c.b)
	}
}

func TestSelectors(t *testing.T) {
	s := &meta.LabelSelector{MatchLabels: map[string]string{"a b": "x", "ok": "no good"}, MatchExpressions: []meta.LabelSelectorRequirement{
		{Key: "k", Operator: "In"}, {Key: "k", Operator: "Exists", Values: []string{"v"}}, {Key: "k", Operator: "Like"}, {Key: "", Operator: "Exists"},
	}}
	var f check.Violations
	f.Selector(check.At("s"), s)
	var got []string
	for _, c := range f {
		got = append(got, strings.TrimPrefix(string(c.Reason), "FieldValue")+":"+c.Field)
	}
	require.Contains(t, got, "Invalid:s.matchLabels")
	require.Contains(t, got, "Required:s.matchExpressions[0].values")
	require.Contains(t, got, "Forbidden:s.matchExpressions[1].values")
	require.Contains(t, got, "Invalid:s.matchExpressions[2].operator")
	require.Contains(t, got, "Invalid:s.matchExpressions[3].key")
}

func TestRangeAndOneOf(t *testing.T) {
	var f check.Violations
	at := check.At("n")
	f.Range(at, 5, 1, 5)
	f.OneOf(at, "a", "a")
	f.RequiredOneOf(at, "a", "a")
	f.Unchanged(at, "x", "x")
	require.Empty(t, f)
	f.Range(at, 6, 1, 5)
	f.RequiredOneOf(at, "", "a")
	f.Unchanged(at, "x", "y")
	f.TooMany(at, 3, 2)
	f.TooLong(at, 2)
	f.NotFound(at, "v")
	f.Duplicate(at, strings.Repeat("é", 500))
	require.Len(t, f, 7)
	require.Less(t, len(f[6].Message), 300, "messages stay short")
}

// TestMessagesAreNotEscaped checks that markup in values is not escaped, because people read the
// messages.
func TestMessagesAreNotEscaped(t *testing.T) {
	var f check.Violations
	f.Invalid(check.At("status", "certificate"), "<certificate data>", "a & b")
	require.Len(t, f, 1)
	assert.Equal(t, `Invalid value: "<certificate data>": a & b`, f[0].Message)
}

// counted counts how often it is marshaled.
type counted struct{ written *int }

func (c counted) MarshalJSON() ([]byte, error) { *c.written++; return []byte(`"x"`), nil }

// TestMessagesAreBounded checks that the length of a message is limited for long values and
// reasons.
func TestMessagesAreBounded(t *testing.T) {
	var f check.Violations
	written := 0
	f.Invalid(check.At("a"), slices.Repeat([]counted{{&written}}, 100_000), "no")
	require.Less(t, written, 1000)
	require.True(t, strings.HasPrefix(f[0].Message, `Invalid value: ["x","x",`), f[0].Message)
	require.True(t, strings.HasSuffix(f[0].Message, `...: no`), f[0].Message)

	long := strings.Repeat("é", 1<<20)
	f.Invalid(check.At("b"), long, "cannot read "+long)
	f.Forbidden(check.At("c"), "differs:\n"+long)
	f.Invalid(check.At("d"), json.RawMessage(`"`+long+`"`), "no")
	for _, c := range f {
		require.Less(t, len(c.Message), 20<<10)
		require.True(t, utf8.ValidString(c.Message))
	}
	require.Contains(t, f[1].Message, "cannot read é")
	require.Contains(t, f[3].Message, `"éé`)
}
