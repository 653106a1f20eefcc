package plugins_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	kinds "orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

const agent = "system:node:n1,system:nodes"

var restricted = admission.Options{Enable: []string{"NodeRestriction"}}

// uidOf returns the UID of a cluster-scoped object, or of an object in the namespace default.
func uidOf(t *testing.T, s *servertest.Server, plural string, key meta.Key) string {
	t.Helper()
	obj, err := s.Objects().Get(t.Context(), meta.GroupResource{Resource: plural}, key)
	require.NoError(t, err)
	return obj.UID()
}

// TestNodeRestrictionNodes checks that an agent can write its own Node, but neither taints nor reserved
// labels.
func TestNodeRestrictionNodes(t *testing.T) {
	const nodes, own = "/api/v1/nodes", "/api/v1/nodes/n1"
	runSteps(t, newServer(t, restricted),
		step{as: agent, do: "POST " + nodes, body: `{metadata: {name: n2}}`, want: `403 node "n1" is not allowed to modify node "n2"`},
		step{as: "system:node:,system:nodes", do: "POST " + nodes, body: `{metadata: {name: n2}}`, want: `403 could not determine node from user "system:node:"`},
		step{as: "someone,system:nodes", do: "POST " + nodes, body: `{metadata: {name: other}}`, want: `201`},
		step{as: "system:node:n1", do: "POST " + nodes, body: `{metadata: {name: n3}}`, want: `201`},
		step{as: agent, do: "POST " + nodes, body: `{metadata: {name: n1, labels: {node-restriction.kubernetes.io/a: b, x.kubernetes.io/b: c, free: d}}}`,
			want: `403 node "n1" is not allowed to set the following labels: node-restriction.kubernetes.io/a, x.kubernetes.io/b`},
		step{as: agent, do: "POST " + nodes, body: `{metadata: {name: n1, labels: {a.node-restriction.kubernetes.io/a: b}}}`, want: `403 node "n1" is not allowed to set the following labels: a.node-restriction.kubernetes.io/a`},
		step{as: agent, do: "POST " + nodes, body: `{metadata: {name: n1, labels: {kubelet.kubernetes.io/a: b, a.node.kubernetes.io/a: b, beta.kubernetes.io/os: x,
			topology.kubernetes.io/zone: z, kubernetes.io/hostname: h, example.com/a: b, a: b}}, spec: {taints: [{key: a, effect: NoSchedule}]}}`, want: `201`},
		step{as: agent, do: "PATCH " + own, body: `{metadata: {labels: {node-restriction.kubernetes.io/a: b}}}`,
			want: `403 is not allowed to modify labels: node-restriction.kubernetes.io/a`},
		step{do: "PATCH " + own, body: `{metadata: {labels: {node-restriction.kubernetes.io/a: b}}}`, want: `200`},
		step{as: agent, do: "PATCH " + own, body: `{metadata: {labels: {node-restriction.kubernetes.io/a: null}}}`,
			want: `403 is not allowed to modify labels: node-restriction.kubernetes.io/a`},
		step{as: agent, do: "PATCH " + own + "/status", body: `{metadata: {labels: {node-restriction.kubernetes.io/a: c}}}`,
			want: `403 is not allowed to modify labels: node-restriction.kubernetes.io/a`},
		step{as: agent, do: "PATCH " + own, body: `{metadata: {labels: {node.kubernetes.io/instance-type: big, a: null}}, spec: {unschedulable: true}}`, want: `200`},
		step{as: agent, do: "PATCH " + own, body: `{spec: {taints: []}}`, want: `403 node "n1" is not allowed to modify taints`},
		step{as: agent, do: "PATCH " + own, body: `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: b}]}}`,
			want: `403 node "n1" is not allowed to modify ownerReferences`},
		step{as: agent, do: "PATCH " + own + "/status", body: `{status: {capacity: {cpu: 2}}}`, want: `200 {status: {capacity: {cpu: "2"}}}`},
		step{as: agent, do: "PATCH /api/v1/nodes/other/status", body: `{status: {capacity: {cpu: 2}}}`, want: `403 node "n1" is not allowed to modify node "other"`},
		step{as: agent, do: "PATCH " + own, body: `{spec: {configSource: {configMap: {name: a, namespace: b, kubeletConfigKey: c}}}}`, want: `403 node "n1" is not allowed to set a configSource`},
		step{as: agent, do: "PATCH " + own, body: `{spec: {configSource: null}}`, want: `200`},
		step{as: agent, do: "POST " + nodes, body: `{metadata: {name: n1}, spec: {configSource: {}}}`, want: `403 node "n1" is not allowed to set a configSource`},
		step{do: "PATCH " + own, body: `{spec: {configSource: {configMap: {name: a, namespace: b, kubeletConfigKey: c}}}}`, want: `200`},
		step{as: agent, do: "DELETE /api/v1/nodes/other", want: `403 node "n1" is not allowed to modify node "other"`},
		step{do: "PATCH " + own, body: `{spec: {taints: []}}`, want: `200`},
		step{do: "DELETE " + own, want: `200`},
	)
}

