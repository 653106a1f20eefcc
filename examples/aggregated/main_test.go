package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/server/serving"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const frontName = "front-proxy-client"

// cluster returns a server with RBAC and the manifests, and a kubeconfig with which the program
// connects to it.
func cluster(t *testing.T) (s *servertest.Server, kubeconfig string) {
	t.Helper()
	s = servertest.New(t, servertest.RBAC)
	s.Load(os.DirFS("manifests"))
	return s, s.As("system:serviceaccount:harbor:berths").Kubeconfig()
}

// publish makes a cluster publish the authority of its front proxy.
func publish(t *testing.T, s *servertest.Server, front *serving.Authority) {
	t.Helper()
	list := func(v ...string) string {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return string(text)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "kube-system", "name": wellknown.ReaderConfigMap},
		"data": map[string]any{
			"requestheader-client-ca-file": string(front.PEM()), "requestheader-allowed-names": list(frontName),
			"requestheader-username-headers": list("X-Remote-User"), "requestheader-group-headers": list("X-Remote-Group"),
			"requestheader-extra-headers-prefix": list("X-Remote-Extra-"),
		},
	})
	require.NoError(t, err)
	s.Load(fstest.MapFS{"settings.json": {Data: text}})
}

func authority(t *testing.T) *serving.Authority {
	t.Helper()
	ca, err := serving.NewAuthority(t.Name())
	require.NoError(t, err)
	return ca
}

// program is a running server of the program, as its clients see it.
type program struct {
	url string
	ca  *serving.Authority // the authority of its certificate
}

// files returns options with a certificate of an authority.
func files(t *testing.T, ca *serving.Authority, kubeconfig string) options {
	t.Helper()
	dir := t.TempDir()
	o := options{kubeconfig: kubeconfig, listen: "127.0.0.1:0", cert: filepath.Join(dir, "crt"), key: filepath.Join(dir, "key"), dir: filepath.Join(dir, "objects")}
	cert, key, err := ca.Server("berths.harbor.svc")
	require.NoError(t, err)
	require.NoError(t, serving.WritePrivate(o.cert, cert))
	require.NoError(t, serving.WritePrivate(o.key, key))
	return o
}

// start runs the program until the test ends.
func start(t *testing.T, kubeconfig string) program {
	t.Helper()
	p := program{ca: authority(t)}
	o := files(t, p.ca, kubeconfig)
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, o, out)
		out.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	says, err := bufio.NewReader(in).ReadString('\n')
	require.NoError(t, err)
	p.url = strings.TrimSpace(strings.TrimPrefix(says, "serving "+group+" on "))
	return p
}

// caller sends requests as a front proxy does on behalf of a user.
type caller struct {
	next   http.RoundTripper
	user   string
	groups []string
}

func (c caller) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Remote-User", c.user)
	r.Header["X-Remote-Group"] = c.groups
	return c.next.RoundTrip(r)
}

