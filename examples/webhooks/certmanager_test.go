package webhooks

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	certmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	certadmission "github.com/cert-manager/cert-manager/pkg/webhook/admission"
	certserver "github.com/cert-manager/cert-manager/pkg/webhook/server"
	certtest "github.com/cert-manager/cert-manager/test/webhook"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

const certManager = "github.com/cert-manager/cert-manager"

// TestCertManager: the webhook server of cert-manager validates its kinds, writes the creator into
// requests, and asks the server who may approve them.
func TestCertManager(t *testing.T) {
	t.Run("in process", func(t *testing.T) {
		s, _, handler := startCertManager(t)
		s.InstallWebhooks(certManagerWebhooks(t, ""), handler)
		useCertManager(t, s)
	})
	t.Run("over TLS", func(t *testing.T) {
		s, remote, _ := startCertManager(t)
		installCertManager(t, s, remote)
		useCertManager(t, s)
	})
}

// startCertManager starts a server with the definitions of cert-manager, and a webhook server that uses
// it. The handler returns the answers of the webhook server.
func startCertManager(t *testing.T) (*servertest.Server, certtest.ServerOptions, http.Handler) {
	t.Helper()
	approvers := auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
		if a.Resource == "signers" && a.User.Name != "approver" {
			return auth.Deny, "", nil
		}
		return auth.Allow, "", nil
	})
	s := servertest.New(t, func(b *server.Builder) {
		b.Authorizer = approvers
		b.Register(review.Access(approvers)...)
	})
	s.InstallCRDs(os.DirFS(filepath.Join(source(t, certManager), "deploy/crds")))
	handler := http.NewServeMux()
	remote, stop := certtest.StartWebhookServer(t, []string{"--api-server-host=" + s.URL()}, func(w *certserver.Server) {
		handler.Handle("/mutate", certadmission.NewCustomMutationWebhook(w.MutationWebhook))
		handler.Handle("/validate", certadmission.NewCustomValidationWebhook(w.ResourceScheme, w.ValidationWebhook))
	})
	t.Cleanup(stop)
	return s, remote, handler
}

// certManagerWebhooks returns the webhook configurations of cert-manager's chart with its values. host
// is the address of a webhook server without a Service, as the chart calls it.
func certManagerWebhooks(t *testing.T, host string) fs.FS {
	t.Helper()
	chart := filepath.Join(source(t, certManager), "deploy/charts/cert-manager")
	data, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	require.NoError(t, err)
	values := map[string]any{}
	require.NoError(t, yaml.Unmarshal(data, &values))
	require.NoError(t, unstructured.SetNestedField(values, host, "webhook", "url", "host"))
	files := fstest.MapFS{}
	for _, name := range []string{"webhook-mutating-webhook.yaml", "webhook-validating-webhook.yaml"} {
		text, err := os.ReadFile(filepath.Join(chart, "templates", name))
		require.NoError(t, err)
		files[name] = &fstest.MapFile{Data: fillIn(t, string(text), map[string]any{
			"Values": values, "Release": map[string]any{"Name": "cert-manager"},
		})}
	}
	return files
}

// fillIn renders a file of a chart as helm does.
func fillIn(t *testing.T, text string, data map[string]any) []byte {
	t.Helper()
	names := map[string]string{
		"webhook.name": "webhook", "webhook.fullname": "cert-manager-webhook",
		"cert-manager.namespace": "cert-manager", "labels": "app.kubernetes.io/managed-by: helm",
	}
	filled := template.New("").Funcs(template.FuncMap{
		"include": func(name string, _ any) string { return names[name] },
		"quote":   strconv.Quote,
		"nindent": func(n int, s string) string {
			return "\n" + strings.ReplaceAll(strings.Repeat(" ", n)+strings.TrimSpace(s), "\n", "\n"+strings.Repeat(" ", n))
		},
		"toYaml": func(v any) (string, error) {
			out, err := yaml.Marshal(v)
			return string(out), err
		},
	})
	for name, value := range names {
		_, err := filled.New(name).Parse(value)
		require.NoError(t, err)
	}
	_, err := filled.Parse(text)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, filled.Execute(&out, data))
	return out.Bytes()
}

// installCertManager creates the configurations for a webhook server at a URL.
func installCertManager(t *testing.T, s *servertest.Server, remote certtest.ServerOptions) {
	t.Helper()
	files := certManagerWebhooks(t, strings.TrimPrefix(remote.URL, "https://"))
	c := connect(t, s, runtime.NewScheme(), "", rest.ImpersonationConfig{}, nil)
	entries, err := fs.ReadDir(files, ".")
	require.NoError(t, err)
	for _, e := range entries {
		data, err := fs.ReadFile(files, e.Name())
		require.NoError(t, err)
		for _, o := range parse(t, data) {
			hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
			require.NoError(t, err)
			for _, hook := range hooks {
				config := hook.(map[string]any)["clientConfig"].(map[string]any)
				require.Contains(t, config, "url")
				config["caBundle"] = base64.StdEncoding.EncodeToString(remote.CAPEM)
			}
			require.NoError(t, unstructured.SetNestedSlice(o.Object, hooks, "webhooks"))
			require.NoError(t, c.Create(t.Context(), o))
		}
	}
}

func useCertManager(t *testing.T, s *servertest.Server) {
	scheme := runtime.NewScheme()
	require.NoError(t, certmanager.AddToScheme(scheme))
	alice := connect(t, s, scheme, "", rest.ImpersonationConfig{
		UserName: "alice", UID: "a-1", Groups: []string{"makers"}, Extra: map[string][]string{"example.com/team": {"red", "blue"}},
	}, nil)
	approver := connect(t, s, scheme, "", rest.ImpersonationConfig{UserName: "approver"}, nil)
	t.Run("issuers", func(t *testing.T) { useIssuers(t, patience(t), alice) })
	t.Run("certificates", func(t *testing.T) { useCertificates(t, patience(t), alice) })
	t.Run("requests", func(t *testing.T) { useRequests(t, patience(t), alice, approver) })
}

