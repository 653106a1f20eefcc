package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatternsAreBounded(t *testing.T) {
	for text, fits := range map[string]bool{
		`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`: true,
		`^.{1,1000}$`:                   true,
		strings.Repeat("a", 5000):       true,
		`(`:                             false,
		`(?=a)`:                         false,
		`a{1001}`:                       false,
		`(a{100}){100}`:                 false,
		strings.Repeat("x{0,1000}", 20): false,
		strings.Repeat("[a-z]", 10_000): false,
		strings.Repeat("a", 6000):       false,
		strings.Repeat("(a|bc)", 2000):  false,
	} {
		_, err := compilePattern(text)
		assert.Equal(t, fits, err == nil, "%.40s: %v", text, err)
		s := object(nil, "a", with(str(), func(s *Schema) { s.Pattern = text }))
		assert.Equal(t, fits, s.Compile() == nil, "%.40s", text)
	}
}

// TestValidationIsBounded: validation that exceeds its cost limit reports a cause, also below
// not, which would invert the result of a branch.
func TestValidationIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, in one goroutine")
	}
	costly := with(str(), func(s *Schema) { s.Pattern = "(?:[a-z]){1000}b" })
	nested := with(integer(), func(s *Schema) { s.Minimum = ref(1.0) })
	for range 12 {
		below := nested
		nested = with(integer(), func(s *Schema) { s.AnyOf = []*Schema{below, below} })
	}
	zeros, letters := make([]any, 19_000), make([]any, 10)
	for i := range zeros {
		zeros[i] = int64(0)
	}
	for i := range letters {
		letters[i] = strings.Repeat("a", 300_000)
	}
	for name, c := range map[string]struct {
		schema *Schema
		value  any
	}{
		"branches": {list(with(integer(), func(s *Schema) { s.AnyOf = []*Schema{nested, integer()} })), zeros},
		"pattern":  {costly, letters[0]},
		"patterns": {list(costly), letters},
		"not":      {with(&Schema{Type: Array, Items: str()}, func(s *Schema) { s.Not = list(costly) }), letters},
		"any of":   {with(&Schema{Type: Array, Items: str()}, func(s *Schema) { s.AnyOf = []*Schema{list(costly), list(str())} }), letters},
	} {
		s := kind(t, nil, c.schema)
		causes := s.Validate(map[string]any{"spec": c.value}, nil)
		require.LessOrEqual(t, len(causes), maxReported, name)
		var all strings.Builder
		for _, cause := range causes {
			all.WriteString(cause.Message + "\n")
		}
		assert.Contains(t, all.String(), "takes too long", name)
	}
	s := kind(t, nil, list(with(str(), func(s *Schema) { s.Pattern = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$` })))
	assert.Empty(t, s.Validate(map[string]any{"spec": letters}, nil), "what is common is no fault however much there is of it")
}
