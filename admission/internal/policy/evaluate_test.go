package policy

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestAnnotationsAreBounded(t *testing.T) {
	r := &evaluation{annotations: map[string]map[string][]string{}}
	for i := range 100 {
		r.annotate("p", "k", strconv.Itoa(i)+strings.Repeat("ä", 1500))
	}
	text := strings.Join(r.annotations["p"]["k"], separator)
	assert.True(t, utf8.ValidString(text))
	assert.LessOrEqual(t, len(text), maxAnnotation)
	assert.Greater(t, len(text), maxAnnotation-8)
	r.annotate("p", "other", "a")
	r.annotate("p", "other", "a")
	assert.Equal(t, []string{"a"}, r.annotations["p"]["other"])
}
