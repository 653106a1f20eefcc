package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kubectl runs the real kubectl against the program.
type kubectl struct {
	files
	address, kubeconfig string
}

// newKubectl starts the program with its default access control. alice is a user with the token
// alice-token in the group devs.
func newKubectl(t *testing.T, args ...string) kubectl {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("there is no kubectl on this machine")
	}
	t.Parallel()
	f := files{t, t.TempDir()}
	address, config := startServerWithConfig(t, append(args, "--token-auth-file", f.put("users.csv", "alice-token,alice,2,devs\nroot-token,root,3,system:masters\n"))...)
	return kubectl{f, address, config}
}

// try runs a command line of words separated by spaces. "@name" is replaced by the path of a file
// written with put.
func (k kubectl) try(line string) (string, bool) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), time.Minute)
	defer cancel()
	var words []string
	for _, w := range strings.Fields(line) {
		if name, ok := strings.CutPrefix(w, "@"); ok {
			w = filepath.Join(k.dir, name)
		}
		words = append(words, w)
	}
	cmd := exec.CommandContext(ctx, "kubectl", words...)
	cmd.Env = []string{"HOME=" + k.dir, "KUBECONFIG=" + k.kubeconfig, "PATH=" + os.Getenv("PATH")}
	if strings.Contains(line, "--token") { // as another user than that of the configuration
		cmd.Env[1] = "KUBECONFIG=" + filepath.Join(k.dir, "none")
		cmd.Args = append(cmd.Args, "--server="+k.address, "--insecure-skip-tls-verify")
	}
	out, err := cmd.CombinedOutput()
	require.NoError(k, ctx.Err(), line)
	return string(out), err == nil
}

// ok runs a command that must succeed and print all of want.
func (k kubectl) ok(line string, want ...string) string {
	k.Helper()
	out, ok := k.try(line)
	require.True(k, ok, "kubectl %s: %s", line, out)
	for _, w := range want {
		assert.Contains(k, out, w, "kubectl %s", line)
	}
	return strings.TrimSpace(out)
}

// fails runs a command that must fail and print all of want.
func (k kubectl) fails(line string, want ...string) {
	k.Helper()
	out, ok := k.try(line)
	require.False(k, ok, "kubectl %s: %s", line, out)
	for _, w := range want {
		assert.Contains(k, out, w, "kubectl %s", line)
	}
}

func TestKubectlRoles(t *testing.T) {
	k := newKubectl(t)
	k.ok("create namespace team", "namespace/team created")
	k.ok("create role reader -n team --verb=get,list --resource=pods,configmaps,deployments.apps", "role.rbac.authorization.k8s.io/reader created")
	k.ok("create rolebinding alice-reads -n team --role=reader --user=alice", "created")
	k.ok("create clusterrole spaces --verb=get,list --resource=namespaces", "created")
	k.ok("create clusterrolebinding devs-spaces --clusterrole=spaces --group=devs", "created")
	k.ok("create serviceaccount robot -n team", "serviceaccount/robot created")
	k.ok("create rolebinding robot-edits -n team --clusterrole=edit --serviceaccount=team:robot", "created")

	k.ok("auth can-i * *", "yes")
	k.ok("auth can-i get pods -n team --as alice", "yes")
	k.ok("auth can-i list deployments.apps -n team --as alice", "yes")
	k.fails("auth can-i delete pods -n team --as alice", "no")
	k.fails("auth can-i get pods -n default --as alice", "no")
	k.ok("auth can-i list namespaces --as bob --as-group devs", "yes")
	k.fails("auth can-i list namespaces --as bob", "no")
	k.ok("auth can-i create secrets -n team --as system:serviceaccount:team:robot", "yes")
	k.ok("auth can-i get /version --as alice --as-group system:authenticated", "yes")
	k.fails("auth can-i get /metrics --as alice --as-group system:authenticated", "no")
	list := k.ok("auth can-i --list -n team --as alice --as-group devs --as-group system:authenticated", "selfsubjectaccessreviews.authorization.k8s.io", "[/healthz]")
	for _, line := range []string{"configmaps [] [] [get list]", "deployments.apps [] [] [get list]", "namespaces [] [] [get list]", "pods [] [] [get list]"} {
		assert.Contains(t, strings.Join(strings.Fields(list), " "), line)
	}
	k.ok("auth can-i --list", "*.*", "[*]")

	k.ok("auth can-i list configmaps -n team --token alice-token", "yes")
	k.ok("get configmaps -n team --token alice-token")
	k.fails("get secrets -n team --token alice-token", `Error from server (Forbidden): secrets is forbidden: User "alice" cannot list resource "secrets" in API group "" in the namespace "team"`)
	k.fails("get configmaps -n team --token alice-token --as bob", `users "bob" is forbidden: User "alice" cannot impersonate resource "users"`)
	k.fails("get configmaps -n team --token nobodys", "Unauthorized")
	k.ok("auth whoami --token alice-token", "alice", "[devs system:authenticated]")
	k.ok("auth whoami", "admin", "[system:masters system:authenticated]")
	k.ok("auth whoami --as zoe --as-uid 7 --as-group g -o json", `"username": "zoe"`, `"uid": "7"`, `"g"`)
	k.ok("delete rolebinding alice-reads -n team", "deleted")
	k.fails("get configmaps -n team --token alice-token", "Forbidden")
}

