package recordings_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/certificates"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
)

// goldenServer is a server as the transcripts want it: the usual access control,
// the callers of users.csv. Its background loops run if asked for.
func goldenServer(t *testing.T, users string, loops bool, kinds ...*registry.Kind) *server.Server {
	tokens, err := tokenfile.Load(users)
	require.NoError(t, err)
	b := &server.Builder{Names: names.Kubernetes}
	b.Register(builtin.Kinds()...)
	b.Register(kinds...)
	require.NoError(t, access.Setup(b, access.Config{
		Authenticators: []auth.Authenticator{tokens}, Signer: certificates.Signer{Authority: newAuthority(t)},
	}))
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
	if loops {
		go func() { assert.NoError(t, s.Run(context.Background())) }()
		<-s.Running()
	}
	return s
}

// newAuthority makes an authority that signs certificates for a test.
func newAuthority(t testing.TB) *certificates.Authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	self := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, self, self, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	a, err := certificates.NewAuthority(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	require.NoError(t, err)
	return a
}
