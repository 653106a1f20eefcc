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
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// withUser makes a user that may read and write under /ours/.
func withUser(t testing.TB, m *etcdtest.Member) etcdstore.Options {
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
	return etcdstore.Options{Endpoints: []string{m.Endpoint}, Prefix: "/ours", Username: "ours", Password: "password", Retain: -1}
}

// TestUser: a user that may read and write under the prefix can do everything but compact, which
// is for root.
func TestUser(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := withUser(t, etcdtest.Start(t))
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

// TestToken: the token that a user has got counts no more after a while, which no call is told.
func TestToken(t *testing.T) {
	t.Parallel()
	s, err := etcdstore.Open(t.Context(), withUser(t, etcdtest.Start(t, "--auth-token-ttl=1")))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	first := put(t, s, "a", "1")
	changes := make(chan error, 1)
	go func() { changes <- firstOf(t, s, first) }()
	for name, call := range map[string]func() error{
		"revision": func() error { _, err := s.Revision(t.Context()); return err },
		"get":      func() error { _, err := s.Get(t.Context(), "a", 0); return err },
		"scan":     func() error { _, _, err := s.Scan(t.Context(), "", "", first); return err },
		"stamp":    func() error { _, err := s.Stamp(t.Context(), "a", "b"); return err },
		"watch":    func() error { return firstOf(t, s, first-1) },
		"health":   func() error { return errors.Join(s.Writable(t.Context()), s.Check(t.Context())) },
		"commit": func() error {
			_, err := s.Commit(t.Context(), storage.Write{Key: "b", Value: []byte("1")})
			return err
		},
	} {
		time.Sleep(2500 * time.Millisecond) // etcd looks once in a second what is too old
		require.NoError(t, call(), name)
	}
	require.NoError(t, <-changes)
	require.Positive(t, s.Size())
}

// TestMayNotCompact: a store whose user may not compact says so, and not each time that it tries.
func TestMayNotCompact(t *testing.T) {
	t.Parallel()
	o := withUser(t, etcdtest.Start(t))
	o.Retain = time.Second / 2
	var said lines
	o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	s, err := etcdstore.Open(t.Context(), o)
	require.NoError(t, err)
	for range 60 { // each takes as long as a look at what may be forgotten
		put(t, s, "a", "1")
		time.Sleep(50 * time.Millisecond)
	}
	require.NoError(t, s.Close())
	require.Len(t, said.all(), 1, said.all())
	require.Contains(t, said.all()[0], "permission denied")
}

// lines are what was written to a log.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(p))
	return len(p), nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.text)
}

// TestOpenEnds: with its context, also if etcd does not answer who the user is.
func TestOpenEnds(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	o := withUser(t, m)
	m.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := etcdstore.Open(ctx, o)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(begun), 4*time.Second)
	m.Resume()
}

// TestPrefix: no store can lie within another one.
func TestPrefix(t *testing.T) {
	for _, prefix := range []string{"/data", "/a/data/x", "/a/marks", "stamps/"} {
		_, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: []string{"127.0.0.1:1"}, Prefix: prefix})
		require.ErrorContains(t, err, "within another store", prefix)
	}
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
