package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/quirks"
	"orch.io/controlplane/server/servertest"
)

// endpoint is a sub-resource that writes an item, and what of the metadata that
// callers set goes through it.
type endpoint struct {
	sub   string
	takes string // first letters of labels, annotations, finalizers, ownerReferences
}

// boatDefinition is one of a kind with both usual sub-resources.
func boatDefinition(plural, kind string) map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".sea.example.com"},
		"spec": map[string]any{
			"group": "sea.example.com", "scope": "Cluster", "names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				"subresources": map[string]any{"status": map[string]any{}, "scale": map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
			}},
		},
	}
}

// certificateRequest is one that asks for little.
func certificateRequest() string {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, _ := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, key)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// podsOf is an object of a kind that makes pods.
func podsOf() map[string]any {
	return map[string]any{"spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "x"}},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}},
	}}
}

// endingTemplate has pods that come to an end.
var endingTemplate = map[string]any{"template": map[string]any{"spec": map[string]any{
	"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "i"}},
}}}

// endpoints of every kind that has some, as the field's servers have them.
var endpoints = map[string]struct {
	path, name string
	body       map[string]any
	list       []endpoint
}{
	"Job": {"/apis/batch/v1/namespaces/default/jobs", "x", map[string]any{"spec": endingTemplate}, []endpoint{{"status", "lafo"}}},
	"CronJob": {"/apis/batch/v1/namespaces/default/cronjobs", "x",
		map[string]any{"spec": map[string]any{"schedule": "@daily", "jobTemplate": map[string]any{"spec": endingTemplate}}}, []endpoint{{"status", "lafo"}}},
	"Pod": {"/api/v1/namespaces/default/pods", "x",
		map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}},
		[]endpoint{{"status", "laf"}, {"ephemeralcontainers", ""}}},
	"Service": {"/api/v1/namespaces/default/services", "x",
		map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": 80}}}}, []endpoint{{"status", "lafo"}}},
	"Namespace": {"/api/v1/namespaces", "x", map[string]any{}, []endpoint{{"status", "lafo"}, {"finalize", "lafo"}}},
	"Node":      {"/api/v1/nodes", "x", map[string]any{"spec": map[string]any{"unschedulable": true}}, []endpoint{{"status", "lafo"}}},
	"ResourceQuota": {"/api/v1/namespaces/default/resourcequotas", "x",
		map[string]any{"spec": map[string]any{"hard": map[string]any{"pods": "1"}}}, []endpoint{{"status", "lafo"}}},
	"Deployment":  {"/apis/apps/v1/namespaces/default/deployments", "x", podsOf(), []endpoint{{"status", "afo"}, {"scale", ""}}},
	"DaemonSet":   {"/apis/apps/v1/namespaces/default/daemonsets", "x", podsOf(), []endpoint{{"status", "lafo"}}},
	"ReplicaSet":  {"/apis/apps/v1/namespaces/default/replicasets", "x", podsOf(), []endpoint{{"status", "lafo"}, {"scale", ""}}},
	"StatefulSet": {"/apis/apps/v1/namespaces/default/statefulsets", "x", podsOf(), []endpoint{{"status", "lafo"}, {"scale", ""}}},
	"ReplicationController": {"/api/v1/namespaces/default/replicationcontrollers", "x",
		map[string]any{"spec": map[string]any{"template": podsOf()["spec"].(map[string]any)["template"]}}, []endpoint{{"status", "lafo"}, {"scale", ""}}},
	"PersistentVolume": {"/api/v1/persistentvolumes", "x", map[string]any{"spec": map[string]any{
		"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"}, "hostPath": map[string]any{"path": "/x"},
	}}, []endpoint{{"status", "lafo"}}},
	"PersistentVolumeClaim": {"/api/v1/namespaces/default/persistentvolumeclaims", "x", map[string]any{"spec": map[string]any{
		"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}}, []endpoint{{"status", "lafo"}}},
	"VolumeAttachment": {"/apis/storage.k8s.io/v1/volumeattachments", "x", map[string]any{"spec": map[string]any{
		"attacher": "a", "nodeName": "n", "source": map[string]any{"persistentVolumeName": "v"},
	}}, []endpoint{{"status", ""}}},
	"FlowSchema": {flowSchemas, "x", map[string]any{"spec": map[string]any{"priorityLevelConfiguration": map[string]any{"name": "l"}}}, []endpoint{{"status", ""}}},
	"APIService": {"/apis/apiregistration.k8s.io/v1/apiservices", "v1.example.com", map[string]any{"spec": map[string]any{
		"group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
	}}, []endpoint{{"status", ""}}},
	"ValidatingAdmissionPolicy": {"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "x", map[string]any{"spec": map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"pods"},
		}}},
		"validations": []any{map[string]any{"expression": "true"}},
	}}, []endpoint{{"status", ""}}},
	"PriorityLevelConfiguration": {flowLevels, "x", map[string]any{"spec": map[string]any{
		"type": "Limited", "limited": map[string]any{"limitResponse": map[string]any{"type": "Reject"}},
	}}, []endpoint{{"status", ""}}},
	"CertificateSigningRequest": {"/apis/certificates.k8s.io/v1/certificatesigningrequests", "x",
		map[string]any{"spec": map[string]any{"request": certificateRequest(), "signerName": "example.com/x", "usages": []any{"client auth"}}},
		[]endpoint{{"status", "lafo"}, {"approval", "lafo"}}},
	"Ingress": {"/apis/networking.k8s.io/v1/namespaces/default/ingresses", "x",
		map[string]any{"spec": map[string]any{"rules": []any{map[string]any{"host": "x.example.com"}}}}, []endpoint{{"status", "lafo"}}},
	"PodDisruptionBudget": {"/apis/policy/v1/namespaces/default/poddisruptionbudgets", "x",
		map[string]any{"spec": map[string]any{"minAvailable": 1}}, []endpoint{{"status", "lafo"}}},
	"ServiceCIDR": {"/apis/networking.k8s.io/v1/servicecidrs", "x",
		map[string]any{"spec": map[string]any{"cidrs": []any{"10.9.0.0/24"}}}, []endpoint{{"status", ""}}},
	"CustomResourceDefinition": {crdPath, "boats.sea.example.com", boatDefinition("boats", "Boat"), []endpoint{{"status", "lafo"}}},
	"Raft":                     {"/apis/sea.example.com/v1/rafts", "x", map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Raft"}, []endpoint{{"status", ""}, {"scale", ""}}},
}

