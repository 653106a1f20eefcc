// Package core holds the kinds of the core group.
//
// A small kind is one file that reads from top to bottom: the struct that is
// the kind's wire form (json names, protobuf numbers, schema rules, field docs),
// the Definition, then defaulting and validation. A large one has a file for
// each of these, named after the kind or after a part of it: pod.go with the
// struct and the Definition; container.go, volume.go, probe.go, ... with the
// nested types and nothing else; podcreate.go, poddefaults.go and podupdate.go
// with what a write does; *rules.go with what validation says to the types in
// the file of that name; podcolumns.go and podwarnings.go with what people see.
//
// Rules of pods are methods of podRules, which collects faults in the order that
// clients see and knows the spec around; a volume source checks what its schema
// does not know. Types
// and rules that kinds of other packages share are exported.
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
