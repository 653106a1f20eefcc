package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// inRelease makes a server of a release, with reviews and the policies of pods.
func inRelease(t testing.TB, release string) *api {
	return inProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Release = release
		b.Register(review.Access(auth.AllowAll)...)
		b.Register(review.Identity(nobody{}, nil)...)
	}))
}

// removed is a row of the table of what releases removed: a resource in a version, the
// release that does not serve it any more, and the last one that did.
type removed struct {
	in, last, version, resource, body string
}

const (
	podTemplate = `{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	anyReview   = `"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}`
)

func removedVersions(t testing.TB) []removed {
	scaler := `"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"a"},"maxReplicas":3`
	webhooks := `"webhooks":[{"name":"a.example.com","clientConfig":{"url":"https://example.com/"},"rules":[{"operations":["CREATE"],"apiGroups":["example.com"],"apiVersions":["v1"],"resources":["gadgets"]}]}]`
	workload := `"spec":{"template":` + podTemplate
	chosen := `"spec":{"selector":{"matchLabels":{"app":"a"}},"template":` + podTemplate
	role := `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`
	binding := `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"%s","name":"a"},"subjects":[{"kind":"User","name":"u","apiGroup":"rbac.authorization.k8s.io"}]`
	policy := `"spec":{"seLinux":{"rule":"RunAsAny"},"runAsUser":{"rule":"RunAsAny"},"supplementalGroups":{"rule":"RunAsAny"},"fsGroup":{"rule":"RunAsAny"}}`
	ingress := `"spec":{"backend":{"serviceName":"s","servicePort":80}}`
	return []removed{
		{"1.27", "1.26", "storage.k8s.io/v1beta1", "csistoragecapacities", `"storageClassName":"a"`},
		{"1.26", "1.25", "flowcontrol.apiserver.k8s.io/v1beta1", "~flowschemas", `"spec":{"priorityLevelConfiguration":{"name":"exempt"}}`},
		{"1.26", "1.25", "flowcontrol.apiserver.k8s.io/v1beta1", "~prioritylevelconfigurations", `"spec":{"type":"Limited","limited":{"assuredConcurrencyShares":7,"limitResponse":{"type":"Reject"}}}`},
		{"1.29", "1.28", "flowcontrol.apiserver.k8s.io/v1beta2", "~prioritylevelconfigurations", `"spec":{"type":"Limited","limited":{"assuredConcurrencyShares":7,"limitResponse":{"type":"Reject"}}}`},
		{"1.32", "1.31", "flowcontrol.apiserver.k8s.io/v1beta3", "~prioritylevelconfigurations", `"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":7,"limitResponse":{"type":"Reject"}}}`},
		{"1.32", "1.31", "flowcontrol.apiserver.k8s.io/v1beta3", "~flowschemas", `"spec":{"priorityLevelConfiguration":{"name":"exempt"}}`},
		{"1.26", "1.25", "autoscaling/v2beta2", "horizontalpodautoscalers", scaler + `}`},
		{"1.25", "1.24", "batch/v1beta1", "cronjobs", `"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}`},
		{"1.25", "1.24", "discovery.k8s.io/v1beta1", "endpointslices", `"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],"topology":{"kubernetes.io/hostname":"n"}}]`},
		{"1.25", "1.24", "events.k8s.io/v1beta1", "events", `"regarding":{"kind":"Pod","name":"a","namespace":"default"},"note":"n","eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"example.com/c","reportingInstance":"i","action":"A","reason":"R","type":"Odd"`},
		{"1.25", "1.24", "autoscaling/v2beta1", "horizontalpodautoscalers", scaler + `,"metrics":[{"type":"Resource","resource":{"name":"cpu","targetAverageUtilization":50}}]}`},
		{"1.25", "1.24", "policy/v1beta1", "poddisruptionbudgets", `"spec":{"minAvailable":1,"selector":{}}`},
		{"1.25", "1.24", "policy/v1beta1", "~podsecuritypolicies", policy},
		{"1.25", "1.24", "node.k8s.io/v1beta1", "~runtimeclasses", `"handler":"runc"`},
		{"1.22", "1.21", "admissionregistration.k8s.io/v1beta1", "~mutatingwebhookconfigurations", webhooks},
		{"1.22", "1.21", "admissionregistration.k8s.io/v1beta1", "~validatingwebhookconfigurations", webhooks},
		{"1.22", "1.21", "apiextensions.k8s.io/v1beta1", "~customresourcedefinitions", `"spec":{"group":"example.com","version":"v1","scope":"Namespaced","names":{"plural":"as","kind":"A"}}`},
		{"1.22", "1.21", "apiregistration.k8s.io/v1beta1", "~apiservices", `"spec":{"group":"example.com","version":"v7","groupPriorityMinimum":100,"versionPriority":10,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"s"}}`},
		{"1.22", "1.21", "authentication.k8s.io/v1beta1", "+~tokenreviews", `"spec":{"token":"t"}`},
		{"1.22", "1.21", "authorization.k8s.io/v1beta1", "+~subjectaccessreviews", anyReview + `,"user":"u","group":["g"]}`},
		{"1.22", "1.21", "authorization.k8s.io/v1beta1", "+~selfsubjectaccessreviews", anyReview + `}`},
		{"1.22", "1.21", "authorization.k8s.io/v1beta1", "+~selfsubjectrulesreviews", `"spec":{"namespace":"default"}`},
		{"1.22", "1.21", "authorization.k8s.io/v1beta1", "+localsubjectaccessreviews", `"spec":{"resourceAttributes":{"verb":"get","resource":"pods","namespace":"default"},"user":"u"}`},
		{"1.22", "1.21", "certificates.k8s.io/v1beta1", "~certificatesigningrequests", `"spec":{"request":"` + signingRequest(t) + `"}`},
		{"1.22", "1.21", "coordination.k8s.io/v1beta1", "leases", `"spec":{"holderIdentity":"h"}`},
		{"1.22", "1.21", "extensions/v1beta1", "ingresses", ingress},
		{"1.22", "1.21", "networking.k8s.io/v1beta1", "ingresses", ingress},
		{"1.22", "1.21", "networking.k8s.io/v1beta1", "~ingressclasses", `"spec":{"controller":"example.com/c"}`},
		{"1.22", "1.21", "rbac.authorization.k8s.io/v1beta1", "roles", role},
		{"1.22", "1.21", "rbac.authorization.k8s.io/v1beta1", "~clusterroles", role},
		{"1.22", "1.21", "rbac.authorization.k8s.io/v1beta1", "rolebindings", fmt.Sprintf(binding, "Role")},
		{"1.22", "1.21", "rbac.authorization.k8s.io/v1beta1", "~clusterrolebindings", fmt.Sprintf(binding, "ClusterRole")},
		{"1.22", "1.21", "scheduling.k8s.io/v1beta1", "~priorityclasses", `"value":5`},
		{"1.22", "1.21", "storage.k8s.io/v1beta1", "~csidrivers", `"spec":{}`},
		{"1.22", "1.21", "storage.k8s.io/v1beta1", "~csinodes", `"spec":{"drivers":[]}`},
		{"1.22", "1.21", "storage.k8s.io/v1beta1", "~storageclasses", `"provisioner":"example.com/p"`},
		{"1.22", "1.21", "storage.k8s.io/v1beta1", "~volumeattachments", `"spec":{"attacher":"example.com","nodeName":"n","source":{"persistentVolumeName":"v"}}`},
		{"1.16", "1.15", "extensions/v1beta1", "networkpolicies", `"spec":{"podSelector":{}}`},
		{"1.16", "1.15", "extensions/v1beta1", "daemonsets", workload + `}`},
		{"1.16", "1.15", "apps/v1beta2", "daemonsets", chosen + `}`},
		{"1.16", "1.15", "extensions/v1beta1", "deployments", workload + `}`},
		{"1.16", "1.15", "apps/v1beta1", "deployments", workload + `}`},
		{"1.16", "1.15", "apps/v1beta2", "deployments", chosen + `}`},
		{"1.16", "1.15", "apps/v1beta1", "statefulsets", workload + `,"serviceName":"s"}`},
		{"1.16", "1.15", "apps/v1beta2", "statefulsets", chosen + `,"serviceName":"s"}`},
		{"1.16", "1.15", "extensions/v1beta1", "replicasets", workload + `}`},
		{"1.16", "1.15", "apps/v1beta2", "replicasets", chosen + `}`},
		{"1.16", "1.15", "apps/v1beta1", "controllerrevisions", `"revision":1,"data":{"a":"b"}`},
		{"1.16", "1.15", "apps/v1beta2", "controllerrevisions", `"revision":1,"data":{"a":"b"}`},
		{"1.16", "1.15", "extensions/v1beta1", "~podsecuritypolicies", policy},
	}
}

