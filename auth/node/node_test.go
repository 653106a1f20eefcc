package node_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/node"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
)

type m = map[string]any

func put(t *testing.T, c *testclient.Client, group, resource string, tree m) {
	_, err := c.Create(context.Background(), meta.GroupResource{Group: group, Resource: resource}, meta.NewObject(tree))
	require.NoError(t, err)
}

func pod(name, node string, spec m) m {
	spec["nodeName"] = node
	return m{"metadata": m{"name": name, "namespace": "ns"}, "spec": spec}
}

func TestNodeAccessesObjectsOfItsPods(t *testing.T) {
	c := &testclient.Client{}
	put(t, c, "", "pods", pod("p", "n1", m{
		"serviceAccountName": "robot",
		"imagePullSecrets":   []any{m{"name": "pull"}},
		"containers": []any{m{"env": []any{m{"valueFrom": m{"secretKeyRef": m{"name": "env"}}}, m{"valueFrom": m{"configMapKeyRef": m{"name": "cmenv"}}}},
			"envFrom": []any{m{"secretRef": m{"name": "from"}}}}},
		"initContainers": []any{m{"envFrom": []any{m{"configMapRef": m{"name": "init"}}}}},
		"volumes": []any{m{"name": "a", "secret": m{"secretName": "vol"}}, m{"name": "b", "configMap": m{"name": "cmvol"}},
			m{"name": "c", "projected": m{"sources": []any{m{"secret": m{"name": "proj"}}, "x", m{"configMap": m{"name": "cmproj"}}}}},
			m{"name": "d", "persistentVolumeClaim": m{"claimName": "claim"}}, m{"name": "e", "ephemeral": m{}},
			m{"name": "f", "csi": m{"nodePublishSecretRef": m{"name": "csi"}}}},
	}))
	put(t, c, "", "pods", pod("other", "n2", m{"volumes": []any{m{"secret": m{"secretName": "theirs"}}}}))
	mirror := pod("mirror", "n1", m{"volumes": []any{m{"secret": m{"secretName": "mirrored"}}}})
	mirror["metadata"].(m)["annotations"] = m{"kubernetes.io/config.mirror": "x"}
	put(t, c, "", "pods", mirror)
	marked := pod("marked", "n1", m{"volumes": []any{m{"secret": m{"secretName": "mirrored"}}}})
	marked["metadata"].(m)["annotations"] = m{"kubernetes.io/config.mirror": ""} // the annotation counts, not its value
	put(t, c, "", "pods", marked)
	put(t, c, "", "pods", pod("unbound", "", m{"volumes": []any{m{"secret": m{"secretName": "unbound"}}}}))
	put(t, c, "", "persistentvolumes", m{"metadata": m{"name": "pv"}, "spec": m{"claimRef": m{"namespace": "ns", "name": "claim"},
		"csi": m{"nodeStageSecretRef": m{"name": "stage", "namespace": "sys"}, "controllerPublishSecretRef": m{"name": "ctrl", "namespace": "sys"}}}})
	put(t, c, "", "persistentvolumes", m{"metadata": m{"name": "free"}, "spec": m{"csi": m{"nodeStageSecretRef": m{"name": "free", "namespace": "sys"}}}})
	put(t, c, "storage.k8s.io", "volumeattachments", m{"metadata": m{"name": "va"}, "spec": m{"nodeName": "n1"}})
	for name, spec := range map[string]m{"mine": {"nodeName": "n1"}, "theirs": {"nodeName": "n2"}, "shared": {"allNodes": true}} {
		put(t, c, "resource.k8s.io", "resourceslices", m{"metadata": m{"name": name}, "spec": spec})
	}
	claimant := pod("claimant", "n1", m{"resourceClaims": []any{m{"name": "a", "resourceClaimName": "direct"}, m{"name": "b", "resourceClaimTemplateName": "t"}}})
	claimant["status"] = m{"resourceClaimStatuses": []any{m{"name": "b", "resourceClaimName": "made"}, m{"name": "c"}}, "extendedResourceClaimStatus": m{"resourceClaimName": "extended"}}
	put(t, c, "", "pods", claimant)
	n1 := &auth.User{Name: "system:node:n1", Groups: []string{"system:nodes"}}
	a := node.New(c, names.Kubernetes)
	ask := func(u *auth.User, verb, group, resource, sub, ns, name string) bool {
		d, _, err := a.Authorize(context.Background(), auth.Attributes{User: u, Verb: verb, Group: group, Resource: resource, Subresource: sub, Namespace: ns, Name: name})
		require.NoError(t, err)
		require.NotEqual(t, auth.Deny, d)
		return d == auth.Allow
	}
	leases, devices := "coordination.k8s.io", "resource.k8s.io"
	tests := []struct {
		verb, group, resource, sub, ns, name string
		want                                 bool
	}{
		{"get", "", "secrets", "", "ns", "vol", true},
		{"list", "", "secrets", "", "ns", "vol", true},
		{"get", "", "secrets", "", "ns", "env", true},
		{"get", "", "secrets", "", "ns", "from", true},
		{"get", "", "secrets", "", "ns", "pull", true},
		{"get", "", "secrets", "", "ns", "proj", true},
		{"get", "", "secrets", "", "ns", "csi", true},
		{"get", "", "secrets", "", "sys", "stage", true},
		{"get", "", "secrets", "", "sys", "ctrl", false},
		{"get", "", "secrets", "", "sys", "free", false},
		{"get", "", "secrets", "", "other", "vol", false},
		{"get", "", "secrets", "", "ns", "theirs", false},
		{"get", "", "secrets", "", "ns", "mirrored", false},
		{"get", "", "secrets", "", "ns", "unbound", false},
		{"get", "", "secrets", "", "ns", "other", false},
		{"list", "", "secrets", "", "ns", "", false},
		{"update", "", "secrets", "", "ns", "vol", false},
		{"delete", "", "secrets", "", "ns", "vol", false},
		{"get", "", "configmaps", "", "ns", "cmenv", true},
		{"get", "", "configmaps", "", "ns", "cmvol", true},
		{"watch", "", "configmaps", "", "ns", "cmproj", true},
		{"get", "", "configmaps", "", "ns", "init", true},
		{"get", "", "configmaps", "", "ns", "vol", false},
		{"get", "", "persistentvolumeclaims", "", "ns", "claim", true},
		{"get", "", "persistentvolumeclaims", "", "ns", "p-e", true},
		{"patch", "", "persistentvolumeclaims", "status", "ns", "claim", true},
		{"patch", "", "persistentvolumeclaims", "", "ns", "claim", false},
		{"get", "", "persistentvolumes", "", "", "pv", true},
		{"get", "", "persistentvolumes", "", "", "free", false},
		{"get", "storage.k8s.io", "volumeattachments", "", "", "va", true},
		{"create", "", "serviceaccounts", "token", "ns", "robot", true},
		{"create", "", "serviceaccounts", "token", "ns", "default", false},
		{"get", "", "serviceaccounts", "", "ns", "robot", true},
		{"get", "", "serviceaccounts", "", "ns", "default", false},
		{"list", "", "serviceaccounts", "", "ns", "robot", false},
		{"get", "", "serviceaccounts", "token", "ns", "robot", false},
		{"update", "", "serviceaccounts", "", "ns", "robot", false},
		{"update", "", "persistentvolumeclaims", "status", "ns", "claim", true},
		{"get", "", "persistentvolumeclaims", "status", "ns", "claim", false},
		{"get", devices, "resourceclaims", "", "ns", "direct", true},
		{"get", devices, "resourceclaims", "", "ns", "made", true},
		{"get", devices, "resourceclaims", "", "ns", "extended", true},
		{"get", devices, "resourceclaims", "", "ns", "other", false},
		{"update", devices, "resourceclaims", "status", "ns", "direct", false},
		{"create", devices, "resourceslices", "", "", "", true},
		{"get", devices, "resourceslices", "", "", "mine", true},
		{"update", devices, "resourceslices", "", "", "mine", true},
		{"patch", devices, "resourceslices", "", "", "mine", true},
		{"delete", devices, "resourceslices", "", "", "mine", true},
		{"get", devices, "resourceslices", "", "", "theirs", false},
		{"delete", devices, "resourceslices", "", "", "theirs", false},
		{"get", devices, "resourceslices", "", "", "shared", false},
		{"get", devices, "resourceslices", "status", "", "mine", false},
		{"create", devices, "resourceslices", "x", "", "mine", false},
		{"list", devices, "resourceslices", "", "", "", false},
		{"list", devices, "resourceslices", "", "", "mine", false},
		{"deletecollection", devices, "resourceslices", "", "", "", false},
		{"get", "", "endpoints", "", "ns", "e", true},
		{"list", "", "endpoints", "", "ns", "", false},
		{"get", "certificates.k8s.io", "clustertrustbundles", "", "", "b", true},
		{"watch", "certificates.k8s.io", "clustertrustbundles", "", "", "", true},
		{"create", "certificates.k8s.io", "clustertrustbundles", "", "", "", false},
		{"create", leases, "leases", "", "kube-node-lease", "", true},
		{"get", leases, "leases", "", "kube-node-lease", "n1", true},
		{"patch", leases, "leases", "", "kube-node-lease", "n2", false},
		{"create", leases, "leases", "", "ns", "", false},
		{"list", leases, "leases", "", "kube-node-lease", "", false},
		{"get", "", "nodes", "", "", "n1", true},
		{"get", "", "nodes", "", "", "n2", false},
		{"list", "", "nodes", "", "", "", false},
		{"delete", "", "nodes", "", "", "n1", false},
		{"patch", "", "nodes", "status", "", "n1", true},
		{"get", "", "pods", "", "ns", "p", true},
		{"get", "", "pods", "", "ns", "other", false},
		{"list", "", "pods", "", "", "", false},
		{"patch", "", "pods", "status", "ns", "p", true},
		{"create", "", "pods", "eviction", "ns", "p", true},
		{"get", "", "pods", "log", "ns", "p", false},
		{"create", "certificates.k8s.io", "certificatesigningrequests", "", "", "", true},
		{"update", "certificates.k8s.io", "certificatesigningrequests", "approval", "", "x", false},
		{"create", "authorization.k8s.io", "subjectaccessreviews", "", "", "", true},
		{"get", "", "services", "", "ns", "x", true},
		{"get", "rbac.authorization.k8s.io", "clusterroles", "", "", "x", false},
		{"create", "", "events", "", "ns", "", true},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, ask(n1, tt.verb, tt.group, tt.resource, tt.sub, tt.ns, tt.name), "%+v", tt)
		assert.False(t, ask(&auth.User{Name: "system:node:n1"}, tt.verb, tt.group, tt.resource, tt.sub, tt.ns, tt.name), "the user is not in the group")
		assert.False(t, ask(&auth.User{Name: "system:node:", Groups: []string{node.Group}}, tt.verb, tt.group, tt.resource, tt.sub, tt.ns, tt.name), "the user has no node name")
		assert.False(t, ask(nil, tt.verb, tt.group, tt.resource, tt.sub, tt.ns, tt.name), "no user")
	}
	_, why, _ := a.Authorize(context.Background(), auth.Attributes{User: n1, Verb: "get", Resource: "pods", Subresource: "log", Namespace: "ns", Name: "p"})
	assert.Empty(t, why, "requests that nodes never have the right to have no reason")
	_, why, _ = a.Authorize(context.Background(), auth.Attributes{User: n1, Verb: "get", Resource: "secrets", Namespace: "ns", Name: "none"})
	assert.NotEmpty(t, why)
	assert.True(t, a.RulesFor(context.Background(), n1, "ns").Incomplete)
	assert.Equal(t, auth.Rules{}, a.RulesFor(context.Background(), &auth.User{Name: "zoe"}, "ns"), "other users have no rules here")
	d, _, _ := a.Authorize(context.Background(), auth.Attributes{User: n1, Verb: "list", Resource: "pods", Fields: "spec.nodeName=n1"})
	assert.Equal(t, auth.Allow, d)
	d, _, _ = a.Authorize(context.Background(), auth.Attributes{User: n1, Verb: "list", Resource: "pods", Fields: "spec.nodeName!=n1,metadata.name=spec.nodeName=n1"})
	assert.Equal(t, auth.NoOpinion, d)

	for _, c := range []struct {
		verb, resource, name, fields string
		want                         auth.Decision
	}{
		{"list", "pods", "p", "metadata.name=p,spec.nodeName=n1", auth.Allow},
		{"list", "pods", "other", "metadata.name=other", auth.NoOpinion},
		{"watch", "pods", "p", "metadata.name=p", auth.Allow},
		{"deletecollection", "pods", "", "spec.nodeName=n1", auth.NoOpinion},
		{"list", "resourceslices", "", "spec.nodeName=n1", auth.Allow},
		{"watch", "resourceslices", "", "spec.driver=d,spec.nodeName=n1", auth.Allow},
		{"deletecollection", "resourceslices", "", "spec.nodeName==n1", auth.Allow},
		{"list", "resourceslices", "", "spec.nodeName=n2", auth.NoOpinion},
		{"list", "resourceslices", "", "spec.nodeName!=n1", auth.NoOpinion},
		{"deletecollection", "resourceslices", "", "spec.driver=d", auth.NoOpinion},
	} {
		group := map[string]string{"resourceslices": devices}[c.resource]
		d, _, _ := a.Authorize(context.Background(), auth.Attributes{User: n1, Verb: c.verb, Group: group, Resource: c.resource, Namespace: "ns", Name: c.name, Fields: c.fields})
		assert.Equal(t, c.want, d, "%+v", c)
	}

	require.NoError(t, c.Delete(context.Background(), meta.GroupResource{Resource: "pods"}, meta.Key{Namespace: "ns", Name: "p"}, registry.DeleteOptions{}))
	assert.False(t, ask(n1, "get", "", "secrets", "", "ns", "vol"), "the pod was deleted")
	assert.False(t, ask(n1, "get", "", "secrets", "", "sys", "stage"), "the pod was deleted")
}
