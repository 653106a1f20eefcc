package compat

import (
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/release"
)

// Rule is a behaviour in which the specification of the interface and the reference
// server differ. The zero Rule is none.
type Rule int

// The rules. Each is worded as the reference behaves.
const (
	_ Rule = iota
	// ListsDeleted: deletecollection answers the list of the objects that it deleted, as
	// the list request with the same parameters shows them, also in a dry run. The
	// specification answers a Status.
	ListsDeleted
	// NewestStorageClass: of several default StorageClasses a claim gets the newest. The
	// specification refuses the claim.
	NewestStorageClass
	// NewestIngressClass: of several default IngressClasses an ingress gets the newest.
	// The specification refuses the ingress.
	NewestIngressClass
	// DriverChanges: fsGroupPolicy and podInfoOnMount of a CSIDriver may change. In the
	// specification they are immutable.
	DriverChanges
	// ClearedOwners: an update that clears metadata.managedFields leaves the object
	// without owners, whatever else the update changes. In the specification the caller
	// owns the fields that the update changes.
	ClearedOwners
	// EmptyListClears: an empty list clears metadata.managedFields of a built-in kind, too. In the
	// specification only a list with one empty entry does.
	EmptyListClears
	// EqualOverhead: a new pod may have an overhead that equals the one of its
	// RuntimeClass. The specification refuses every pod that sets its overhead.
	EqualOverhead
	// OptionalBeta: the beta versions that a kind names as optional are served only if the
	// runtime configuration names them. In the specification every version is served unless
	// the configuration says otherwise.
	OptionalBeta
	// NodeDriverStatus: CSINode has the sub-resource status. The specification has none.
	NodeDriverStatus
	// EtcdTooLarge: a write of an object that is larger than the store takes is 500 without
	// a reason, with the message of etcd that clients look for; a dry run succeeds. By
	// the conventions of the interface it is 413.
	EtcdTooLarge
	// OwnersFit: an apply to an object of a definition without a converter fails if a manager
	// owns fields in a version whose schema does not declare all fields of the object, such as
	// one that another version has got with a default since. The specification does not
	// restrict applies so.
	OwnersFit
)

// since says from which release on the reference behaves as a rule says.
var since = map[Rule]string{
	ListsDeleted:       release.Oldest.String(),
	NewestStorageClass: "1.26",
	NewestIngressClass: "1.25",
	DriverChanges:      "1.29",
	ClearedOwners:      release.Oldest.String(),
	EmptyListClears:    release.Oldest.String(),
	EqualOverhead:      release.Oldest.String(),
	OptionalBeta:       "1.24",
	NodeDriverStatus:   "1.37",
	EtcdTooLarge:       release.Oldest.String(),
	OwnersFit:          release.Oldest.String(),
}

// Rules decides which rules hold for one server: with orch names the specification is
// right, with Kubernetes names the reference of the server's release is. The zero Rules
// is the specification.
type Rules struct {
	names   names.Profile
	release release.Release
}

// RulesOf returns the rules of a server with these names, in a release.
func RulesOf(p names.Profile, r release.Release) Rules { return Rules{p, r} }

// Has reports whether the server behaves as the rule says.
func (r Rules) Has(rule Rule) bool {
	return r.names == names.Kubernetes && r.release.Reached(since[rule])
}
