package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestPersistentVolumeClaimResize checks that a claim can grow if it is bound and its class allows expansion.
func TestPersistentVolumeClaimResize(t *testing.T) {
	claim := func(name, class string) string {
		return `{metadata: {name: ` + name + `}, spec: {storageClassName: ` + class + `, volumeName: v, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
	}
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST /apis/storage.k8s.io/v1/storageclasses", body: `{metadata: {name: grows}, provisioner: p, allowVolumeExpansion: true}`, want: `201`},
		step{do: "POST /apis/storage.k8s.io/v1/storageclasses", body: `{metadata: {name: fixed}, provisioner: p}`, want: `201`},
		step{do: "POST persistentvolumeclaims", body: claim("a", "grows"), want: `201`},
		step{do: "POST persistentvolumeclaims", body: claim("b", "fixed"), want: `201`},
		step{do: "POST persistentvolumeclaims", body: claim("c", "gone"), want: `201`},
		step{do: "PATCH persistentvolumeclaims/a/status", body: `{status: {phase: Bound, capacity: {storage: 1Gi}}}`, want: `200`},
		step{do: "PATCH persistentvolumeclaims/b/status", body: `{status: {phase: Bound, capacity: {storage: 1Gi}}}`, want: `200`},
		step{do: "PATCH persistentvolumeclaims/c/status", body: `{status: {phase: Bound, capacity: {storage: 1Gi}}}`, want: `200`},
		step{do: "PATCH persistentvolumeclaims/a", body: `{spec: {resources: {requests: {storage: 2Gi}}}}`, want: `200 {spec: {resources: {requests: {storage: 2Gi}}}}`},
		step{do: "PATCH persistentvolumeclaims/b", body: `{spec: {resources: {requests: {storage: 2Gi}}}}`, want: `403 only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`},
		step{do: "PATCH persistentvolumeclaims/c", body: `{spec: {resources: {requests: {storage: 2Gi}}}}`, want: `403 only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`},
		step{do: "PATCH persistentvolumeclaims/b", body: `{metadata: {labels: {a: b}}}`, want: `200`},
	)
}
