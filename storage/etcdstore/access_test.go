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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// optionsWithUser creates a user who may read and write the keys below /ours/, enables authentication,
// and returns the options of a store with that user.
func optionsWithUser(t testing.TB, m *etcdtest.Member) etcdstore.Options {
	admin := newClient(t, m)
	o := addUser(t, admin)
	_, err := admin.AuthEnable(t.Context())
	require.NoError(t, err)
	return o
}

func addUser(t testing.TB, admin *clientv3.Client) etcdstore.Options {
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
	} {
		require.NoError(t, do())
	}
	return etcdstore.Options{Endpoints: admin.Endpoints(), Prefix: "/ours", Username: "ours", Password: "password", Retain: -1}
}

// TestUserNeedsRootOnlyToCompact: a user with read and write permission below the prefix can do
// everything except compact, which needs the role root.
func TestUserNeedsRootOnlyToCompact(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := optionsWithUser(t, etcdtest.Start(t))
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
		t.Fatal("Scan returned a key without the prefix")
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

// TestExpiredTokenIsRenewed: every kind of call succeeds after the token of the user has expired.
func TestExpiredTokenIsRenewed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate(t, dir, time.Hour)
	key := filepath.Join(dir, "key.pem")
	for kind, token := range map[string]struct {
		flag string
		age  time.Duration
	}{
		"simple": {"--auth-token-ttl=1", 2500 * time.Millisecond}, // etcd removes expired tokens once per second
		"JWT":    {"--auth-token=jwt,sign-method=ES256,ttl=1s,priv-key=" + key, 1100 * time.Millisecond},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			checkCallsWithExpiredTokens(t, optionsWithUser(t, etcdtest.Start(t, token.flag)), token.age)
		})
	}
}

// checkCallsWithExpiredTokens makes calls and waits before each until the token has expired.
func checkCallsWithExpiredTokens(t *testing.T, o etcdstore.Options, age time.Duration) {
	s, err := etcdstore.Open(t.Context(), o)
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
		time.Sleep(age)
		require.NoError(t, call(), name)
	}
	require.NoError(t, <-changes)
	require.Positive(t, s.Size())
}

// TestAuthEnabledWhileOpen: a store with a user keeps working when authentication is enabled while it
// is open. A store without a user then fails to open without retries.
func TestAuthEnabledWhileOpen(t *testing.T) {
	t.Parallel()
	admin := newClient(t, etcdtest.Start(t))
	o := addUser(t, admin)
	s, err := etcdstore.Open(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	first := put(t, s, "a", "1")
	_, err = admin.AuthEnable(t.Context())
	require.NoError(t, err)
	require.Greater(t, put(t, s, "a", "2"), first)
	require.NoError(t, firstOf(t, s, first))
	o.Username, o.Password = "", ""
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // less than the time for which a store retries
	defer cancel()
	_, err = etcdstore.Open(ctx, o)
	require.ErrorContains(t, err, "user name is empty")
}

// TestCompactionErrorIsLoggedOnce: a store whose user may not compact logs the error once, not in every
// turn.
func TestCompactionErrorIsLoggedOnce(t *testing.T) {
	t.Parallel()
	o := optionsWithUser(t, etcdtest.Start(t))
	o.Retain = time.Second / 2
	var logged logLines
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	s, err := etcdstore.Open(t.Context(), o)
	require.NoError(t, err)
	for range 60 { // each takes as long as a turn of compactLoop
		put(t, s, "a", "1")
		time.Sleep(50 * time.Millisecond)
	}
	require.NoError(t, s.Close())
	require.Len(t, logged.all(), 1, logged.all())
	require.Contains(t, logged.all()[0], "permission denied")
}

// logLines collects the lines written to a log.
type logLines struct {
	mu   sync.Mutex
	text []string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(p))
	return len(p), nil
}

func (l *logLines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.text)
}

// TestOpenEndsWithItsContext: Open returns when its context ends, even if etcd does not answer the
// authentication request.
func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	o := optionsWithUser(t, m)
	m.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := etcdstore.Open(ctx, o)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(begun), 4*time.Second)
	m.Resume()
}

// TestPrefixInsideAnotherStoreIsRejected: Open rejects a prefix whose keys could belong to another
// store.
func TestPrefixInsideAnotherStoreIsRejected(t *testing.T) {
	for _, prefix := range []string{"/data", "/a/data/x", "/a/fences", "stamps/"} {
		_, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: []string{"127.0.0.1:1"}, Prefix: prefix})
		require.ErrorContains(t, err, "within another store", prefix)
	}
}

// TestClientCertificateCanBeReplaced: etcd requires a client certificate; the store uses the
// certificate that GetClientCertificate returns at the time of a connection.
func TestClientCertificateCanBeReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trusted := filepath.Join(dir, "trusted.pem")
	pool := x509.NewCertPool()
	of := func(name string, valid time.Duration) (cert, key string) {
		own := filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(own, 0o700))
		pem := certificate(t, own, valid)
		require.True(t, pool.AppendCertsFromPEM(pem))
		all, _ := os.ReadFile(trusted) // the file does not exist at the first call
		require.NoError(t, os.WriteFile(trusted, append(all, pem...), 0o600))
		return filepath.Join(own, "cert.pem"), filepath.Join(own, "key.pem")
	}
	cert, key := of("server", time.Hour)
	const valid = 20 * time.Second
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	of("second", time.Hour)
	of("first", valid)
	expired := time.After(valid)
	m := etcdtest.Start(t, "--cert-file", cert, "--key-file", key, "--trusted-ca-file", trusted, "--client-cert-auth")
	var own atomic.Value // the directory of the certificate of the store
	own.Store(first)
	o := etcdstore.Options{Endpoints: []string{m.Endpoint}, Retain: -1, TLS: &tls.Config{
		RootCAs: pool,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			dir := own.Load().(string)
			pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
			return &pair, err
		},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := etcdstore.Open(ctx, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, firstOf(t, s, put(t, s, "a", "1")-1))

	<-expired
	refused := func(o etcdstore.Options) {
		short, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		_, err := etcdstore.Open(short, o)
		require.Error(t, err)
	}
	refused(o)
	none := o
	none.TLS = &tls.Config{RootCAs: pool}
	refused(none)
	own.Store(second)
	m.Kill() // to force a new connection
	m.Restart()
	require.NoError(t, firstOf(t, s, put(t, s, "a", "2")-1))
}

// certificate writes a self-signed certificate and its key into dir.
func certificate(t testing.TB, dir string, valid time.Duration) (certPEM []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: filepath.Base(dir)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(valid),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), certPEM, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.pem"), keyPEM, 0o600))
	return certPEM
}