const denied = `admission webhook "webhook.cert-manager.io" denied the request: `

func refused(t *testing.T, err error, text string) {
	t.Helper()
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.EqualError(t, err, denied+text)
}

func useIssuers(t *testing.T, ctx context.Context, c client.Client) {
	issuer := &certmanager.Issuer{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "default"}}
	refused(t, c.Create(ctx, issuer), "spec: Required value: at least one issuer must be configured")

	issuer.Spec.SelfSigned = &certmanager.SelfSignedIssuer{}
	require.NoError(t, c.Create(ctx, issuer))

	issuer.Spec.CA = &certmanager.CAIssuer{SecretName: "authority"}
	refused(t, c.Update(ctx, issuer), "spec.selfSigned: Forbidden: may not specify more than one issuer type")
	refused(t, c.Patch(ctx, issuer, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"selfSigned":null}}`))),
		"spec: Required value: at least one issuer must be configured")

	everywhere := &certmanager.ClusterIssuer{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}}
	refused(t, c.Create(ctx, everywhere), "spec: Required value: at least one issuer must be configured")
	everywhere.Spec.SelfSigned = &certmanager.SelfSignedIssuer{}
	require.NoError(t, c.Create(ctx, everywhere))

	require.NoError(t, c.Delete(ctx, issuer))
}

func useCertificates(t *testing.T, ctx context.Context, c client.Client) {
	certificate := &certmanager.Certificate{
		ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default"},
		Spec:       certmanager.CertificateSpec{IssuerRef: certmeta.IssuerReference{Name: "own", Kind: "Someone"}},
	}
	err := c.Create(ctx, certificate)
	require.ErrorContains(t, err, denied+"[")
	for _, text := range []string{
		"spec.secretName: Required value: must be specified",
		`spec.issuerRef.kind: Invalid value: "Someone": must be one of Issuer or ClusterIssuer`,
	} {
		require.ErrorContains(t, err, text)
	}

	certificate.Spec.SecretName, certificate.Spec.DNSNames, certificate.Spec.IssuerRef.Kind = "site", []string{"example.com"}, "Issuer"
	require.NoError(t, c.Create(ctx, certificate, client.DryRunAll))
	require.NoError(t, c.Create(ctx, certificate))
	certificate.Spec.IPAddresses = []string{"here"}
	refused(t, c.Update(ctx, certificate), `spec.ipAddresses[0]: Invalid value: "here": invalid IP address`)

	require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(certificate), certificate))
	certificate.Status.Conditions = []certmanager.CertificateCondition{{Type: "Ready", Status: certmeta.ConditionTrue}}
	require.NoError(t, c.Status().Update(ctx, certificate))
	require.NoError(t, c.DeleteAllOf(ctx, certificate, client.InNamespace("default")))
}

func useRequests(t *testing.T, ctx context.Context, alice, approver client.Client) {
	request := &certmanager.CertificateRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default", Annotations: map[string]string{"cert-manager.io/certificate-name": "site"}},
		Spec: certmanager.CertificateRequestSpec{
			Request: []byte("nothing"), IssuerRef: certmeta.IssuerReference{Name: "own"}, Username: "root", Groups: []string{"system:masters"},
		},
	}
	require.ErrorContains(t, alice.Create(ctx, request), denied+`spec.request: Invalid value: "nothing": `)
	request.Spec.Request = signingRequest(t)
	require.NoError(t, alice.Create(ctx, request))
	require.Equal(t, "alice", request.Spec.Username)
	require.Equal(t, "a-1", request.Spec.UID)
	require.Equal(t, []string{"makers", "system:authenticated"}, request.Spec.Groups)
	require.Equal(t, map[string][]string{"example.com/team": {"red", "blue"}}, request.Spec.Extra)

	made := request.DeepCopy()
	request.Spec.Username = "root"
	err := approver.Update(ctx, request)
	require.ErrorContains(t, err, denied)
	require.ErrorContains(t, err, "spec.username: Forbidden: username identity cannot be changed once set")
	request = made.DeepCopy()
	request.Spec.IsCA = true
	refused(t, alice.Update(ctx, request), "spec: Forbidden: cannot change spec after creation")
	request = made.DeepCopy()
	request.Annotations = map[string]string{"example.com/mine": "yes"}
	refused(t, alice.Update(ctx, request), "metadata.annotations.cert-manager.io/certificate-name: Forbidden: cannot change cert-manager annotation after creation")

	request = made.DeepCopy()
	approve := func(c client.Client, o *certmanager.CertificateRequest) error {
		o.Status.Conditions = append(o.Status.Conditions, certmanager.CertificateRequestCondition{
			Type: certmanager.CertificateRequestConditionApproved, Status: certmeta.ConditionTrue, Reason: "Test", Message: "by hand",
		})
		return c.Status().Update(ctx, o)
	}
	err = approve(alice, request.DeepCopy())
	require.ErrorContains(t, err, denied+`status.conditions: Forbidden: user "alice" does not have permissions to set approved/denied conditions`)
	require.NoError(t, approve(approver, request))
	request.Status.Conditions = nil
	err = approver.Status().Update(ctx, request)
	require.ErrorContains(t, err, "'Approved' condition may not be modified once set")
	require.NoError(t, alice.Delete(ctx, request))
}

// signingRequest returns a certificate request, PEM.
func signingRequest(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "example.com"}}, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}
