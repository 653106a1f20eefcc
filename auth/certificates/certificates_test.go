package certificates_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/certificates"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// authority returns a new authority whose certificate is valid for a duration.
func authority(t testing.TB, valid time.Duration) *certificates.Authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	a, err := certificates.NewAuthority(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	require.NoError(t, err)
	return a
}

func request(t testing.TB, template x509.CertificateRequest) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func subject(name string, orgs ...string) x509.CertificateRequest {
	return x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: orgs}}
}

func body(name string, req []byte, signer string, seconds int, usages ...string) map[string]any {
	spec := map[string]any{"request": base64.StdEncoding.EncodeToString(req), "signerName": signer, "usages": usages}
	if seconds > 0 {
		spec["expirationSeconds"] = seconds
	}
	return map[string]any{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
		"metadata": map[string]any{"name": name}, "spec": spec}
}

// world is a server with RBAC, static tokens and the controllers under test.
type world struct {
	t *testing.T
	*servertest.Server
}

func newWorld(t *testing.T, ca *certificates.Authority) world {
	tokens, err := tokenfile.Parse(strings.NewReader("root,root,1,system:masters\nalice,alice,2\nboot,system:bootstrap:abcdef,3,system:bootstrappers\nnode,system:node:n1,4,system:nodes\n"))
	require.NoError(t, err)
	p := names.Kubernetes
	s := servertest.New(t, func(b *server.Builder) {
		roles := rbac.New(b.Client(), p)
		all := auth.Chain(auth.Superuser(auth.Masters), roles)
		b.Authorizer, b.Authenticators = all, []auth.Authenticator{tokens}
		b.Admission = []admission.Plugin{plugins.RBACEscalation(roles)}
		b.Controllers = []client.Controller{certificates.Approver(all, p), certificates.Signer{Authority: ca}.Controller(p), certificates.Cleaner(p, nil)}
	})
	require.NoError(t, rbac.Reconcile(context.Background(), s.Objects(), p))
	return world{t, s}
}

func (w world) call(token, method, path string, body any) (int, *meta.Object) {
	data, err := json.Marshal(body)
	require.NoError(w.t, err)
	req, err := http.NewRequest(method, "https://server"+path, bytes.NewReader(data))
	require.NoError(w.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := w.Transport().RoundTrip(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	var tree map[string]any
	require.NoError(w.t, json.Unmarshal(data, &tree), string(data))
	return resp.StatusCode, meta.NewObject(tree)
}

func (w world) settle() { w.Settle() }

func (w world) grant(name, user string, rule map[string]any) {
	const base = "/apis/rbac.authorization.k8s.io/v1/"
	code, o := w.call("root", "POST", base+"clusterroles", map[string]any{"metadata": map[string]any{"name": name}, "rules": []any{rule}})
	require.Equal(w.t, 201, code, o)
	code, o = w.call("root", "POST", base+"clusterrolebindings", map[string]any{"metadata": map[string]any{"name": name},
		"roleRef":  map[string]any{"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"},
		"subjects": []any{map[string]any{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}}})
	require.Equal(w.t, 201, code, o)
}

func approved() map[string]any {
	return map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Approved", "status": "True", "reason": "R", "message": "m"}}}}
}

func certificate(t *testing.T, o *meta.Object) *x509.Certificate {
	data, err := base64.StdEncoding.DecodeString(o.String("status", "certificate"))
	require.NoError(t, err)
	block, _ := pem.Decode(data)
	require.NotNil(t, block, "no certificate: %v", o.Map("status"))
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

// TestApprovedRequestIsSigned creates, approves and reads a request.
func TestApprovedRequestIsSigned(t *testing.T) {
	w := newWorld(t, authority(t, 100*24*time.Hour))
	template := subject("zoe", "devs")
	template.DNSNames = []string{"zoe.example"}
	csr := request(t, template)
	code, o := w.call("root", "POST", path, body("zoe", csr, "kubernetes.io/kube-apiserver-client", 3600, "client auth", "digital signature"))
	require.Equal(t, 201, code, o)
	w.settle()
	_, o = w.call("root", "GET", path+"/zoe", nil)
	assert.Empty(t, o.String("status", "certificate"), "nothing is signed without approval")
	w.grant("update", "alice", map[string]any{"apiGroups": []string{"certificates.k8s.io"}, "resources": []string{"certificatesigningrequests/approval", "certificatesigningrequests/status"}, "verbs": []string{"patch"}})
	code, _ = w.call("alice", "PATCH", path+"/zoe/approval", approved())
	assert.Equal(t, 403, code, "update alone is not approve")
	code, _ = w.call("alice", "PATCH", path+"/zoe/status", map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}}})
	assert.Equal(t, 403, code, "update alone is not sign")
	w.grant("approve", "alice", map[string]any{"apiGroups": []string{"certificates.k8s.io"}, "resources": []string{"signers"}, "resourceNames": []string{"kubernetes.io/*"}, "verbs": []string{"approve"}})
	code, o = w.call("alice", "PATCH", path+"/zoe/approval", approved())
	require.Equal(t, 200, code, o)
	w.settle()
	_, o = w.call("root", "GET", path+"/zoe", nil)
	cert := certificate(t, o)
	assert.Equal(t, "zoe", cert.Subject.CommonName)
	assert.Equal(t, []string{"devs"}, cert.Subject.Organization)
	assert.Equal(t, []string{"zoe.example"}, cert.DNSNames)
	assert.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, cert.ExtKeyUsage)
	assert.Equal(t, x509.KeyUsageDigitalSignature, cert.KeyUsage)
	assert.False(t, cert.IsCA)
	assert.WithinDuration(t, time.Now().Add(time.Hour), cert.NotAfter, time.Minute)
}

