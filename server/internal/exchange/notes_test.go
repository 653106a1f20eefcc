package exchange

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAnnotationsAreBounded adds too many annotations: the first annotations are kept, in order,
// each with the last value that fits.
func TestAnnotationsAreBounded(t *testing.T) {
	var n Notes
	long := strings.Repeat("x", maxAnnotationBytes/4)
	for i := range 2 * maxAnnotations {
		n.Annotate("small"+strconv.Itoa(i), "a")
	}
	assert.Len(t, n.own.list, maxAnnotations)
	assert.Equal(t, maxAnnotations, n.leftOut)
	for range 10 {
		n.Annotate("small1", long)
	}
	n.Annotate("small2", strings.Repeat("x", maxAnnotationBytes))
	assert.Equal(t, annotation{"small1", long}, n.own.list[1])
	assert.Equal(t, annotation{"small2", "a"}, n.own.list[2])
	n.Annotate("small1", "b")
	total := 0
	for _, a := range n.own.list {
		total += a.size()
	}
	assert.Equal(t, total, n.own.size)
}

// TestExternalAnnotationsAreBounded adds too many annotations of webhooks: they take no room
// from the server's own annotations.
func TestExternalAnnotationsAreBounded(t *testing.T) {
	var n Notes
	kept := 0
	for i := range 2 * maxAnnotations {
		if n.AnnotateExternal("external"+strconv.Itoa(i), "a") {
			kept++
		}
	}
	assert.Equal(t, maxExternal, kept)
	assert.True(t, n.AnnotateExternal("external1", "b"))
	assert.False(t, n.AnnotateExternal("external1", strings.Repeat("x", maxExternalBytes)))
	for i := range maxAnnotations {
		n.Annotate("own"+strconv.Itoa(i), "a")
	}
	assert.Len(t, n.own.list, maxAnnotations)
	assert.Zero(t, n.leftOut)
}
