package plugins_test

import (
	"testing"
	"testing/synctest"
	"time"

	"orch.io/controlplane/admission"
)

// TestDefaultStorageClass checks that a claim without a class gets the default class.
func TestDefaultStorageClass(t *testing.T) {
	const classes, marked = "/apis/storage.k8s.io/v1/storageclasses", `, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: x}`
	const claim = `, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}`
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: a}` + claim + `}}`, want: `201 {spec: {storageClassName: null}}`},
		step{do: "POST " + classes, body: `{metadata: {name: old` + marked, want: `201`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: b}` + claim + `}}`, want: `201 {spec: {storageClassName: old}}`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: c}` + claim + `, storageClassName: ""}}`, want: `201 {spec: {storageClassName: ""}}`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: d, annotations: {volume.beta.kubernetes.io/storage-class: other}}` + claim + `}}`,
			want: `201 {spec: {storageClassName: null}}`},
		step{do: "PATCH persistentvolumeclaims/a", body: `{metadata: {labels: {a: b}}}`, want: `200 {spec: {storageClassName: null}}`},
		step{do: "DELETE " + classes + "/old", want: `200`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: f}` + claim + `}}`, want: `201 {spec: {storageClassName: null}}`},
	)
}

// TestNewestDefaultStorageClassWins checks that a claim gets the newest of several default classes, whatever the names
// are, and the first by name if they were created in the same second.
func TestNewestDefaultStorageClassWins(t *testing.T) {
	const classes, marked = "/apis/storage.k8s.io/v1/storageclasses", `, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: x}`
	const claim = `{metadata: {name: c}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
	newestWins(t, func(name string) step {
		return step{do: "POST " + classes, body: `{metadata: {name: ` + name + marked, want: `201`}
	}, func(name string) step {
		return step{do: "POST persistentvolumeclaims?dryRun=All", body: claim, want: `201 {spec: {storageClassName: ` + name + `}}`}
	})
}

// newestWins creates default classes and checks the class of new objects. Neither the order of the names nor its
// reverse is the order of creation.
func newestWins(t *testing.T, create func(name string) step, gets func(name string) step) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, admission.Options{})
		for _, names := range [][]string{{"k"}, {"z"}, {"a"}, {"d", "c"}} {
			time.Sleep(time.Second) // creationTimestamp has whole seconds
			for _, name := range names {
				create(name).run(t, s)
			}
			gets(names[len(names)-1]).run(t, s)
		}
	})
}
