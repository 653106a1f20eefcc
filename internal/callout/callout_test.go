package callout

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/clientconfig"
)

// TestUser: the credentials for a host are those of the name that says most of it.
func TestUser(t *testing.T) {
	known := []string{"hook.ns.svc", "hook.ns.svc:8443", "*.ns.svc", "*.svc:9443", "example.com:444", "*.example.com", "*"}
	for host, want := range map[string]string{
		"hook.ns.svc:443": "hook.ns.svc", "hook.ns.svc:8443": "hook.ns.svc:8443", "other.ns.svc:443": "*.ns.svc", "other.ns.svc:8443": "*",
		"other.ns.svc:9443": "*.svc:9443", "a.b.c": "*", "example.com": "*", "example.com:443": "*", "example.com:444": "example.com:444", "a.b.example.com": "*.example.com",
		"nobody.svc:443": "*",
	} {
		config := &clientconfig.Config{}
		for _, name := range known {
			config.Users = append(config.Users, clientconfig.NamedUser{Name: name, User: clientconfig.User{Token: name}})
		}
		assert.Equal(t, want, user(config, host).Token, host)
	}
	config := &clientconfig.Config{
		CurrentContext: "c", Contexts: []clientconfig.NamedContext{{Name: "c", Context: clientconfig.Context{User: "u"}}},
		Users: []clientconfig.NamedUser{{Name: "u", User: clientconfig.User{Token: "t"}}},
	}
	assert.Equal(t, "t", user(config, "a.b:1").Token)
	assert.Empty(t, user(&clientconfig.Config{}, strings.Repeat("a.", 100)).Token)
}
