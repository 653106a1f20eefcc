package pki_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/internal/pkitest"
)

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func ecKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return k
}

func certificate(t testing.TB, key any, public any) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)},
		&x509.Certificate{Subject: pkix.Name{CommonName: "ca"}}, public, key)
	require.NoError(t, err)
	return der
}

func request(t testing.TB, names int) []byte {
	t.Helper()
	r := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "alice"}}
	for i := range names {
		r.DNSNames = append(r.DNSNames, fmt.Sprintf("h%d.example.com", i))
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, r, ecKey(t))
	require.NoError(t, err)
	return block("CERTIFICATE REQUEST", der)
}

func TestParseRequestChecksLimits(t *testing.T) {
	r, err := pki.ParseRequest(append([]byte("note\n"), request(t, pki.MaxNames)...))
	require.NoError(t, err)
	assert.Equal(t, "alice", r.Subject.CommonName)

	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"nothing":          {nil, "PEM block type must be CERTIFICATE REQUEST"},
		"another block":    {block("CERTIFICATE", nil), "PEM block type must be CERTIFICATE REQUEST"},
		"garbage":          {block("CERTIFICATE REQUEST", []byte("x")), "asn1"},
		"too many names":   {request(t, pki.MaxNames+1), "1001 alternative names"},
		"a long modulus":   {pkitest.Request(1_000_000), "an RSA key of 1000000 bits: must have at most 8192"},
		"longer":           {pkitest.Request(16 << 20), "a request of"},
		"not signed":       {pkitest.Request(8192), "verification error"},
		"one bit too long": {pkitest.Request(8193), "an RSA key of 8193 bits"},
	} {
		_, err := pki.ParseRequest(c.text)
		assert.ErrorContains(t, err, c.want, name)
	}
}

func TestParseChainChecksLimits(t *testing.T) {
	key := ecKey(t)
	good := block("CERTIFICATE", certificate(t, key, key.Public()))
	chain, err := pki.ParseChain(bytes.Repeat(good, pki.MaxChain))
	require.NoError(t, err)
	assert.Len(t, chain, pki.MaxChain)

	long := certificate(t, key, pkitest.PublicKey(1<<20))
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"nothing":        {nil, "at least one CERTIFICATE PEM block"},
		"another block":  {append(good, block("PRIVATE KEY", nil)...), "only CERTIFICATE PEM blocks"},
		"headers":        {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"a": "b"}}), "no PEM block headers"},
		"too many":       {bytes.Repeat(good, pki.MaxChain+1), "at most 256 certificates"},
		"a long modulus": {block("CERTIFICATE", long), "an RSA key of 1048576 bits"},
		"too long":       {block("CERTIFICATE", make([]byte, pki.MaxCertificate+1)), "a certificate of 262145 bytes"},
	} {
		_, err := pki.ParseChain(c.text)
		assert.ErrorContains(t, err, c.want, name)
	}

	_, err = pki.ParsePool(append(block("CERTIFICATE", long), good...))
	assert.NoError(t, err)
	_, err = pki.ParsePool(block("CERTIFICATE", long))
	assert.ErrorContains(t, err, "no certificate")
}

func TestParseKeyPairChecksLimits(t *testing.T) {
	ec := ecKey(t)
	cert := block("CERTIFICATE", certificate(t, ec, ec.Public()))
	pkcs8, err := x509.MarshalPKCS8PrivateKey(ec)
	require.NoError(t, err)
	sec1, err := x509.MarshalECPrivateKey(ec)
	require.NoError(t, err)
	for _, key := range [][]byte{block("PRIVATE KEY", pkcs8), block("EC PRIVATE KEY", sec1)} {
		_, err = pki.ParseKeyPair(cert, key)
		assert.NoError(t, err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	pkcs8, err = x509.MarshalPKCS8PrivateKey(rsaKey)
	require.NoError(t, err)
	forRSA := block("CERTIFICATE", certificate(t, rsaKey, rsaKey.Public()))
	for _, key := range [][]byte{block("PRIVATE KEY", pkcs8), block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))} {
		_, err = pki.ParseKeyPair(forRSA, key)
		assert.NoError(t, err)
	}

	wrap := func(der []byte) []byte {
		out, err := asn1.Marshal(struct {
			Version   int
			Algorithm pkix.AlgorithmIdentifier
			Key       []byte
		}{0, pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: asn1.NullRawValue}, der})
		require.NoError(t, err)
		return out
	}
	for name, c := range map[string]struct {
		key  []byte
		want string
	}{
		"nothing":               {nil, "failed to find any PEM data in key input"},
		"a long modulus":        {pkitest.PrivateKey(10_000, 4096), "an RSA key of 10000 bits"},
		"long factors":          {pkitest.PrivateKey(8192, 8192), "a factor of more than"},
		"a key of many bytes":   {pkitest.PrivateKey(1<<19, 1<<18), "a private key of"},
		"wrapped":               {wrap(pkitest.PrivateKey(10_000, 4096)), "an RSA key of 10000 bits"},
		"a wrapped long factor": {wrap(pkitest.PrivateKey(8192, 8192)), "a factor of more than"},
		"not a key":             {[]byte("x"), "failed to parse private key"},
	} {
		key := c.key
		if key != nil {
			key = block("ANY PRIVATE KEY", key)
		}
		_, err = pki.ParseKeyPair(cert, key)
		assert.ErrorContains(t, err, c.want, name)
	}
	_, err = pki.ParseKeyPair(bytes.Repeat(cert, pki.MaxChain+1), nil)
	assert.ErrorContains(t, err, "at most 256 certificates")
	_, err = pki.ParseKeyPair(block("CERTIFICATE", make([]byte, pki.MaxCertificate+1)), nil)
	assert.ErrorContains(t, err, "a certificate of 262145 bytes")
}

func FuzzParse(f *testing.F) {
	f.Add(pkitest.Request(1024), pkitest.PrivateKey(1024, 512))
	f.Add(request(f, 1), []byte("x"))
	key := ecKey(f)
	sec1, err := x509.MarshalECPrivateKey(key)
	require.NoError(f, err)
	f.Add(block("CERTIFICATE", certificate(f, key, key.Public())), sec1)
	f.Fuzz(func(t *testing.T, text, der []byte) {
		if r, err := pki.ParseRequest(text); err == nil {
			assert.NoError(t, pki.CheckPublicKey(r.PublicKey))
		}
		chain, err := pki.ParseChain(text)
		assert.Equal(t, err == nil, len(chain) > 0)
		_, _ = pki.ParsePool(text)
		_, _ = pki.ParseKeyPair(text, block("PRIVATE KEY", der))
	})
}

func ExampleParseRequest() {
	_, err := pki.ParseRequest(pkitest.Request(1_000_000))
	fmt.Println(err)
	// Output: an RSA key of 1000000 bits: must have at most 8192
}
