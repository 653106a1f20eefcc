package server_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/servertest"
)

const (
	claims  = "/api/v1/namespaces/default/persistentvolumeclaims"
	volumes = "/api/v1/persistentvolumes"
)

func newClaim(name string, metadata map[string]any) map[string]any {
	metadata["name"] = name
	return map[string]any{"metadata": metadata, "spec": map[string]any{
		"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}}
}

// podWith is a pod with one volume.
func podWith(name string, volume map[string]any) map[string]any {
	volume["name"] = "data"
	return map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{
		"containers": []any{map[string]any{"name": "c", "image": "i"}}, "volumes": []any{volume},
	}}
}

func claimVolume(claim string) map[string]any {
	return map[string]any{"persistentVolumeClaim": map[string]any{"claimName": claim}}
}

// TestClaimProtection: a claim waits for the pods that use it, one that is finished
// does not.
func TestClaimProtection(t *testing.T) {
	s := servertest.New(t)
	a := inProcess(t, s)
	for _, name := range []string{"unused", "used"} {
		made := a.must(201, "POST", claims, newClaim(name, map[string]any{"finalizers": []any{"kubernetes.io/pvc-protection"}}))
		assert.Equal(t, []any{"kubernetes.io/pvc-protection"}, at(made.body, "metadata", "finalizers"))
	}
	for _, name := range []string{"one", "two", "three"} {
		a.must(201, "POST", pods, podWith(name, claimVolume("used")))
	}
	a.must(200, "DELETE", claims+"/unused", nil)
	a.must(200, "DELETE", claims+"/used", nil)
	s.Settle()
	a.must(404, "GET", claims+"/unused", nil)

	a.must(200, "DELETE", pods+"/one?gracePeriodSeconds=0", nil)
	a.must(200, "PATCH", pods+"/two/status", `{"status":{"phase":"Succeeded"}}`)
	s.Settle()
	a.must(200, "GET", claims+"/used", nil)
	a.must(200, "DELETE", pods+"/three?gracePeriodSeconds=0", nil)
	s.Settle()
	a.must(404, "GET", claims+"/used", nil)
}

// TestClaimProtectionOfPodsOwnClaims: a claim that was made for a pod's volume is used
// by that pod, and not by one of the same name; a pod of which nothing is left but its
// wait for the claim does not hold it.
func TestClaimProtectionOfPodsOwnClaims(t *testing.T) {
	s := servertest.New(t)
	a := inProcess(t, s)
	template := map[string]any{"ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{"spec": newClaim("", map[string]any{})["spec"]}}}
	pod := a.must(201, "POST", pods, podWith("p", template))
	owner := map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": at(pod.body, "metadata", "uid"), "controller": true, "blockOwnerDeletion": true}
	a.must(201, "POST", pods, podWith("q", template))
	a.must(201, "POST", claims, newClaim("p-data", map[string]any{"ownerReferences": []any{owner}}))
	a.must(201, "POST", claims, newClaim("q-data", map[string]any{}))
	a.must(200, "DELETE", claims+"/p-data", nil)
	a.must(200, "DELETE", claims+"/q-data", nil)
	s.Settle()
	a.must(200, "GET", claims+"/p-data", nil)
	a.must(404, "GET", claims+"/q-data", nil)

	a.must(200, "DELETE", pods+"/p?gracePeriodSeconds=0&propagationPolicy=Foreground", nil)
	s.Settle()
	a.must(404, "GET", claims+"/p-data", nil)
	a.must(404, "GET", pods+"/p", nil)
}

// TestVolumeProtection: a volume waits as long as it is bound.
func TestVolumeProtection(t *testing.T) {
	s := servertest.New(t)
	a := inProcess(t, s)
	made := a.must(201, "POST", volumes, map[string]any{"metadata": map[string]any{"name": "v"}, "spec": map[string]any{
		"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"}, "hostPath": map[string]any{"path": "/data"},
	}})
	assert.Equal(t, []any{"kubernetes.io/pv-protection"}, at(made.body, "metadata", "finalizers"))
	a.must(200, "PATCH", volumes+"/v/status", `{"status":{"phase":"Bound"}}`)
	a.must(200, "DELETE", volumes+"/v", nil)
	s.Settle()
	a.must(200, "GET", volumes+"/v", nil)
	a.must(200, "PATCH", volumes+"/v/status", `{"status":{"phase":"Released"}}`)
	s.Settle()
	a.must(404, "GET", volumes+"/v", nil)
}