func TestFailedAndForeignRequests(t *testing.T) {
	w := newWorld(t, authority(t, time.Hour*24))
	csr := request(t, subject("zoe"))
	for name, signer := range map[string]string{"bad": "kubernetes.io/kube-apiserver-client", "foreign": "example.com/x"} {
		code, o := w.call("root", "POST", path, body(name, csr, signer, 0, "server auth"))
		require.Equal(t, 201, code, o)
		code, o = w.call("root", "PATCH", path+"/"+name+"/approval", approved())
		require.Equal(t, 200, code, o)
	}
	w.settle()
	_, o := w.call("root", "GET", path+"/bad", nil)
	conditions := o.List("status", "conditions")
	require.Len(t, conditions, 2)
	assert.Equal(t, "Failed", conditions[1].(map[string]any)["type"])
	assert.Equal(t, "SignerValidationFailure", conditions[1].(map[string]any)["reason"])
	_, o = w.call("root", "GET", path+"/foreign", nil)
	assert.Len(t, o.List("status", "conditions"), 1, "requests for other signers are ignored")
}

func TestNodesAreApproved(t *testing.T) {
	w := newWorld(t, authority(t, time.Hour))
	usages := []string{"client auth", "digital signature", "key encipherment"}
	node := request(t, subject("system:node:n1", "system:nodes"))
	signer := "kubernetes.io/kube-apiserver-client-kubelet"
	w.grant("ask", "system:bootstrap:abcdef", map[string]any{"apiGroups": []string{"certificates.k8s.io"}, "resources": []string{"certificatesigningrequests", "certificatesigningrequests/nodeclient"}, "verbs": []string{"create"}})
	w.grant("self", "system:node:n1", map[string]any{"apiGroups": []string{"certificates.k8s.io"}, "resources": []string{"certificatesigningrequests", "certificatesigningrequests/selfnodeclient"}, "verbs": []string{"create"}})
	w.grant("plain", "alice", map[string]any{"apiGroups": []string{"certificates.k8s.io"}, "resources": []string{"certificatesigningrequests"}, "verbs": []string{"create"}})
	other := request(t, subject("system:node:n2", "system:nodes"))
	for _, x := range []struct {
		name, token string
		csr         []byte
		approved    bool
	}{
		{"boot", "boot", node, true}, {"self", "node", node, true}, {"other", "node", other, false}, {"alice", "alice", node, false},
		{"person", "boot", request(t, subject("zoe", "system:nodes")), false},
	} {
		code, o := w.call(x.token, "POST", path, body(x.name, x.csr, signer, 0, usages...))
		require.Equal(t, 201, code, o)
		w.settle()
		_, o = w.call("root", "GET", path+"/"+x.name, nil)
		if x.approved {
			assert.Equal(t, []string{"system:nodes"}, certificate(t, o).Subject.Organization, x.name)
			continue
		}
		assert.Empty(t, o.List("status", "conditions"), x.name)
	}
}

