package kubeconfig

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUserForHostIsLongestMatch(t *testing.T) {
	names := []string{"hook.ns.svc", "hook.ns.svc:8443", "*.ns.svc", "*.svc:9443", "example.com:444", "*.example.com", "*"}
	text := "users:\n"
	for _, name := range names {
		text += "- {name: '" + name + "', user: {token: '" + name + "'}}\n"
	}
	config, err := Parse([]byte(text), "")
	require.NoError(t, err)
	for host, want := range map[string]string{
		"hook.ns.svc:443": "hook.ns.svc", "hook.ns.svc:8443": "hook.ns.svc:8443", "other.ns.svc:443": "*.ns.svc", "other.ns.svc:8443": "*",
		"other.ns.svc:9443": "*.svc:9443", "a.b.c": "*", "example.com": "*", "example.com:443": "*", "example.com:444": "example.com:444", "a.b.example.com": "*.example.com",
		"nobody.svc:443": "*",
	} {
		assert.Equal(t, want, config.userForHost(host).Token, host)
	}
	config, err = Parse([]byte("{current-context: c, contexts: [{name: c, context: {user: u}}], users: [{name: u, user: {token: t}}]}"), "")
	require.NoError(t, err)
	assert.Equal(t, "t", config.userForHost("a.b:1").Token)
	assert.Empty(t, (&Config{}).userForHost(strings.Repeat("a.", 100)).Token)
}
