// Package core holds the kinds of the core group: one file per kind with its
// fields, its definition and its rules.
//
// A file reads from top to bottom: the struct that is the kind's wire form
// (json names, protobuf numbers, schema rules, field docs), the Definition,
// then defaulting and validation. Types that several kinds use have files of
// their own.
package core

import (
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/names"
)

const version = "v1"

// Kinds returns the kinds of the core group under the names of p.
func Kinds(p names.Profile) []*registry.Kind {
	return []*registry.Kind{
		namespaces(p),
		configMaps(),
		secrets(p),
		serviceAccounts(),
		events(p),
		pods(p),
		podTemplates(p),
		services(),
	}
}