func TestMastersAreRefused(t *testing.T) {
	w := newWorld(t, authority(t, time.Hour))
	csr := request(t, subject("zoe", "devs", "system:masters"))
	code, o := w.call("root", "POST", path, body("m", csr, "kubernetes.io/kube-apiserver-client", 0, "client auth"))
	assert.Equal(t, 403, code)
	assert.Equal(t, "m", o.String("details", "name"))
	code, _ = w.call("root", "POST", path, body("m", csr, "example.com/signer", 0, "client auth"))
	assert.Equal(t, 201, code, "other signers have no such rule")
}

// TestSignerRules checks the subjects, usages and extensions of the built-in signers.
func TestSignerRules(t *testing.T) {
	node := func(change func(*x509.CertificateRequest)) x509.CertificateRequest {
		r := subject("system:node:n1", "system:nodes")
		if change != nil {
			change(&r)
		}
		return r
	}
	dns := func(r *x509.CertificateRequest) { r.DNSNames = []string{"n1"} }
	ip := func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(1, 2, 3, 4)} }
	email := func(r *x509.CertificateRequest) { dns(r); r.EmailAddresses = []string{"a@b.c"} }
	uri := func(r *x509.CertificateRequest) { dns(r); r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }
	client := []string{"client auth", "digital signature", "key encipherment"}
	serving := []string{"key encipherment", "server auth", "digital signature"}
	tests := []struct {
		name, signer string
		req          x509.CertificateRequest
		usages       []string
		ok           bool
	}{
		{"client", wellknown.SignerClient, subject("x"), client, true},
		{"client with names", wellknown.SignerClient, node(email), []string{"client auth"}, true},
		{"client without client auth", wellknown.SignerClient, subject("x"), []string{"digital signature"}, false},
		{"client with server auth only", wellknown.SignerClient, subject("x"), serving, false},
		{"client with server auth, too", wellknown.SignerClient, subject("x"), append([]string{"server auth"}, client...), false},
		{"node", wellknown.SignerClientNode, node(nil), client, true},
		{"node, fewer usages", wellknown.SignerClientNode, node(nil), client[:2], false},
		{"node, more usages", wellknown.SignerClientNode, node(nil), append([]string{"any"}, client...), false},
		{"node, other organization", wellknown.SignerClientNode, subject("system:node:n1", "x"), client, false},
		{"node, two organizations", wellknown.SignerClientNode, subject("system:node:n1", "system:nodes", "x"), client, false},
		{"node, other name", wellknown.SignerClientNode, subject("n1", "system:nodes"), client, false},
		{"node, no name", wellknown.SignerClientNode, subject("system:node:", "system:nodes"), client, false},
		{"node with DNS", wellknown.SignerClientNode, node(dns), client, false},
		{"node with IP", wellknown.SignerClientNode, node(ip), client, false},
		{"serving", wellknown.SignerNodeServing, node(dns), serving, true},
		{"serving by IP", wellknown.SignerNodeServing, node(ip), serving, true},
		{"serving without names", wellknown.SignerNodeServing, node(nil), serving, false},
		{"serving with email", wellknown.SignerNodeServing, node(email), serving, false},
		{"serving with URI", wellknown.SignerNodeServing, node(uri), serving, false},
		{"serving with client usages", wellknown.SignerNodeServing, node(dns), client, false},
		{"serving, other organization", wellknown.SignerNodeServing, subject("system:node:n1"), serving, false},
		{"legacy", wellknown.SignerLegacyUnknown, node(email), []string{"any"}, true},
		{"unknown", "example.com/x", subject("x"), client, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := certificates.Check(tt.signer, &tt.req, tt.usages)
			assert.Equal(t, tt.ok, err == nil, err)
		})
	}
}