// as returns a client that acts as a front proxy for a user. The proxy has a certificate of an
// authority with a name, or none if proxy is nil.
func (p program) as(t *testing.T, proxy *serving.Authority, name, user string, groups ...string) *client.Objects[Berth] {
	t.Helper()
	config := &tls.Config{RootCAs: p.ca.Pool(), ServerName: "berths.harbor.svc"}
	if proxy != nil {
		cert, key, err := proxy.Client(name)
		require.NoError(t, err)
		pair, err := tls.X509KeyPair(cert, key)
		require.NoError(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	conn := client.Conn{URL: p.url, Transport: caller{transport, user, groups}, Names: names.Kubernetes}
	return client.Of[Berth](conn, berth()).In("default")
}

func newBerth(name string) *Berth {
	b := &Berth{ObjectMeta: meta.ObjectMeta{Name: name}}
	b.Spec.Length = 120
	return b
}

// roles of the cluster: pilots read berths in the namespace default, and jane creates them.
const roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: read-berths}
rules: [{apiGroups: [harbor.example.com], resources: [berths], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: make-berths}
rules: [{apiGroups: [harbor.example.com], resources: [berths], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: pilots}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: read-berths}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: pilots}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: makers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: make-berths}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
`

// TestAuthentication: only the front proxy of the cluster may pass users, and the roles of the cluster
// decide what they may do.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, kubeconfig := cluster(t)
	front := authority(t)
	publish(t, s, front)
	s.Load(fstest.MapFS{"roles.yaml": {Data: []byte(roles)}})
	p := start(t, kubeconfig)

	_, err := p.as(t, front, frontName, "jane").Create(ctx, newBerth("one"))
	require.NoError(t, err)
	for _, c := range []struct {
		what    string
		berths  *client.Objects[Berth]
		refused meta.Reason
		says    string
	}{
		{"by a role", p.as(t, front, frontName, "bob", "crew", "pilots"), "", ""},
		{"the administrator", p.as(t, front, frontName, "admin", auth.Masters), "", ""},
		{"without the role", p.as(t, front, frontName, "jane"), meta.ReasonForbidden, `"jane" cannot get resource "berths"`},
		{"in another namespace", p.as(t, front, frontName, "bob", "pilots").In("harbor"), meta.ReasonForbidden, `in the namespace "harbor"`},
		{"no certificate", p.as(t, nil, "", "admin", auth.Masters), meta.ReasonForbidden, `"system:anonymous" cannot get`},
		{"a certificate of another authority", p.as(t, authority(t), frontName, "admin", auth.Masters), meta.ReasonUnauthorized, ""},
		{"a certificate of the server's authority", p.as(t, p.ca, frontName, "admin", auth.Masters), meta.ReasonUnauthorized, ""},
		{"a certificate with another name", p.as(t, front, "kubelet", "admin", auth.Masters), meta.ReasonUnauthorized, ""},
	} {
		got, err := c.berths.Get(ctx, "one")
		assert.Equal(t, c.refused, meta.ReasonOf(err), "%s: %v", c.what, err)
		if c.refused == "" && assert.NoError(t, err, c.what) {
			assert.Equal(t, 120, got.Spec.Length, c.what)
		} else {
			assert.ErrorContains(t, err, c.says, c.what)
		}
	}
}

// TestNamespaces: objects can only be created in namespaces of the cluster.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	s, kubeconfig := cluster(t)
	front := authority(t)
	publish(t, s, front)
	s.Load(fstest.MapFS{"roles.yaml": {Data: []byte(roles)}, "ending.yaml": {Data: []byte(`
apiVersion: v1
kind: Namespace
metadata: {name: ending}
spec: {finalizers: [example.com/held]}
`)}})
	err := s.Objects().Delete(t.Context(), meta.GroupResource{Resource: "namespaces"}, meta.Key{Name: "ending"}, registry.DeleteOptions{})
	require.NoError(t, err)
	jane := start(t, kubeconfig).as(t, front, frontName, "jane")
	_, err = jane.In("nowhere").Create(t.Context(), newBerth("one"))
	assert.ErrorContains(t, err, `namespaces "nowhere" not found`)
	_, err = jane.In("ending").Create(t.Context(), newBerth("one"))
	assert.ErrorContains(t, err, "namespace ending is being deleted")
	assert.Equal(t, meta.ReasonForbidden, meta.ReasonOf(err))
}

// TestNewAuthority: a new authority that the cluster publishes takes effect, and invalid settings
// change nothing.
func TestNewAuthority(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, kubeconfig := cluster(t)
	before, after := authority(t), authority(t)
	publish(t, s, before)
	p := start(t, kubeconfig)
	then, now := p.as(t, before, frontName, "admin", auth.Masters), p.as(t, after, frontName, "admin", auth.Masters)
	_, err := now.Get(ctx, "one")
	require.Equal(t, meta.ReasonUnauthorized, meta.ReasonOf(err), err)
	_, err = then.Get(ctx, "one")
	require.Equal(t, meta.ReasonNotFound, meta.ReasonOf(err), err)
	publish(t, s, after)
	require.Eventually(t, func() bool {
		_, err := now.Get(ctx, "one")
		return meta.IsNotFound(err)
	}, time.Minute, 10*time.Millisecond)
	_, err = then.Get(ctx, "one")
	require.Equal(t, meta.ReasonUnauthorized, meta.ReasonOf(err), err)
}

// TestStartErrors: the server does not start without the settings of the cluster or the right to read
// them.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	s, kubeconfig := cluster(t)
	says := func(kubeconfig, want string) {
		t.Helper()
		assert.ErrorContains(t, run(t.Context(), files(t, authority(t), kubeconfig), io.Discard), want)
	}
	says(kubeconfig, `configmaps "extension-apiserver-authentication" not found`)
	s.Load(fstest.MapFS{"settings.yaml": {Data: []byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: extension-apiserver-authentication, namespace: kube-system}
data: {client-ca-file: of callers and not of the proxy}
`)}})
	says(kubeconfig, "the cluster publishes no CA of its front proxy")
	says(s.As("jane").Kubeconfig(), `"jane" cannot get resource "configmaps"`)
}