// TestMetadataThroughSubresources writes all metadata that callers set through
// every sub-resource of every kind, by every verb: what does not belong there
// stays as it is, what does is changed, and its owner is the one who changed it.
func TestMetadataThroughSubresources(t *testing.T) { synctest.Test(t, metadataThroughSubresources) }

func metadataThroughSubresources(t *testing.T) {
	s := servertest.New(t)
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, boatDefinition("rafts", "Raft"))
	s.Settle()
	for _, typ := range s.Objects().Types() {
		var writes []string
		group := meta.GroupVersionKind{Group: typ.Group, Version: typ.HubVersion}.APIVersion()
		root := "/apis/" + group
		if typ.Group == "" {
			root = "/api/" + group
		}
		for _, served := range meta.NewObject(a.must(200, "GET", root, nil).body).List("resources") {
			r := meta.NewObject(served.(map[string]any))
			if of, sub, _ := strings.Cut(r.String("name"), "/"); of == typ.Plural && sub != "" && slices.Contains(r.Strings("verbs"), "update") {
				writes = append(writes, sub)
			}
		}
		var listed []string
		for _, e := range endpoints[typ.Kind].list {
			listed = append(listed, e.sub)
		}
		assert.ElementsMatch(t, writes, listed, "the sub-resources of %s that this test goes through", typ.Kind)
	}
	for kind, k := range endpoints {
		for _, e := range k.list {
			for _, how := range []string{"PUT", "application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"} {
				if e.sub == "finalize" && how != "PUT" || kind == "Raft" && strings.Contains(how, "strategic") {
					continue
				}
				item := k.path + "/" + k.name
				body := maps.Clone(k.body)
				body["metadata"] = map[string]any{"name": k.name}
				a.must(201, "POST", k.path, body)
				s.Settle()
				writeMetadata(a, item+"/"+e.sub, how)
				got := a.must(200, "GET", item, nil)
				taken, owned := metadataOf(got.body, e.sub)
				assert.Equal(t, e.takes, taken, "%s of %s by %s", e.sub, kind, how)
				if kind != "CertificateSigningRequest" && e.sub != "ephemeralcontainers" { // whose own rules say who owns what
					assert.Equal(t, e.takes, owned, "owned through %s of %s by %s", e.sub, kind, how)
				}
				a.must(200, "PATCH", item, `{"metadata":{"finalizers":null,"ownerReferences":null}}`)
				a.must(200, "DELETE", item, nil)
				s.Settle()
			}
		}
	}
}

