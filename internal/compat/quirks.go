// Package compat lists in what the kinds of the field's servers differ from each
// other although they need not: clients know it, so the kinds here differ, too. It also
// has the table of the points in which the specification and the reference server differ.
package compat

// Reference is what a kind imitates. The zero value imitates nothing; it is what
// kinds of programs get.
type Reference struct {
	// Writes.

	CreateOnPut     bool // a PUT on a name that is free creates
	StatusOnCreate  bool // a new object has the status that its caller gives it
	PutWithVersion  bool // a PUT without a resourceVersion is refused
	FirstGeneration bool // the generation stays that of the creation, whatever changes
	LateGeneration  bool // the generation begins with the first change, which makes it 1
	NoGeneration    bool // the metadata has no generation: the kind is older than that, or nothing acts on it

	// NamesKind demands that bodies name their apiVersion and kind, and tells a
	// wrong kind as a fault of the object: the handler of custom resources reads
	// them before it knows what they are.
	NamesKind bool

	// SortedUnknown tells unknown and repeated fields of JSON sorted by path: custom
	// objects are pruned before they are read. Else they come as they stand in the
	// body.
	SortedUnknown bool

	// AnyFinalizer warns of finalizers without a domain where others are refused.
	AnyFinalizer bool

	// FreeFinalizers takes finalizers without a domain and warns of none.
	FreeFinalizers bool

	// StatusMetadata is what a write of the status changes of the metadata, too:
	// for each kind something else, as its strategy happened to be written. It is
	// some of CallersMetadata.
	StatusMetadata []string

	// Unowned are the fields at the root whose owners are not recorded, for the
	// write that tracks them resets them first.
	Unowned []string

	// ScaleIsObject tells what is wrong with a size as a fault of the Scale and its
	// fields, not of the object and the path that it has there.
	ScaleIsObject bool

	// Deletions.

	DeleteAnswersStatus bool   // a DELETE answers a Status, not the object as it was
	NoDeleteCollection  bool   // there is no deletecollection
	NoDependents        bool   // propagation policies leave no finalizers: the kind owns nothing
	OrphansDependents   bool   // a DELETE without a propagation policy leaves what the object owns
	OrphanWarning       string // what such a DELETE is warned of; empty: nothing

	// Reads.

	NoProtobuf     bool   // there is no protobuf form
	ListContinue   bool   // a list's metadata has the field continue even if it is empty
	NamedItems     bool   // the items of lists name their apiVersion and kind
	AnyNamespace   bool   // the selector metadata.namespace is known, though the kind is in no namespace
	DiscoveredAs   string // the version whose hash discovery tells; empty: the storage version
	DelegatedPaths bool   // paths and methods that the kind does not have, and forms that it cannot be shown in, are refused in the words of the handler of custom resources

	// StatusRule decides whether the sub-resource status exists; zero: it does if the kind
	// has one.
	StatusRule Rule

	// OptionalVersions are served only if the runtime configuration names them, see
	// OptionalBeta.
	OptionalVersions []string

	// OnlySubresources are versions, group/version by spec names, in which there are
	// sub-resources of the objects and not the objects, and the kind that discovery tells
	// there.
	OnlySubresources map[string]string
}

// CallersMetadata returns the fields of the metadata that belong to callers. Each
// built-in kind says which of them its status writes, as clients know it; other
// kinds keep the two apart.
func CallersMetadata() []string {
	return []string{"labels", "annotations", "finalizers", "ownerReferences"}
}
