package apiserver

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/serving"
)

// TestJoinWithBootstrapToken: a machine that knows only an address and a token gets a node certificate.
// It reads cluster-info from a server that it does not trust yet, verifies it with the token, trusts
// the authority in it, requests a node certificate and connects with that.
func TestJoinWithBootstrapToken(t *testing.T) {
	t.Parallel()
	f := files{t, t.TempDir()}
	ca, err := serving.NewAuthority("ca")
	require.NoError(t, err)
	caKey, err := ca.KeyPEM()
	require.NoError(t, err)
	cert, key, err := ca.Server("127.0.0.1")
	require.NoError(t, err)
	server := startServer(t, "--token-auth-file", f.put("users.csv", "admin-token,admin,1,system:masters\n"),
		"--tls-cert-file", f.put("tls.pem", string(cert)), "--tls-private-key-file", f.put("tls.key", string(key)),
		"--client-ca-file", f.put("ca.pem", string(ca.PEM())), "--root-ca-file", f.put("root.pem", string(ca.PEM())),
		"--cluster-signing-cert-file", f.put("sign.pem", string(ca.PEM())), "--cluster-signing-key-file", f.put("sign.key", string(caKey)),
		"--enable-bootstrap-token-auth")
	const id, secret = "abcdef", "0123456789abcdef"
	prepareJoin(t, server, id, secret)

	trusted := verifiedAuthority(t, server, id, secret)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(trusted))
	node := joining{t, server, pool}
	nodeKey, csr := request(t, pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}})
	requests := "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	body := fmt.Sprintf(`{"metadata":{"name":"n1"},"spec":{"request":%q,"signerName":"kubernetes.io/kube-apiserver-client-kubelet",
		"usages":["key encipherment","digital signature","client auth"]}}`, base64.StdEncoding.EncodeToString(csr))
	code, answer := node.ask(nil, "POST", requests, id+"."+secret, body)
	require.Equal(t, 201, code, answer)
	var issued []byte
	require.Eventually(t, func() bool { // the controllers approve it
		_, answer = node.ask(nil, "GET", requests+"/n1", id+"."+secret, "")
		status, _ := answer["status"].(map[string]any)
		text, _ := status["certificate"].(string)
		issued, err = base64.StdEncoding.DecodeString(text)
		return err == nil && len(issued) > 0
	}, time.Minute, 20*time.Millisecond, "%v", answer)
	pair, err := tls.X509KeyPair(issued, nodeKey)
	require.NoError(t, err)
	code, answer = node.ask(&pair, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "", "{}")
	require.Equal(t, 201, code, answer)
	assert.Equal(t, "system:node:n1", answer["status"].(map[string]any)["userInfo"].(map[string]any)["username"])
	code, _ = node.ask(&pair, "GET", "/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id, "", "")
	assert.Equal(t, 403, code, "a node may only read secrets of its pods")
	code, _ = node.ask(&pair, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "", "")
	assert.Equal(t, 200, code)

	// An expired token is rejected and removed.
	code, answer = ask(t, nil, "PATCH", server+"/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id, "admin-token",
		`{"stringData":{"expiration":"2001-01-01T00:00:00Z"}}`, "Content-Type", "application/merge-patch+json")
	require.Equal(t, 200, code, answer)
	code, _ = node.ask(nil, "GET", requests+"/n1", id+"."+secret, "")
	assert.Equal(t, 401, code)
	require.Eventually(t, func() bool {
		code, _ := ask(t, nil, "GET", server+"/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id, "admin-token", "")
		_, info := ask(t, nil, "GET", server+"/api/v1/namespaces/kube-public/configmaps/cluster-info", "", "")
		data, _ := info["data"].(map[string]any)
		return code == 404 && data["kubeconfig"] != nil && data["jws-kubeconfig-"+id] == nil
	}, time.Minute, 20*time.Millisecond)
}

// prepareJoin does what an administrator does once: it creates the token, cluster-info and the roles.
func prepareJoin(t *testing.T, server, id, secret string) {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	for _, step := range [][2]string{
		{"/api/v1/namespaces/kube-system/secrets", `{"type":"bootstrap.kubernetes.io/token","metadata":{"name":"bootstrap-token-` + id + `"},"stringData":{
			"token-id":"` + id + `","token-secret":"` + secret + `","usage-bootstrap-authentication":"true","usage-bootstrap-signing":"true",
			"auth-extra-groups":"system:bootstrappers:joining"}}`},
		{rbac + "clusterrolebindings", `{"metadata":{"name":"ask"},"roleRef":{"kind":"ClusterRole","name":"system:node-bootstrapper","apiGroup":"rbac.authorization.k8s.io"},
			"subjects":[{"kind":"Group","name":"system:bootstrappers:joining","apiGroup":"rbac.authorization.k8s.io"}]}`},
		{rbac + "clusterrolebindings", `{"metadata":{"name":"approve"},"roleRef":{"kind":"ClusterRole","name":"system:certificates.k8s.io:certificatesigningrequests:nodeclient","apiGroup":"rbac.authorization.k8s.io"},
			"subjects":[{"kind":"Group","name":"system:bootstrappers:joining","apiGroup":"rbac.authorization.k8s.io"}]}`},
	} {
		code, answer := ask(t, nil, "POST", server+step[0], "admin-token", step[1])
		require.Equal(t, 201, code, answer)
	}
}

// verifiedAuthority reads cluster-info without credentials and returns the authority in it after
// verifying its signature.
func verifiedAuthority(t *testing.T, server, id, secret string) []byte {
	var document, signature string
	require.Eventually(t, func() bool {
		code, answer := ask(t, nil, "GET", server+"/api/v1/namespaces/kube-public/configmaps/cluster-info", "", "")
		data, _ := answer["data"].(map[string]any)
		document, _ = data["kubeconfig"].(string)
		signature, _ = data["jws-kubeconfig-"+id].(string)
		return code == 200 && signature != ""
	}, time.Minute, 20*time.Millisecond)
	parts := strings.Split(signature, ".")
	require.Len(t, parts, 3)
	require.Empty(t, parts[1], "the JWS is detached: it has no payload")
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"alg":"HS256","kid":"`+id+`"}`, string(header))
	sum := hmac.New(sha256.New, []byte(id+"."+secret))
	io.WriteString(sum, parts[0]+"."+base64.RawURLEncoding.EncodeToString([]byte(document)))
	require.Equal(t, base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), parts[2])
	_, rest, found := strings.Cut(document, "certificate-authority-data: ")
	require.True(t, found)
	ca, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
	require.NoError(t, err)
	return ca
}

// joining is a machine that trusts the authority that it has verified.
type joining struct {
	*testing.T
	server string
	trusts *x509.CertPool
}

func (j joining) ask(cert *tls.Certificate, method, path, token, body string) (int, map[string]any) {
	config := &tls.Config{RootCAs: j.trusts}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequest(method, j.server+path, bytes.NewReader([]byte(body)))
	require.NoError(j, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(r)
	require.NoError(j, err)
	defer resp.Body.Close()
	answer := map[string]any{}
	require.NoError(j, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer
}
