package etcdstore_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// TestUser: a user that may read and write under the prefix can do everything but compact, which
// is for root.
func TestUser(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	admin := another(t, m)
	ctx := t.Context()
	for _, do := range []func() error{
		func() error { _, err := admin.UserAdd(ctx, "root", "secret"); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := admin.UserAdd(ctx, "ours", "password"); return err },
		func() error { _, err := admin.RoleAdd(ctx, "ours"); return err },
		func() error {
			_, err := admin.RoleGrantPermission(ctx, "ours", "/ours/", clientv3.GetPrefixRangeEnd("/ours/"), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := admin.UserGrantRole(ctx, "ours", "ours"); return err },
		func() error { _, err := admin.AuthEnable(ctx); return err },
	} {
		require.NoError(t, do())
	}
	o := etcdstore.Options{Endpoints: []string{m.Endpoint}, Prefix: "/ours", Username: "ours", Password: "password", Retain: -1}
	s, err := etcdstore.Open(ctx, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	first := put(t, s, "a", "1")
	put(t, s, "\xff", "2")
	require.Equal(t, []string{"a", "\xff"}, keys(t, s, 0))
	require.NoError(t, firstOf(t, s, first))
	_, records, err := s.Scan(ctx, "a", "b", 0)
	require.NoError(t, err)
	for range records {
		t.Fatal("there is nothing behind the prefix")
	}
	have, err := s.Stamp(ctx, "name", "value")
	require.NoError(t, err)
	require.Equal(t, "value", have)
	require.NoError(t, s.Writable(ctx))
	require.NoError(t, s.Check(ctx))
	require.Positive(t, s.Size())
	require.ErrorContains(t, s.Compact(ctx, first+1), "permission denied")

	o.Prefix = "/theirs"
	_, err = etcdstore.Open(ctx, o)
	require.ErrorContains(t, err, "permission denied")
	o.Password = "wrong"
	_, err = etcdstore.Open(ctx, o)
	require.ErrorContains(t, err, "authentication failed")
}

// TestCertificates: the store has a certificate of its own, without which etcd lets nobody in.
func TestCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pool, pair := certificate(t, dir)
	m := etcdtest.Start(t, "--cert-file", filepath.Join(dir, "cert.pem"), "--key-file", filepath.Join(dir, "key.pem"),
		"--trusted-ca-file", filepath.Join(dir, "cert.pem"), "--client-cert-auth")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	o := etcdstore.Options{Endpoints: []string{m.Endpoint}, TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, Retain: -1}
	s, err := etcdstore.Open(ctx, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, firstOf(t, s, put(t, s, "a", "1")-1))

	short, end := context.WithTimeout(t.Context(), time.Second)
	defer end()
	o.TLS = &tls.Config{RootCAs: pool}
	_, err = etcdstore.Open(short, o)
	require.Error(t, err)
}

// certificate writes one that signs itself into a directory.
func certificate(t testing.TB, dir string) (*x509.CertPool, tls.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), certPEM, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.pem"), keyPEM, 0o600))
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certPEM))
	return pool, pair
}
