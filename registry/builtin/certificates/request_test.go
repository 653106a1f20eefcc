package certificates_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/certificates"
	"orch.io/controlplane/registry/internal/kindtest"
)

func csr(t *testing.T) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "alice"}}, key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func TestRequests(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, certificates.Kinds(), "CertificateSigningRequest")
	request := csr(t)
	body := func(rest string) string { return `{"spec":{"request":"` + request + `",` + rest + `}}` }
	const usages = `"usages":["digital signature","client auth"]`
	const signer = `"signerName":"example.com/signer"`
	for text, want := range map[string][]string{
		body(signer + `,` + usages):                                     {},
		`{"spec":{"request":"aGVsbG8=",` + signer + `,` + usages + `}}`: {"Invalid:spec.request"},
		`{"spec":{` + signer + `,` + usages + `}}`:                      {"Invalid:spec.request"},
		body(usages): {"Required:spec.signerName"},
		body(`"signerName":"nodomain",` + usages):                                 {"Invalid:spec.signerName"},
		body(`"signerName":"kubernetes.io/legacy-unknown",` + usages):             {"Invalid:spec.signerName"},
		body(`"signerName":"/x",` + usages):                                       {"Invalid:spec.signerName", "Invalid:spec.signerName"},
		body(`"signerName":"A.B/c",` + usages):                                    {"Invalid:spec.signerName", "Invalid:spec.signerName"},
		body(`"signerName":"a.com/b/c",` + usages):                                {"Invalid:spec.signerName"},
		body(`"signerName":"a.com/B.c_d",` + usages):                              {"Invalid:spec.signerName", "Invalid:spec.signerName"},
		body(`"signerName":"` + strings.Repeat("a.", 127) + `com/b",` + usages):   {"TooLong:spec.signerName"},
		body(`"signerName":"a.com/` + strings.Repeat("b.", 300) + `c",` + usages): {"TooLong:spec.signerName"},
		body(signer):                         {"Required:spec.usages"},
		body(signer + `,"usages":["x","x"]`): {"NotSupported:spec.usages[0]", "NotSupported:spec.usages[1]", "Duplicate:spec.usages[1]"},
		body(signer + `,"usages":["client auth","client auth"]`): {"Duplicate:spec.usages[1]"},
		body(signer + `,"usages":["flying"]`):                    {"NotSupported:spec.usages[0]"},
		body(signer + `,` + usages + `,"expirationSeconds":599`): {"Invalid:spec.expirationSeconds"},
		body(signer + `,` + usages + `,"expirationSeconds":600`): {},
	} {
		_, got := k.Create(t, text)
		require.Equal(t, want, got, text)
	}
}

func TestRequesterIsRecordedAndSpecIsImmutable(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, certificates.Kinds(), "CertificateSigningRequest")
	obj := k.Object(t, `{"spec":{"request":"`+csr(t)+`","signerName":"example.com/s","usages":["any"],"username":"root","groups":["system:masters"]}}`)
	ctx := meta.WithUser(t.Context(), &meta.User{Name: "alice", UID: "2", Groups: []string{"devs"}, Extra: map[string][]string{"k": {"v"}}})
	require.NoError(t, k.PrepareForWrite(k.NewChange(ctx, obj, nil, "")))
	require.Equal(t, "alice", obj.String("spec", "username"))
	require.Equal(t, []string{"devs"}, obj.Strings("spec", "groups"))
	require.Equal(t, []string{"v"}, obj.Strings("spec", "extra", "k"))
	later, faults := k.Update(t, obj, `{"metadata":{"labels":{"a":"b"}},"spec":{"signerName":"other.com/s"},"status":{"conditions":[{"type":"Approved","status":"True"}]}}`, "")
	require.Empty(t, faults)
	require.Equal(t, "example.com/s", later.String("spec", "signerName"))
	require.Empty(t, later.List("status", "conditions"))
}

func TestApprovalAndStatusTransitions(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, certificates.Kinds(), "CertificateSigningRequest")
	obj, _ := k.Create(t, `{"spec":{"request":"`+csr(t)+`","signerName":"example.com/s","usages":["any"]}}`)
	condition := func(types ...string) string {
		out := ""
		for i, c := range types {
			if i > 0 {
				out += ","
			}
			out += `{"type":"` + c + `","status":"True","reason":"R"}`
		}
		return `{"status":{"conditions":[` + out + `]}}`
	}
	_, got := k.Update(t, obj, condition("Approved"), "status")
	require.Equal(t, []string{"Forbidden:status.conditions"}, got)
	_, got = k.Update(t, obj, `{"status":{"conditions":[{"type":"Approved","status":"False"}]}}`, "approval")
	require.Equal(t, []string{"NotSupported:status.conditions[0].status"}, got)
	_, got = k.Update(t, obj, condition("Approved", "Denied"), "approval")
	require.Equal(t, []string{"Invalid:status.conditions"}, got)
	yes, got := k.Update(t, obj, `{"status":{"certificate":"AAAA","conditions":[{"type":"Approved","status":"True"}]}}`, "approval")
	require.Empty(t, got)
	require.Empty(t, yes.String("status", "certificate"), "approval does not write the certificate")
	first := yes.List("status", "conditions")[0].(map[string]any)
	require.NotEmpty(t, first["lastUpdateTime"])
	require.NotEmpty(t, first["lastTransitionTime"])
	for patch, want := range map[string][]string{
		condition("Approved", "Denied"): {"Invalid:status.conditions"},
		condition("Denied"):             {"Forbidden:status.conditions"},
		`{"status":{"conditions":[]}}`:  {"Forbidden:status.conditions"},
		condition("Approved"):           {},
	} {
		_, got := k.Update(t, yes, patch, "approval")
		require.Equal(t, want, got, patch)
	}
	_, got = k.Update(t, yes, `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Other"}]}}`, "status")
	require.Equal(t, []string{"Forbidden:status.conditions"}, got, "status does not change the decision")
	_, got = k.Update(t, yes, `{"status":{"certificate":"bm9uZQ=="}}`, "status")
	require.Equal(t, []string{"Invalid:status.certificate"}, got)
}