// TestNodeRestrictionPods checks that an agent can create mirror pods, and update the status of, evict and
// delete the pods bound to its node.
func TestNodeRestrictionPods(t *testing.T) {
	pod := func(name, node string) string {
		return `{metadata: {name: ` + name + `}, spec: {nodeName: "` + node + `", containers: [{name: c, image: i}]}}`
	}
	s := newServer(t, admission.Options{Enable: []string{"NodeRestriction"}, Disable: []string{"ServiceAccount"}}) // ServiceAccount would refuse some of the pods first
	runSteps(t, s,
		step{do: "POST /api/v1/nodes", body: `{metadata: {name: n1}}`, want: `201`},
		step{do: "POST pods", body: pod("mine", "n1"), want: `201`},
		step{do: "POST pods", body: pod("foreign", "n2"), want: `201`},
		step{do: "POST pods", body: pod("free", ""), want: `201`},
		step{as: agent, do: "POST pods", body: pod("new", "n1"), want: `403 pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods`},
		step{as: agent, do: "PATCH pods/mine", body: `{metadata: {labels: {a: b}}}`, want: `403 node "n1" may not update pods`},
		step{as: agent, do: "PATCH pods/mine/resize", body: `{spec: {containers: [{name: c}]}}`, want: `403 node "n1" may not update pods/resize`},
		step{as: agent, do: "POST pods/free/binding", body: `{metadata: {name: free}, target: {name: n1}}`, want: `403 node "n1" may not create pods/binding`},
		step{as: agent, do: "PATCH pods/mine/status", body: `{status: {phase: Running}}`, want: `200`},
		step{as: agent, do: "PATCH pods/foreign/status", body: `{status: {phase: Running}}`, want: `403 node "n1" can only update pod status for pods with spec.nodeName set to itself`},
		step{as: agent, do: "PATCH pods/free/status", body: `{status: {phase: Running}}`, want: `403 node "n1" can only update pod status for pods with spec.nodeName set to itself`},
		step{as: agent, do: "PATCH pods/mine/status", body: `{metadata: {labels: {a: b}}}`, want: `403 node "n1" cannot update labels through pod status`},
		step{as: agent, do: "PATCH pods/mine/status", body: `{status: {resourceClaimStatuses: [{name: a, resourceClaimName: b}]}}`, want: `403 node "n1" cannot update resource claim statuses`},
		step{as: agent, do: "POST pods/foreign/eviction", body: `{metadata: {name: foreign}}`, want: `403 node n1 can only evict pods with spec.nodeName set to itself`},
		step{as: agent, do: "POST pods/none/eviction", body: `{metadata: {name: none}}`, want: `404 pods "none" not found`},
		step{as: agent, do: "POST pods/mine/eviction?dryRun=All", body: `{metadata: {name: mine}}`, want: `201`},
		step{as: agent, do: "DELETE pods/foreign?gracePeriodSeconds=0", want: `403 node "n1" can only delete pods with spec.nodeName set to itself`},
		step{as: agent, do: "DELETE pods", want: `403 node "n1" can only delete pods with spec.nodeName set to itself`},
		step{as: agent, do: "DELETE pods/mine?gracePeriodSeconds=0", want: `200`},
	)

	mirror := func(owner, spec string) string {
		return `{metadata: {name: m, annotations: {kubernetes.io/config.mirror: x}, ownerReferences: [` + owner + `]}, spec: {nodeName: n1, ` + spec + `}}`
	}
	const plain = `containers: [{name: c, image: i}]`
	owner := `{apiVersion: v1, kind: Node, name: n1, controller: true, uid: ` + uidOf(t, s, "nodes", meta.Key{Name: "n1"})
	refused := func(body, why string) step {
		return step{as: agent, do: "POST pods", body: body, want: `403 node "n1" ` + why}
	}
	runSteps(t, s,
		refused(`{metadata: {name: m, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n2, `+plain+`}}`, `can only create pods with spec.nodeName set to itself`),
		refused(mirror(``, plain), `can only create pods with an owner reference set to itself`),
		refused(mirror(`{apiVersion: v1, kind: Node, name: n1, controller: true, uid: x}, {apiVersion: v1, kind: ConfigMap, name: n1, uid: u}`, plain), `can only create pods with a single owner reference set to itself`),
		refused(mirror(`{apiVersion: v1, kind: Node, name: n2, uid: x, controller: true}`, plain), `can only create pods with an owner reference set to itself`),
		refused(mirror(`{apiVersion: v1, kind: Node, name: n1, uid: x}`, plain), `can only create pods with a controller owner reference set to itself`),
		refused(mirror(owner+`, blockOwnerDeletion: true}`, plain), `must not set blockOwnerDeletion on an owner reference`),
		refused(mirror(owner+`}`, plain+`, serviceAccountName: a`), `can not create pods that reference serviceaccounts`),
		refused(mirror(owner+`}`, `containers: [{name: c, image: i, envFrom: [{configMapRef: {name: a}}]}]`), `can not create pods that reference configmaps`),
		refused(mirror(owner+`}`, plain+`, volumes: [{name: v, secret: {secretName: a}}]`), `can not create pods that reference secrets`),
		refused(mirror(owner+`}`, plain+`, imagePullSecrets: [{name: a}]`), `can not create pods that reference secrets`),
		refused(mirror(owner+`}`, plain+`, volumes: [{name: v, persistentVolumeClaim: {claimName: a}}]`), `can not create pods that reference persistentvolumeclaims`),
		refused(mirror(owner+`}`, plain+`, resourceClaims: [{name: a, resourceClaimTemplateName: b}]`), `can not create pods that reference resourceclaims`),
		refused(mirror(owner+`}`, plain+`, volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: a, path: b}}]}}]`), `can not create pods that reference clustertrustbundles (via projected volumes)`),
		refused(mirror(owner+`}`, plain+`, volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: p}}]}}]`), `can not create pods that reference serviceaccounts (via projected volumes)`),
		refused(mirror(owner+`}`, plain+`, volumes: [{name: v, csi: {driver: d.io}}]`), `can not create pods that reference csidrivers (via CSI volumes)`),
		step{as: agent, do: "POST pods", body: mirror(owner+`}`, plain), want: `201`},
		step{as: agent, do: "DELETE pods/m?gracePeriodSeconds=0", want: `200`},
		step{do: "DELETE /api/v1/nodes/n1", want: `200`},
		step{as: agent, do: "POST pods", body: mirror(owner+`}`, plain), want: `404 nodes "n1" not found`},
	)
}

