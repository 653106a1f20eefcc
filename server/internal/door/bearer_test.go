package door

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSpaceBeforeBearer(t *testing.T) {
	for header, want := range map[string]bool{
		"Bearer abc": false, " bearer abc": false, "BEARER abc  def": false, "Bearer  abc": true, "bearer   abc": true,
		"Bearer": false, "Bearer  ": false, "Basic  abc": false, "": false,
	} {
		r := &http.Request{Header: http.Header{"Authorization": {header}}}
		assert.Equal(t, want, spaceBeforeBearer(r), header)
	}
}
