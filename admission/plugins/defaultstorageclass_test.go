package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestDefaultStorageClass: a claim that names no class gets the default one, and of
// two the newest.
func TestDefaultStorageClass(t *testing.T) {
	const classes, marked = "/apis/storage.k8s.io/v1/storageclasses", `, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: x}`
	const claim = `, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}`
	walk(t, with(t, admission.Options{}),
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: a}` + claim + `}}`, want: `201 {spec: {storageClassName: null}}`},
		step{do: "POST " + classes, body: `{metadata: {name: old` + marked, want: `201`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: b}` + claim + `}}`, want: `201 {spec: {storageClassName: old}}`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: c}` + claim + `, storageClassName: ""}}`, want: `201 {spec: {storageClassName: ""}}`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: d, annotations: {volume.beta.kubernetes.io/storage-class: other}}` + claim + `}}`,
			want: `201 {spec: {storageClassName: null}}`},
		step{do: "PATCH persistentvolumeclaims/a", body: `{metadata: {labels: {a: b}}}`, want: `200 {spec: {storageClassName: null}}`},
		step{do: "POST " + classes, body: `{metadata: {name: new` + marked, want: `201`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: e}` + claim + `}}`, want: `201 {spec: {storageClassName: new}}`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: g}` + claim + `, storageClassName: new}}`, want: `201`},
		step{do: "DELETE " + classes + "/old", want: `200`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: f}` + claim + `}}`, want: `201 {spec: {storageClassName: new}}`},
	)
}