// TestNodeRestrictionTokens checks that an agent gets tokens only for pods on its node and for audiences that
// they use.
func TestNodeRestrictionTokens(t *testing.T) {
	s := newServer(t, restricted, func(b *server.Builder) {
		kind := b.Kind("", "ServiceAccount")
		kind.Subresources = append(kind.Subresources, kinds.TokenRequest(func(_ context.Context, c *registry.Call) (*meta.Object, error) { return c.Object, nil }))
	})
	pod := func(name, node string) string {
		return `{metadata: {name: ` + name + `}, spec: {nodeName: ` + node + `, containers: [{name: c, image: i}], volumes: [
			{name: a, projected: {sources: [{serviceAccountToken: {path: a, audience: vault}}]}}, {name: b, csi: {driver: d.io}}, {name: c, persistentVolumeClaim: {claimName: c}}]}}`
	}
	runSteps(t, s,
		step{do: "POST serviceaccounts", body: `{metadata: {name: a}}`, want: `201`},
		step{do: "POST /apis/storage.k8s.io/v1/csidrivers", body: `{metadata: {name: d.io}, spec: {tokenRequests: [{audience: disk}]}}`, want: `201`},
		step{do: "POST /apis/storage.k8s.io/v1/csidrivers", body: `{metadata: {name: e.io}, spec: {tokenRequests: [{audience: tape}]}}`, want: `201`},
		step{do: "POST /api/v1/persistentvolumes", body: `{metadata: {name: v}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: e.io, volumeHandle: h}}}`, want: `201`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: c}, spec: {volumeName: v, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, want: `201`},
		step{do: "POST pods", body: pod("mine", "n1"), want: `201`},
		step{do: "POST pods", body: pod("foreign", "n2"), want: `201`},
	)
	mine := uidOf(t, s, "pods", meta.Key{Namespace: "default", Name: "mine"})
	foreign := uidOf(t, s, "pods", meta.Key{Namespace: "default", Name: "foreign"})
	token := func(as, to, audiences, want string) step {
		return step{as: as, do: "POST serviceaccounts/a/token", want: want,
			body: `{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {audiences: [` + audiences + `], boundObjectRef: {` + to + `}}}`}
	}
	const blind = agent + ",without request-serviceaccounts-token-audience moon"
	bound := func(name, uid string) string {
		return `apiVersion: v1, kind: Pod, name: ` + name + `, uid: "` + uid + `"`
	}
	runSteps(t, s,
		token(agent, `apiVersion: v1, kind: Secret, name: x, uid: u`, ``, `403 node requested token not bound to a pod`),
		token(agent, bound("mine", ""), ``, `403 node requested token with a pod binding without a uid`),
		token(agent, bound("none", mine), ``, `404 pods "none" not found`),
		token(agent, bound("mine", foreign), ``, `403 The object might have been deleted and then recreated`),
		token(agent, bound("foreign", foreign), `vault`, `403 node requested token bound to a pod scheduled on a different node`),
		token(agent, bound("mine", mine), `vault, disk`, `403 node may only request 0 or 1 audiences`),
		token(agent, bound("mine", mine), ``, `403 audience "" not found in pod spec volume`),
		token(blind, bound("mine", mine), `moon`, `403 audience "moon" not found in pod spec volume`),
		token(agent, bound("mine", mine), `moon`, `201`),
		token(blind, bound("mine", mine), `vault`, `201`),
		token(agent+",without request-serviceaccounts-token-audience disk", bound("mine", mine), `disk`, `201`),
		token(agent+",without request-serviceaccounts-token-audience tape", bound("mine", mine), `tape`, `201`),
		token("", bound("foreign", foreign), `a, b`, `201`),
	)
}

