// Package core defines the kinds of the core group.
//
// A small kind is a single file: the struct, which is the wire form (JSON names, protobuf numbers,
// schema rules, field documentation), the Definition, then defaulting and validation. A large kind has
// a file for each of these: for pods, pod.go has the struct and the Definition; container.go,
// volume.go, probe.go and others have the nested types; podcreate.go, poddefaults.go and podupdate.go
// have the steps of a write; each ...rules.go has the validation of the types in the file of the same
// name; podcolumns.go and podwarnings.go have the printer columns and the warnings.
//
// The rules of pods are methods of podRules, which collects violations in the order of kube-apiserver
// and has access to the whole spec. Types and rules that kinds of other packages share are exported.
package core

import "orch.io/controlplane/registry"

const version = "v1"

// Kinds returns the kinds of the core group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{
		namespaces(),
		configMaps(),
		secrets(),
		serviceAccounts(),
		events(),
		pods(),
		podTemplates(),
		replicationControllers(),
		services(),
		endpoints(),
		nodes(),
		limitRanges(),
		resourceQuotas(),
		persistentVolumes(),
		persistentVolumeClaims(),
		bindings(),
		componentStatuses(),
	}
}
