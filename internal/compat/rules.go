package compat

import (
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/release"
)

// Rule is a behavior in which kube-apiserver contradicts the API specification. The zero Rule never
// holds.
type Rule int

// The rules, described by the behavior of kube-apiserver.
const (
	_ Rule = iota
	// ListsDeleted: deletecollection answers the list of the deleted objects, as a list request with
	// the same parameters would show them, also in a dry run. The specification answers a Status.
	ListsDeleted
	// NewestStorageClass: if several StorageClasses are marked as default, the newest applies. The
	// specification rejects the claim.
	NewestStorageClass
	// NewestIngressClass: if several IngressClasses are marked as default, the newest applies. The
	// specification rejects the ingress.
	NewestIngressClass
	// DriverChanges: fsGroupPolicy and podInfoOnMount of a CSIDriver are mutable. In the specification
	// they are immutable.
	DriverChanges
	// ClearedOwners: an update that clears metadata.managedFields leaves the object without managers,
	// even if it changes other fields. In the specification the caller then owns the changed fields.
	ClearedOwners
	// EmptyListClears: an empty list clears metadata.managedFields of built-in kinds, too. In the
	// specification only a list with a single empty entry does.
	EmptyListClears
	// EqualOverhead: a new pod may set the overhead that its RuntimeClass defines. The specification
	// rejects each new pod that sets an overhead.
	EqualOverhead
	// OptionalBeta: beta versions that the kind marks as optional are served only if the runtime
	// configuration enables them. In the specification all versions are served by default.
	OptionalBeta
	// NodeDriverStatus: CSINode has the status subresource. In the specification it has none.
	NodeDriverStatus
	// EtcdTooLarge: a write that exceeds the size limit of the store is answered with 500, without a
	// reason and with etcd's message, which clients match; a dry run succeeds. By the API conventions
	// the answer is 413.
	EtcdTooLarge
	// OwnersFit: an apply to a custom resource without a conversion webhook fails if a manager owns
	// fields through a version whose schema lacks some field of the object. The specification has no
	// such restriction.
	OwnersFit
)

// since is the first release of kube-apiserver with each behavior.
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

// Rules decides which rules hold for a server: none with orch names, and with Kubernetes names the
// rules of the server's release. In the zero Rules none holds.
type Rules struct {
	names   names.Profile
	release release.Release
}

// RulesOf returns the rules of a server with the given names and release.
func RulesOf(p names.Profile, r release.Release) Rules { return Rules{p, r} }

// Has reports whether the server follows the rule.
func (r Rules) Has(rule Rule) bool {
	return r.names == names.Kubernetes && r.release.Reached(since[rule])
}
