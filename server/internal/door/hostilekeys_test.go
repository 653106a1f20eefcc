package door_test

import (
	"bytes"
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/pkitest"
	"orch.io/controlplane/server/internal/apitest"
)

// TestHugeKeysAreRefusedUnverified checks that a certificate signing request with a key of millions
// of bits is refused before any arithmetic with the key.
func TestHugeKeysAreRefusedUnverified(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t)
	a := apitest.InProcess(t, s)
	const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

	// The first request is as long as a body may be and is refused by its length. The second is as
	// long as a certificate request may be and is refused by its modulus.
	for bits, want := range map[int]string{4_000_000: "a request of", 1_000_000: "an RSA key of 1000000 bits: must have at most 8192"} {
		got := a.Do("POST", requests, map[string]any{
			"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": map[string]any{"name": "bomb"},
			"spec": map[string]any{"signerName": "example.com/mine", "usages": []string{"client auth"}, "request": pkitest.Request(bits)},
		})
		refused(t, got, bits)
		assert.Equal(t, 422, got.Code)
		assert.Contains(t, got.Causes(), "spec.request FieldValueInvalid")
		assert.Contains(t, apitest.NestedString(got.Body, "message"), want)
	}

	secret := func(name string, chain, key []byte) apitest.Response {
		return a.Must(201, "POST", "/api/v1/namespaces/default/secrets", map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "type": "kubernetes.io/tls",
			"data": map[string]any{"tls.crt": chain, "tls.key": key},
		})
	}
	some := httptest.NewTLSServer(nil)
	defer some.Close()
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: some.Certificate().Raw})
	block := func(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}) }
	for name, c := range map[string]struct {
		chain, key []byte
		want       string
	}{
		"modulus": {chain, block(pkitest.PrivateKey(1<<19, 1<<18)), "a private key of"},
		"factor":  {chain, block(pkitest.PrivateKey(8192, 16384)), "a factor of more than"},
		"chain":   {bytes.Repeat(chain, 300), block(nil), "at most 256 certificates"},
	} {
		assert.Contains(t, secret(name, c.chain, c.key).Header.Get("Warning"), c.want, name)
	}
}
