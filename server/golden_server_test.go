package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/server"
)

// goldenServer configures a server as the transcripts want it: the callers of
// users.csv.
func goldenServer(t *testing.T, users string) func(*server.Builder) {
	return func(b *server.Builder) {
		tokens, err := tokenfile.Load(users)
		require.NoError(t, err)
		b.Authenticators = []auth.Authenticator{tokens, auth.AnonymousAccess}
	}
}
