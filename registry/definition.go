package registry

import (
	"context"

	"orch.io/controlplane/registry/meta"
)

// Definition declares a kind by a Go struct T. T has the object's fields as its
// json tags name them, with TypeMeta inline and metadata as a field; types
// written for other ecosystems work through their json shape.
type Definition[T any] struct {
	Group, Version, Kind string
	Plural               string // default: lower-case kind and s
	Singular             string // default: lower-case kind
	ListKind             string // default: Kind and List
	ShortNames           []string
	Categories           []string
	Scope                Scope
	Status               bool // the sub-resource status exists
	Columns              []Column

	// Default fills in a new or changed object, after the schema's defaults.
	Default func(obj *T)
	// Validate returns the faults beyond the schema's; old is nil on create.
	Validate func(ctx context.Context, old, new *T) []meta.Cause

	// Behavior holds what few kinds need. The typed Default and Validate run
	// after its own.
	Behavior Behavior
}