// writeMetadata sets all metadata that callers set.
func writeMetadata(a *api, path, how string) {
	a.t.Helper()
	in := map[string]any{
		"labels": map[string]any{"example.com/l": "1"}, "annotations": map[string]any{"example.com/a": "1"}, "finalizers": []any{"example.com/f"},
		"ownerReferences": []any{map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "none", "uid": "00000000-0000-0000-0000-00000000dead"}},
	}
	shown := a.do("GET", strings.TrimSuffix(path, "/finalize"), nil) // finalize cannot be read
	require.Equal(a.t, 200, shown.code, "%s", shown.raw)
	switch how {
	case "PUT":
		maps.Copy(shown.body["metadata"].(map[string]any), in)
		a.must(200, "PUT", path, shown.body)
	case "application/json-patch+json":
		var ops []any
		for f, v := range in {
			ops = append(ops, map[string]any{"op": "add", "path": "/metadata/" + f, "value": v})
		}
		a.must(200, "PATCH", path, ops, "Content-Type", how)
	case "application/apply-patch+yaml":
		in["name"] = at(shown.body, "metadata", "name")
		a.must(200, "PATCH", path+"?fieldManager=m&force=true", map[string]any{"apiVersion": shown.body["apiVersion"], "kind": shown.body["kind"], "metadata": in}, "Content-Type", how)
	default:
		a.must(200, "PATCH", path, map[string]any{"metadata": in}, "Content-Type", how)
	}
}

// metadataOf returns what of the metadata that callers set is there, and what of
// it is owned by writers of a sub-resource.
func metadataOf(obj map[string]any, sub string) (taken, owned string) {
	o := meta.NewObject(obj)
	for _, f := range quirks.CallersMetadata() {
		if text := fmt.Sprint(o.Metadata()[f]); strings.Contains(text, "example.com") {
			taken += f[:1]
		}
		if slices.ContainsFunc(o.List("metadata", "managedFields"), func(v any) bool {
			entry := meta.NewObject(v.(map[string]any))
			_, is := entry.Get("fieldsV1", "f:metadata", "f:"+f)
			return is && entry.String("subresource") == sub
		}) {
			owned += f[:1]
		}
	}
	return taken, owned
}

// TestStoredVersions: nobody can make a definition forget which versions its
// objects may be stored in, by any way of writing its status.
func TestStoredVersions(t *testing.T) {
	s := servertest.New(t)
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, boatDefinition("boats", "Boat"))
	s.Settle()
	const item = crdPath + "/boats.sea.example.com"
	stored := func() any { return at(a.must(200, "GET", item, nil).body, "status", "storedVersions") }
	require.Equal(t, []any{"v1"}, stored())
	for _, w := range [][]string{
		{"application/merge-patch+json", `{"status":{"storedVersions":[]}}`},
		{"application/merge-patch+json", `{"status":{"storedVersions":null}}`},
		{"application/merge-patch+json", `{"status":null}`},
		{"application/json-patch+json", `[{"op":"remove","path":"/status/storedVersions"}]`},
		{"application/json-patch+json", `[{"op":"remove","path":"/status"}]`},
		{"application/strategic-merge-patch+json", `{"status":{"storedVersions":[]}}`},
		{"application/apply-patch+yaml", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boats.sea.example.com"},"status":{"storedVersions":[]}}`},
	} {
		for _, sub := range []string{"/status", ""} {
			a.must(200, "PATCH", item+sub+"?fieldManager=m"+map[bool]string{true: "&force=true"}[strings.Contains(w[0], "apply")], w[1], "Content-Type", w[0])
			assert.Equal(t, []any{"v1"}, stored(), "%s %s", sub, w[1])
		}
	}
	got := a.must(200, "GET", item, nil).body
	at(got, "status").(map[string]any)["storedVersions"] = []any{}
	a.must(200, "PUT", item+"/status", got)
	assert.Equal(t, []any{"v1"}, stored())
	a.must(200, "PATCH", item+"/status", `{"status":{"storedVersions":["v0","v1"]}}`)
	assert.Equal(t, []any{"v0", "v1"}, stored(), "who migrates objects tells so here")
}