// path returns where the resource is; "~" marks one of cluster scope, "+" one that is only
// created.
func (r *removed) path() string {
	plural := strings.TrimLeft(r.resource, "+~")
	if strings.Contains(r.resource, "~") {
		return "/apis/" + r.version + "/" + plural
	}
	return "/apis/" + r.version + "/namespaces/default/" + plural
}

// name of the object, which is unique unless the kind says what it is.
func (r *removed) name() string {
	switch strings.TrimLeft(r.resource, "+~") {
	case "customresourcedefinitions":
		return "as.example.com"
	case "apiservices":
		return "v7.example.com"
	}
	return "a-" + strings.NewReplacer("/", "-", ".", "-").Replace(r.version)
}

// TestRemovedVersions is the table of what releases removed: each version works under the
// last release that has it, and the release after it does not know it, nor the newest.
func TestRemovedVersions(t *testing.T) {
	servers := map[string]*api{}
	of := func(release string) *api {
		if servers[release] == nil {
			servers[release] = inRelease(t, release)
		}
		return servers[release]
	}
	for _, r := range removedVersions(t) {
		t.Run(r.version+" "+r.resource, func(t *testing.T) {
			a := &api{t, of(r.last).base, of(r.last).client}
			r.works(a)
			for _, release := range []string{r.in, ""} {
				assert.Equal(t, 404, of(release).do("GET", r.path(), nil).code, release)
			}
		})
	}
}

