package verbs

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFieldManagerOfAWrite(t *testing.T) {
	for _, c := range [][3]string{
		{"", "", "unknown"}, {"", "tool/v1.2 (linux) abc", "tool"}, {"", "other", "other"}, {"named", "tool/v1", "named"},
		{"", "/x", "unknown"}, {"", "a\x00b\tc/1", "abc"}, {"", strings.Repeat("é", 100), strings.Repeat("é", 64)},
	} {
		o := writeOptions{manager: c[0]}
		assert.Equal(t, c[2], o.managerFor(&http.Request{Header: http.Header{"User-Agent": {c[1]}}}))
	}
	assert.Equal(t, "unknown", (&writeOptions{}).managerFor(nil))
}
