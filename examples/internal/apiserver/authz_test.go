package apiserver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAuthorizationModes: the modes are evaluated in order, and the first that has an opinion decides.
func TestAuthorizationModes(t *testing.T) {
	t.Parallel()
	f := files{t, t.TempDir()}
	users := f.put("users.csv", "alice-token,alice,2\n")
	policy := f.put("policy.jsonl", `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"*","resource":"secrets","apiGroup":"*","readonly":true}}`+"\n")
	for modes, want := range map[string]int{
		"": 403, "RBAC": 403, "Node": 403, "ABAC": 200, "Node,RBAC,ABAC": 200,
		"AlwaysAllow": 200, "AlwaysDeny": 403, "AlwaysDeny,AlwaysAllow": 403, "AlwaysAllow,AlwaysDeny": 200, "ABAC,AlwaysDeny": 200,
	} {
		args := []string{"--token-auth-file", users}
		if strings.Contains(modes, "ABAC") {
			args = append(args, "--authorization-policy-file", policy)
		}
		if modes != "" {
			args = append(args, "--authorization-mode", modes)
		}
		code, answer := ask(t, nil, "GET", startServer(t, args...)+"/api/v1/secrets", "alice-token", "")
		assert.Equal(t, want, code, "%s: %v", modes, answer)
	}
}

func TestIssuerDiscovery(t *testing.T) {
	t.Parallel()
	f := files{t, t.TempDir()}
	server := startServer(t, "--service-account-issuer", "https://issuer.example.com", "--token-auth-file", f.put("users.csv", "admin-token,admin,1,system:masters\n"))
	code, answer := ask(t, nil, "GET", server+"/.well-known/openid-configuration", "admin-token", "")
	assert.Equal(t, 200, code, answer)
	assert.Equal(t, "https://issuer.example.com", answer["issuer"])
	assert.Equal(t, "https://issuer.example.com/openid/v1/jwks", answer["jwks_uri"])
	code, _ = ask(t, nil, "GET", server+"/.well-known/openid-configuration", "", "")
	assert.Equal(t, 403, code, "only service accounts may read it")
}
