package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestOwnerReferences checks the rights that are required to change owner references and to block the
// deletion of an owner.
func TestOwnerReferences(t *testing.T) {
	const keeper, plain = "alice,without delete configmaps", "bob,without update configmaps/finalizers"
	owner := func(more string) string {
		return `ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: u` + more + `}]`
	}
	const cannotDelete, cannotBlock = `403 cannot set an ownerRef on a resource you can't delete`, `403 cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on`
	runSteps(t, newServer(t, admission.Options{Enable: []string{"OwnerReferencesPermissionEnforcement"}}),
		step{as: keeper, do: "POST configmaps", body: `{metadata: {name: a}}`, want: `201`},
		step{as: keeper, do: "PATCH configmaps/a", body: `{metadata: {` + owner(``) + `}}`, want: cannotDelete},
		step{as: keeper, do: "PATCH configmaps/a", body: `{metadata: {labels: {a: b}}}`, want: `200`},
		step{as: keeper, do: "POST configmaps", body: `{metadata: {name: b, ` + owner(``) + `}}`, want: `201`},
		step{as: keeper, do: "PATCH configmaps/b", body: `{metadata: {labels: {a: b}}}`, want: `200`},
		step{as: keeper, do: "PATCH configmaps/b", body: `{metadata: {ownerReferences: null}}`, want: cannotDelete},

		step{as: plain, do: "POST configmaps", body: `{metadata: {name: c, ` + owner(`, blockOwnerDeletion: true`) + `}}`, want: cannotBlock},
		step{as: plain, do: "POST configmaps", body: `{metadata: {name: c, ` + owner(`, blockOwnerDeletion: false`) + `}}`, want: `201`},
		step{as: plain, do: "PATCH configmaps/c", body: `{metadata: {` + owner(`, blockOwnerDeletion: true`) + `}}`, want: cannotBlock},
		step{do: "PATCH configmaps/c", body: `{metadata: {` + owner(`, blockOwnerDeletion: true`) + `}}`, want: `200`},
		step{as: plain, do: "PATCH configmaps/c", body: `{metadata: {` + owner(`, blockOwnerDeletion: true, controller: true`) + `}}`, want: `200`},
		step{as: plain, do: "PATCH configmaps/c", body: `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: other, uid: u, blockOwnerDeletion: true}]}}`, want: cannotBlock},
		step{as: plain, do: "PATCH configmaps/c", body: `{metadata: {` + owner(``) + `}}`, want: `200`},

		step{do: "POST configmaps", body: `{metadata: {name: d, ownerReferences: [{apiVersion: a.b/v1, kind: C, name: owner, uid: u, blockOwnerDeletion: true}]}}`,
			want: `403 cannot find RESTMapping for APIVersion a.b/v1 Kind C`},
		step{do: "POST configmaps", body: `{metadata: {name: d, ownerReferences: [{apiVersion: a.b/v1, kind: C, name: owner, uid: u}]}}`, want: `201`},
		step{do: "POST replicationcontrollers", body: `{metadata: {name: r}, spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`, want: `201`},
		step{as: "carol,without delete replicationcontrollers", do: "PATCH replicationcontrollers/r/status", body: `{metadata: {` + owner(``) + `}, status: {replicas: 1}}`, want: cannotDelete},
	)
}
