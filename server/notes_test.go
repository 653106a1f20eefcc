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
	assert.Len(t, n.annotations.list, maxAnnotations)
	assert.Equal(t, maxAnnotations, n.leftOut)
	for range 10 {
		n.Annotate("small1", long)
	}
	n.Annotate("small2", strings.Repeat("x", maxAnnotated))
	assert.Equal(t, annotation{"small1", long}, n.annotations.list[1])
	assert.Equal(t, annotation{"small2", "a"}, n.annotations.list[2])
	n.Annotate("small1", "b")
	total := 0
	for _, a := range n.annotations.list {
		total += a.size()
	}
	assert.Equal(t, total, n.annotations.size)
}

// TestExternalAnnotationsAreBounded: they take no room from what the server says.
func TestExternalAnnotationsAreBounded(t *testing.T) {
	var n notes
	kept := 0
	for i := range 2 * maxAnnotations {
		if n.AnnotateExternal("external"+strconv.Itoa(i), "a") {
			kept++
		}
	}
	assert.Equal(t, maxExternal, kept)
	assert.True(t, n.AnnotateExternal("external1", "b"))
	assert.False(t, n.AnnotateExternal("external1", strings.Repeat("x", maxExternally)))
	for i := range maxAnnotations {
		n.Annotate("own"+strconv.Itoa(i), "a")
	}
	assert.Len(t, n.annotations.list, maxAnnotations)
	assert.Zero(t, n.leftOut)
}
