package server

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAnnotationsAreBounded: the first ones stay, in order, and of one key the last value.
func TestAnnotationsAreBounded(t *testing.T) {
	var n notes
	long := strings.Repeat("x", maxAnnotated/4)
	for i := range 2 * maxAnnotations {
		n.Annotate("small"+strconv.Itoa(i), "a")
	}
	assert.Len(t, n.annotations, maxAnnotations)
	for range 10 {
		n.Annotate("small1", long)
	}
	n.Annotate("small2", strings.Repeat("x", maxAnnotated))
	assert.Equal(t, annotation{"small1", long}, n.annotations[1])
	assert.Equal(t, annotation{"small2", "a"}, n.annotations[2])
	n.Annotate("small1", "b")
	total := 0
	for _, a := range n.annotations {
		total += a.size()
	}
	assert.Equal(t, total, n.annotated)
}
