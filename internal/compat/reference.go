// Package compat describes the behaviors of kube-apiserver that no rule of the API explains but that
// clients may rely on: Reference lists them for each kind, and Rule lists the points in which
// kube-apiserver contradicts the API specification.
package compat

// Reference lists the exceptional behaviors of a kind. The zero value has none; kinds of programs use
// it.
type Reference struct {
	// Writes.

	CreateOnPut     bool // a PUT creates the object if it does not exist
	StatusOnCreate  bool // a create keeps the status of the request
	PutWithVersion  bool // a PUT requires a resourceVersion
	FirstGeneration bool // metadata.generation stays at its first value
	LateGeneration  bool // metadata.generation is unset until the first change, which sets it to 1
	NoGeneration    bool // metadata.generation is never set

	// NamesKind requires apiVersion and kind in request bodies, and reports a wrong kind as a violation
	// of the object: the handler of custom resources reads both before it knows the type.
	NamesKind bool

	// SortedUnknown sorts warnings about unknown and duplicate JSON fields by path, because custom
	// objects are pruned before decoding. Otherwise the warnings are in the order of the request body.
	SortedUnknown bool

	// AnyFinalizer accepts finalizers without a domain with a warning; other kinds reject them.
	AnyFinalizer bool

	// FreeFinalizers accepts finalizers without a domain and without a warning.
	FreeFinalizers bool

	// StatusMetadata lists the metadata fields that a write of the status subresource changes, too. It
	// is a subset of CallersMetadata.
	StatusMetadata []string

	// Unowned lists the top-level fields whose managers are not recorded, because the server resets
	// them before it computes ownership.
	Unowned []string

	// ScaleIsObject reports violations in a scale request with the paths of the Scale instead of the
	// scaled object.
	ScaleIsObject bool

	// Deletions.

	DeleteAnswersStatus bool   // DELETE answers a Status instead of the deleted object
	NoDeleteCollection  bool   // deletecollection is not served
	NoDependents        bool   // a propagation policy adds no finalizer, because the kind has no dependents
	OrphansDependents   bool   // a DELETE without a propagation policy orphans the dependents
	OrphanWarning       string // the warning of such a DELETE; "" means none

	// Reads.

	NoProtobuf     bool   // protobuf is not served
	ListContinue   bool   // list metadata has the field continue even if it is empty
	NamedItems     bool   // list items have apiVersion and kind
	AnyNamespace   bool   // the field selector metadata.namespace is accepted although the kind is cluster-scoped
	DiscoveredAs   string // the version whose storage hash discovery shows; "" means the storage version
	DelegatedPaths bool   // unknown paths, methods and media types are answered with the messages of the custom resource handler

	// StatusRule decides whether the status subresource is served; zero: if the kind has a status.
	StatusRule Rule

	// OptionalVersions are the versions that are served only if the runtime configuration enables them;
	// see OptionalBeta.
	OptionalVersions []string

	// OnlySubresources maps versions (group/version by spec names) in which only subresources are
	// served to the kind that discovery lists there.
	OnlySubresources map[string]string
}

// CallersMetadata returns the metadata fields that callers own. See Reference.StatusMetadata.
func CallersMetadata() []string {
	return []string{"labels", "annotations", "finalizers", "ownerReferences"}
}
