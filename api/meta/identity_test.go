package meta_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
)

// TestParseKey: ParseKey inverts Key.String, and rejects texts that String cannot return.
func TestParseKey(t *testing.T) {
	for _, key := range []meta.Key{{Name: "a"}, {Namespace: "default", Name: "a"}, {Namespace: "x", Name: "system:node:a"}} {
		got, err := meta.ParseKey(key.String())
		assert.NoError(t, err)
		assert.Equal(t, key, got)
	}
	for _, bad := range []string{"", "/", "a/", "/a", "a/b/", "/a/b", "a//b", "a/b/c"} {
		_, err := meta.ParseKey(bad)
		assert.Error(t, err, bad)
	}
}
