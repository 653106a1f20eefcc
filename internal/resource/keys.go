package resource

import (
	"net/url"
	"strings"

	"orch.io/controlplane/api/meta"
)

// StorageKey returns the storage key of an object of the type.
func (t *Type) StorageKey(k meta.Key) string {
	return StorageKey(t.GroupResource(), k)
}

// StorageKey returns the storage key of an object, whether or not its resource is served.
func StorageKey(r meta.GroupResource, k meta.Key) string {
	return r.String() + "/" + k.Namespace + "/" + k.Name
}

// ParseStorageKey splits a storage key "resource.group/namespace/name". ok is false if the key is
// not of this form.
func ParseStorageKey(key string) (r meta.GroupResource, k meta.Key, ok bool) {
	parts := strings.SplitN(key, "/", 3)
	if len(parts) != 3 {
		return r, k, false
	}
	r.Resource, r.Group, _ = strings.Cut(parts[0], ".")
	return r, meta.Key{Namespace: parts[1], Name: parts[2]}, true
}

// ReservationPrefix begins the storage keys of reservations: records that reserve a value for the
// object that they name, see registry.Allocator and the schema tag "unique". Like the other keys with
// "~" it cannot clash with the key of an object, because no resource name contains that character.
const ReservationPrefix = "~reserved/"

// ReservationKey returns the storage key of the reservation of claim, such as a PoolClaim, among
// the objects of a resource.
func ReservationKey(r meta.GroupResource, claim string) string {
	return ReservationPrefix + r.String() + "/" + claim
}

// PoolClaim returns the claim for a value of a pool.
func PoolClaim(value string) string { return "pool/" + value }

// KindsKey is the storage key of the record that lists, for each kind, the shapes with which the
// store was served, see Type.Fingerprint. Each store has this record from the start.
const KindsKey = "~kinds"

// SerialKey returns the storage key of the record that serializes all writes of one series,
// whatever objects they write, see objects.Write.Sequence.
func SerialKey(serial string) string { return "~serial/" + serial }

// SequencePrefix begins the storage keys of sequences: each record names the last write of a
// sequence that admission plugins serialize, see admission.Request.
const SequencePrefix = "~sequence/"

// SequenceKey returns the storage key of a sequence of a namespace, or of the cluster if the
// namespace is empty. The key has a single slash, so that ParseStorageKey rejects it.
func SequenceKey(sequence meta.Key) string {
	return SequencePrefix + sequence.Namespace + ":" + url.PathEscape(sequence.Name)
}

// TermPrefix begins the storage keys of leader terms: each record stands for the current term of a
// leader that a Lease elects, and is replaced in each term.
const TermPrefix = "~term/"

// FencePrefix begins the storage keys of namespace fences, see admission.PluginContext.
const FencePrefix = "~fence/"
