package auth_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/auth"
)

func TestSpaceBeforeBearer(t *testing.T) {
	for header, want := range map[string]bool{
		"Bearer abc": false, " bearer abc": false, "BEARER abc  def": false, "Bearer  abc": true, "bearer   abc": true,
		"Bearer": false, "Bearer  ": false, "Basic  abc": false, "": false,
	} {
		r := &http.Request{Header: http.Header{"Authorization": {header}}}
		assert.Equal(t, want, auth.SpaceBeforeBearer(r), header)
	}
}
