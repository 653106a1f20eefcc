package suggest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/suggest"
)

func ExampleNear() {
	fmt.Println(`no kind serves widget.example.com` + suggest.Near("widget.example.com", "pods", "widgets.example.com"))
	// Output: no kind serves widget.example.com; did you mean "widgets.example.com"?
}

func TestNearSuggestsSimilarWords(t *testing.T) {
	for _, c := range []struct {
		word, want string
		known      []string
	}{
		{"requird", "required", []string{"repeats", "required", "ratcheting"}},
		{"enmu", "enum", []string{"enum", "min"}},
		{"Min", "min", []string{"min", "max"}},
		{"podsecurity", "PodSecurity", []string{"PodSecurity", "Priority"}},
		{"v2", "v1", []string{"v1"}},
		{"apple", "", []string{"pear", "plum"}},
		{"", "", []string{"pods"}},
		{"x", "", nil},
		{strings.Repeat("a", 1<<20), "", []string{strings.Repeat("a", 1<<20-1)}},
	} {
		want := ""
		if c.want != "" {
			want = fmt.Sprintf("; did you mean %q?", c.want)
		}
		assert.Equal(t, want, suggest.Near(c.word, c.known...), "%.20s", c.word)
	}
}