// TestSignerSignsApprovedRequestsOnly checks every state of a request.
func TestSignerSignsApprovedRequestsOnly(t *testing.T) {
	signer := certificates.Signer{Authority: authority(t, time.Hour)}.Controller(names.Kubernetes)
	resource := meta.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}
	csr := request(t, subject("zoe"))
	for state, want := range map[string]bool{"": false, "Approved": true, "Denied": false, "Failed": false, "Approved Denied": false, "Approved Failed": false} {
		cl := &testclient.Client{}
		var conditions []any
		for _, kind := range strings.Fields(state) {
			conditions = append(conditions, map[string]any{"type": kind, "status": "True"})
		}
		spec := map[string]any{"request": base64.StdEncoding.EncodeToString(csr), "signerName": "kubernetes.io/kube-apiserver-client", "usages": []any{"client auth"}}
		_, err := cl.Create(t.Context(), resource, meta.NewObject(map[string]any{
			"metadata": map[string]any{"name": "zoe"}, "spec": spec, "status": map[string]any{"conditions": conditions}}))
		require.NoError(t, err)
		_, err = signer.Reconcile(t.Context(), cl, "zoe")
		require.NoError(t, err)
		o, err := cl.Get(t.Context(), resource, meta.Key{Name: "zoe"})
		require.NoError(t, err)
		assert.Equal(t, want, o.String("status", "certificate") != "", state)
	}
}

// TestAuthoritiesMayIssueCertificates checks that a certificate that may not sign others is no authority.
func TestAuthoritiesMayIssueCertificates(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for _, ca := range []bool{true, false} {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: ca, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		require.NoError(t, err)
		_, err = certificates.NewAuthority(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
		assert.Equal(t, ca, err == nil, err)
	}
}

func TestAuthoritySigns(t *testing.T) {
	a, now := authority(t, time.Hour), time.Now()
	r, err := x509.ParseCertificateRequest(decode(request(t, subject("x"))))
	require.NoError(t, err)
	data, err := a.Sign(r, []string{"client auth"}, 24*time.Hour, now)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(decode(data))
	require.NoError(t, err)
	assert.False(t, cert.NotAfter.After(now.Add(time.Hour)), "not longer than the authority")
	assert.WithinDuration(t, now.Add(-5*time.Minute), cert.NotBefore, time.Second)
	_, err = a.Sign(r, []string{"client auth"}, time.Hour, now.Add(2*time.Hour))
	require.Error(t, err, "an authority that has ended")
	_, err = a.Sign(r, []string{"flying"}, time.Hour, now)
	require.Error(t, err)
	r.Signature[10] ^= 1
	_, err = a.Sign(r, []string{"client auth"}, time.Hour, now)
	require.Error(t, err, "not signed by its key")
	_, err = certificates.NewAuthority([]byte("x"), []byte("y"))
	require.Error(t, err)
}

func decode(data []byte) []byte {
	block, _ := pem.Decode(data)
	return block.Bytes
}

// TestCleanerDeletesOldRequests checks that decided requests are deleted after an
// hour and pending requests after 24 hours.
func TestCleanerDeletesOldRequests(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) string { return meta.FormatTime(now.Add(-d)) }
	decided := func(kind string, d time.Duration) []any {
		return []any{map[string]any{"type": kind, "status": "True", "lastUpdateTime": ago(d), "lastTransitionTime": ago(d + time.Hour)}}
	}
	tests := []struct {
		name       string
		age        time.Duration
		conditions []any
		gone       bool
	}{
		{"new", time.Hour, nil, false},
		{"pending", 24*time.Hour - time.Second, nil, false},
		{"pending too long", 24 * time.Hour, nil, true},
		{"approved", 48 * time.Hour, decided("Approved", 59*time.Minute), false},
		{"approved long ago", 2 * time.Hour, decided("Approved", time.Hour), true},
		{"denied long ago", 2 * time.Hour, decided("Denied", time.Hour), true},
		{"failed long ago", 2 * time.Hour, append(decided("Approved", 100*time.Minute), decided("Failed", time.Hour)...), true},
		{"failed now", 2 * time.Hour, append(decided("Approved", 100*time.Minute), decided("Failed", time.Minute)...), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, ctx := &testclient.Client{}, context.Background()
			r := meta.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}
			_, err := c.Create(ctx, r, meta.NewObject(map[string]any{"metadata": map[string]any{"name": "x", "creationTimestamp": ago(tt.age)},
				"status": map[string]any{"conditions": tt.conditions}}))
			require.NoError(t, err)
			loop := certificates.Cleaner(names.Kubernetes, func() time.Time { return now })
			again, err := loop.Reconcile(ctx, c, "x")
			require.NoError(t, err)
			_, err = c.Get(ctx, r, meta.Key{Name: "x"})
			assert.Equal(t, tt.gone, meta.IsNotFound(err))
			assert.Equal(t, !tt.gone, again > 0)
		})
	}
}