const reconciled = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: default}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}
`

func TestKubectlReconcile(t *testing.T) {
	k := newKubectl(t)
	k.put("one.yaml", reconciled)
	k.ok("auth reconcile -f @one.yaml", "role.rbac.authorization.k8s.io/r reconciled", "rolebinding.rbac.authorization.k8s.io/b reconciled")
	k.ok("auth can-i list pods --as alice", "yes")
	uid := k.ok("get rolebinding b -o jsonpath={.metadata.uid}")

	k.put("more.yaml", strings.NewReplacer("[pods]", "[secrets]", "name: alice", "name: bob").Replace(reconciled))
	k.ok("auth reconcile -f @more.yaml", "reconciled")
	k.ok("auth can-i list pods --as alice", "yes")
	k.ok("auth can-i list secrets --as bob", "yes")
	k.ok("auth reconcile -f @more.yaml --remove-extra-permissions --remove-extra-subjects", "reconciled")
	k.fails("auth can-i list pods --as bob", "no")
	k.fails("auth can-i list secrets --as alice", "no")
	k.ok("auth can-i list secrets --as bob", "yes")
	assert.Equal(t, uid, k.ok("get rolebinding b -o jsonpath={.metadata.uid}"))

	k.put("other.yaml", strings.NewReplacer("kind: Role, name: r}", "kind: ClusterRole, name: view}").Replace(reconciled))
	k.fails("apply -f @other.yaml", "cannot change roleRef")
	k.ok("auth reconcile -f @other.yaml", "reconciled")
	assert.NotEqual(t, uid, k.ok("get rolebinding b -o jsonpath={.metadata.uid}"), "a different roleRef replaces the binding")
	k.ok("auth can-i list configmaps --as alice", "yes")
	role, _, _ := strings.Cut(reconciled, "---") // some releases of kubectl panic if a binding is refused
	k.put("role.yaml", role)
	k.fails("auth reconcile -f @role.yaml --token alice-token", "Forbidden")
}

// request creates a key and a certificate request.
func request(t *testing.T, subject pkix.Name) (keyPEM, requestPEM []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return keyPEM, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestKubectlCertificate(t *testing.T) {
	k := newKubectl(t, "--cluster-signing-duration", "2h")
	key, csr := request(t, pkix.Name{CommonName: "dora", Organization: []string{"devs"}})
	doc := fmt.Sprintf("apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: dora}\nspec: "+
		"{request: %s, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth], expirationSeconds: 86400}\n", base64.StdEncoding.EncodeToString(csr))
	k.put("dora.yaml", doc)
	k.put("eve.yaml", strings.Replace(doc, "name: dora", "name: eve", 1))
	k.fails("create -f @dora.yaml --token alice-token", "Forbidden")
	k.ok("create -f @dora.yaml", "certificatesigningrequest.certificates.k8s.io/dora created")
	k.ok("create -f @eve.yaml")
	k.ok("get csr", "Pending", "kubernetes.io/kube-apiserver-client")
	k.ok("create clusterrole approver --verb=get,list,watch,update --resource=certificatesigningrequests,certificatesigningrequests/approval")
	k.ok("create clusterrolebinding approver --clusterrole=approver --user=alice")
	k.fails("certificate approve dora --token alice-token", "Forbidden")
	k.put("signer.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: signer}\nrules:\n"+
		"- {apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [kubernetes.io/kube-apiserver-client], verbs: [approve]}\n")
	k.ok("create -f @signer.yaml")
	k.ok("create clusterrolebinding signer --clusterrole=signer --user=alice")
	k.ok("certificate approve dora --token alice-token", "certificatesigningrequest.certificates.k8s.io/dora approved")
	k.ok("certificate deny eve", "denied")
	k.fails("certificate approve eve", "is already Denied")
	k.ok("wait --for=jsonpath={.status.certificate} csr/dora --timeout=20s", "condition met")
	k.ok("get csr", "Approved,Issued", "Denied")
	assert.Empty(t, k.ok("get csr eve -o jsonpath={.status.certificate}"))

	issued, err := base64.StdEncoding.DecodeString(k.ok("get csr dora -o jsonpath={.status.certificate}"))
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(issued, key)
	require.NoError(t, err)
	assert.Less(t, time.Until(pair.Leaf.NotAfter), 2*time.Hour+time.Minute, "the server limits the requested validity")
	code, answer := ask(t, &pair, "POST", k.address+"/apis/authentication.k8s.io/v1/selfsubjectreviews", "", "{}")
	require.Equal(t, 201, code, answer)
	who := answer["status"].(map[string]any)["userInfo"].(map[string]any)
	assert.Equal(t, "dora", who["username"])
	assert.Equal(t, []any{"devs", "system:authenticated"}, who["groups"])
	k.put("dora.crt", string(issued))
	k.put("dora.key", string(key))
	k.ok(fmt.Sprintf("config set-credentials dora --client-certificate=%s/dora.crt --client-key=%s/dora.key", k.dir, k.dir))
	k.ok("auth whoami --user dora", "dora", "[devs system:authenticated]")
	k.fails("get secrets --user dora", "Forbidden")
}

func TestKubectlTokens(t *testing.T) {
	k := newKubectl(t)
	k.ok("create serviceaccount robot")
	k.ok("create rolebinding robot --clusterrole=view --serviceaccount=default:robot")
	token := k.ok("create token robot --duration=10m")
	k.ok("get configmaps --token " + token)
	k.fails("get secrets --token "+token, `User "system:serviceaccount:default:robot" cannot list resource "secrets"`)
	k.ok("auth whoami --token "+token, "system:serviceaccount:default:robot", "system:serviceaccounts:default")
	other := k.ok("create token robot --audience=elsewhere")
	k.fails("get configmaps --token "+other, "Unauthorized")
	k.fails("create token robot --duration=1m", "may not specify a duration less than 10 minutes")
	k.fails("create token missing", "not found")
	k.fails("create token robot --token alice-token", `cannot create resource "serviceaccounts/token"`)

	k.ok("create secret generic s --from-literal=a=b")
	bound := k.ok("create token robot --bound-object-kind Secret --bound-object-name s")
	k.ok("get configmaps --token " + bound)
	k.ok("delete secret s")
	k.fails("get configmaps --token "+bound, "Unauthorized")
	k.put("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {serviceAccountName: robot, containers: [{name: c, image: i}]}\n")
	k.ok("apply -f @pod.yaml")
	bound = k.ok("create token robot --bound-object-kind Pod --bound-object-name p")
	k.ok("auth whoami --token "+bound, "authentication.kubernetes.io/pod-name", "[p]")
	k.ok("delete pod p --now")
	k.fails("get configmaps --token "+bound, "Unauthorized")

	k.put("secret.yaml", "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {name: long, annotations: {kubernetes.io/service-account.name: robot}}\n")
	k.ok("apply -f @secret.yaml")
	k.ok("wait --for=jsonpath={.data.token} secret/long --timeout=20s")
	long, err := base64.StdEncoding.DecodeString(k.ok("get secret long -o jsonpath={.data.token}"))
	require.NoError(t, err)
	k.ok("get configmaps --token " + string(long))
	k.ok("delete serviceaccount robot")
	k.fails("get configmaps --token "+token, "Unauthorized")
	k.fails("get configmaps --token "+string(long), "Unauthorized")
	k.ok("wait --for=delete secret/long --timeout=20s")
	k.ok("get serviceaccount default")
}

func TestKubectlOutsideUsers(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("there is no kubectl on this machine")
	}
	issuer, sign := testIssuer(t)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"hank","groups":["hooked"]}}}`)
	}))
	t.Cleanup(hook.Close)
	f := files{t, t.TempDir()}
	cert := func(s *httptest.Server) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	}
	k := newKubectl(t,
		"--oidc-issuer-url", issuer.URL, "--oidc-client-id", "app", "--oidc-groups-claim", "groups", "--oidc-username-prefix", "oidc:",
		"--oidc-groups-prefix", "oidc:", "--oidc-ca-file", f.put("issuer.pem", string(cert(issuer))),
		"--authentication-token-webhook-config-file", f.put("hook.yaml", fmt.Sprintf(
			"clusters: [{name: c, cluster: {server: '%s', certificate-authority-data: %s}}]", hook.URL, base64.StdEncoding.EncodeToString(cert(hook)))))
	claims := map[string]any{"iss": issuer.URL, "aud": "app", "sub": "zoe", "groups": []string{"devs"}, "exp": time.Now().Add(time.Hour).Unix()}
	token := sign(claims)
	k.ok("create clusterrolebinding devs --clusterrole=view --group=oidc:devs")
	k.ok("create clusterrolebinding hooked --clusterrole=view --group=hooked")
	k.ok("auth whoami --token "+token, "oidc:zoe", "[oidc:devs system:authenticated]")
	k.ok("get configmaps --token " + token)
	k.fails("get secrets --token "+token, "Forbidden")
	k.ok("get configmaps --token from-the-hook")
	k.ok("auth whoami --token from-the-hook", "hank", "[hooked system:authenticated]")
}