// works creates, reads, changes and watches an object, each with a warning.
func (r *removed) works(a *api) {
	gv, _, _ := strings.Cut(r.version, "/")
	body := fmt.Sprintf(`{"metadata":{"name":%q},%s}`, r.name(), r.body)
	if strings.HasPrefix(r.resource, "+") {
		body = "{" + r.body + "}"
	}
	made := a.must(201, "POST", r.path(), body)
	assert.Equal(a.t, r.version, made.body["apiVersion"])
	warning := strings.Join(made.header.Values("Warning"), "\n")
	assert.Contains(a.t, warning, fmt.Sprintf("%s %s is deprecated in v", r.version, made.body["kind"]))
	assert.Contains(a.t, warning, "+, unavailable in v"+r.in+"+")
	plural, sub := strings.TrimLeft(r.resource, "+~"), ""
	assert.Contains(a.t, string(a.must(200, "GET", "/metrics", nil).raw), fmt.Sprintf(
		"apiserver_requested_deprecated_apis{group=%q,removed_release=%q,resource=%q,subresource=%q,version=%q} 1", gv, r.in, plural, sub, r.version[len(gv)+1:]))
	if strings.HasPrefix(r.resource, "+") {
		assert.NotNil(a.t, made.body["status"])
		return
	}
	item := r.path() + "/" + r.name()
	w := a.watch(r.path() + "?watch=1&resourceVersion=" + made.version())
	got := a.must(200, "GET", item, nil)
	assert.Equal(a.t, r.version, got.body["apiVersion"])
	a.must(200, "PUT", item, got.raw)
	a.must(200, "PATCH", item, `{"metadata":{"labels":{"patched":"yes"}}}`)
	e := w.next()
	for text(e.Object, "metadata", "labels", "patched") == "" { // a controller wrote the status
		e = w.next()
	}
	assert.Equal(a.t, "MODIFIED", e.Type)
	assert.Equal(a.t, r.version, e.Object["apiVersion"])
	assert.Equal(a.t, "yes", text(e.Object, "metadata", "labels", "patched"))
	w.close()
	list := a.must(200, "GET", r.path(), nil)
	assert.Equal(a.t, r.version, list.body["apiVersion"])
	assert.Contains(a.t, list.names(), r.name())
}

// signingRequest returns a request for a certificate as JSON has it.
func signingRequest(t testing.TB) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "alice"}}, key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// nobody knows no token.
type nobody struct{}

func (nobody) AuthenticateToken(context.Context, string, []string) (*auth.User, []string, error) {
	return nil, nil, nil
}