// TestNodeRestrictionOtherResources checks that an agent can write only its own Lease, CSINode and
// ResourceSlices, and only the resize status of claims.
func TestNodeRestrictionOtherResources(t *testing.T) {
	const (
		leases   = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
		csinodes = "/apis/storage.k8s.io/v1/csinodes"
		slices   = "/apis/resource.k8s.io/v1/resourceslices"
		claims   = "persistentvolumeclaims"
	)
	slice := func(name, node string) string {
		return `{metadata: {name: ` + name + `}, spec: {nodeName: ` + node + `, driver: d.io, pool: {name: p, generation: 1, resourceSliceCount: 1}}}`
	}
	runSteps(t, newServer(t, restricted),
		step{as: agent, do: "POST " + leases, body: `{metadata: {name: n2}}`, want: `403 can only access node lease with the same name as the requesting node`},
		step{as: agent, do: "POST /apis/coordination.k8s.io/v1/namespaces/default/leases", body: `{metadata: {name: n1}}`, want: `403 can only access leases in the "kube-node-lease" system namespace`},
		step{as: agent, do: "POST " + leases, body: `{metadata: {name: n1}}`, want: `201`},
		step{do: "POST " + leases, body: `{metadata: {name: n2}}`, want: `201`},
		step{as: agent, do: "PATCH " + leases + "/n1", body: `{spec: {renewTime: "2020-01-01T00:00:00.000000Z"}}`, want: `200`},
		step{as: agent, do: "DELETE " + leases + "/n2", want: `403 can only access node lease with the same name as the requesting node`},
		step{as: agent, do: "DELETE " + leases + "/n1", want: `200`},

		step{as: agent, do: "POST " + csinodes, body: `{metadata: {name: n2}, spec: {drivers: []}}`, want: `403 can only access CSINode with the same name as the requesting node`},
		step{as: agent, do: "POST " + csinodes, body: `{metadata: {name: n1}, spec: {drivers: []}}`, want: `201`},

		step{as: agent, do: "POST " + slices, body: slice("a", "n2"), want: `403 can only create ResourceSlice with the same NodeName as the requesting node`},
		step{as: agent, do: "POST " + slices, body: slice("a", "n1"), want: `201`},
		step{do: "POST " + slices, body: slice("b", "n2"), want: `201`},
		step{as: agent, do: "DELETE " + slices + "/b", want: `403 can only delete ResourceSlice with the same NodeName as the requesting node`},
		step{as: agent, do: "DELETE " + slices + "/a", want: `200`},

		step{do: "POST " + claims, body: `{metadata: {name: c}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, want: `201`},
		step{as: agent, do: "PATCH " + claims + "/c", body: `{metadata: {labels: {a: b}}}`, want: `403 node "n1" may not update persistentvolumeclaims`},
		step{as: agent, do: "PATCH " + claims + "/c/status", body: `{status: {phase: Bound}}`, want: `403 node "n1" is not allowed to update fields other than status.quantity and status.conditions`},
		step{as: agent, do: "PATCH " + claims + "/c/status", body: `{metadata: {labels: {a: b}}}`, want: `403 node "n1" is not allowed to update fields other than status.quantity and status.conditions`},
		step{as: agent, do: "PATCH " + claims + "/c/status", body: `{status: {currentVolumeAttributesClassName: x}}`, want: `403 node "n1" is not allowed to update fields other than status.quantity and status.conditions`},
		step{as: agent, do: "PATCH " + claims + "/c/status", body: `{status: {capacity: {storage: 1Gi}}}`, want: `200`},
	)
}

// TestNodeRestrictionCertificates checks that an agent gets certificates of the signers for agents only for
// its own name.
func TestNodeRestrictionCertificates(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	request := func(name, common, signer string) string {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: common, Organization: []string{"system:nodes"}}}, key)
		require.NoError(t, err)
		text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
		return `{metadata: {name: ` + name + `}, spec: {request: ` + text + `, signerName: ` + signer + `, usages: [client auth, digital signature]}}`
	}
	const path, signer = "/apis/certificates.k8s.io/v1/certificatesigningrequests", "kubernetes.io/kube-apiserver-client-kubelet"
	runSteps(t, newServer(t, restricted),
		step{as: agent, do: "POST " + path, body: request("a", "system:node:n2", signer), want: `403 can only create a node CSR with CN=system:node:n1`},
		step{as: agent, do: "POST " + path, body: request("a", "system:node:n1", signer), want: `201`},
		step{as: agent, do: "POST " + path, body: request("b", "x", "example.com/s"), want: `201`},
		step{do: "POST " + path, body: request("c", "system:node:n2", signer), want: `201`},
	)
}
