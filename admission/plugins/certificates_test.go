package plugins_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
)

// FuzzSubjectRestriction checks that every request is admitted or refused without a panic.
func FuzzSubjectRestriction(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(f, err)
	masters := x509.CertificateRequest{Subject: pkix.Name{CommonName: "x", Organization: []string{auth.Masters}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &masters, key)
	require.NoError(f, err)
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"))
	c := builtin(f, admission.Options{})
	f.Fuzz(func(t *testing.T, data []byte) {
		err := c.Validate(context.Background(), &admission.Request{Operation: admission.Create,
			Resource: meta.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"},
			Object: meta.NewObject(map[string]any{"spec": map[string]any{
				"signerName": "kubernetes.io/kube-apiserver-client", "request": base64.StdEncoding.EncodeToString(data)}})})
		if err != nil {
			assert.Equal(t, meta.ReasonForbidden, meta.ReasonOf(err))
		}
	})
}
