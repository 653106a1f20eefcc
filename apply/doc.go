// Package apply changes Kubernetes-style objects by patches and tracks which manager owns
// which field. Programs that are not servers can use it instead of client-go's, kubectl's
// and structured-merge-diff's packages for the same tasks:
//
//   - FieldManager is server-side apply: Apply and Update keep metadata.managedFields, Extract
//     returns the fields of a manager as an object. Owners lists all owners of an object.
//   - MergePatch, StrategicMerge and JSONPatch apply patches.
//   - CreateMergePatch, CreateStrategicMerge and CreateJSONPatch create them from two objects,
//     the ThreeWay functions from three, as kubectl apply does.
//   - Diff lists the differences between a live and a desired object.
//   - UpgradeManagedFields moves an object from client-side to server-side apply.
//
// An object is a *meta.Object or its tree: the JSON values map[string]any, []any, string,
// bool, int64, float64 and nil, as meta.ParseJSON returns them. A schema.Schema describes its
// lists and maps.
//
// All functions are pure: they do not change their arguments, except for obj of Update, and
// results share nothing with arguments unless the function documents it. Objects may therefore be
// shared by goroutines. Patches and managedFields may come from untrusted callers: their size
// and depth are bounded, and an error about them is a *meta.Status that a server can answer.
//
// # Order of a write in a server
//
//  1. Load the live object; nil if it does not exist.
//  2. For Apply: call Apply, then normalize and default the result. For any other write: make
//     the new object from the body or a patch, normalize and default it, then call Update.
//     Fields that defaults add to an applied object have no owner.
//  3. Run admission, the kind's own preparation and validation. Fields that they change have no
//     owner until a manager writes them. They must not change managedFields.
//  4. Store the object, unless only its resourceVersion and the times of managedFields differ.
//
// A write through the subresource scale is an Apply or Update of the whole object that
// changes only the replica count, with Options.Subresource scale. A field that an endpoint does
// not write (the status through the object, everything else through the status) gets no owner
// through it, but Apply merges it: the server has to put it back.
//
// # Two implementations of field ownership
//
// Three questions decide all ownership: which fields an object has, how an applied object
// merges into a live one, and which fields differ between two objects. This package answers
// each in two ways:
//
//   - structured-merge-diff, the library of the Kubernetes API server, defines the answers. It
//     wraps each value of an object in a typed value, which makes it 5 to 10 times slower than
//     the rest of a write.
//   - Plans are our own walks over plain trees. A plan is the schema laid out for them. A walk
//     covers the usual values and gives up on everything else: duplicate keys, keys that are
//     not scalars, lists that replace maps, removed fields, schemas of mixed types.
//
// A plan is always asked first, and structured-merge-diff only if the plan gives up. Both
// read the same compiled schema, so that they cannot disagree on list types and keys. The rule
// for plans is: answer like structured-merge-diff, or give up. Removing fields, extracting
// fields and reconciling sets after a schema change are rare and use structured-merge-diff
// alone.
//
// These tests keep the two equal:
//
//   - FuzzPlan (apply/internal/ownership) compares all three answers for generated objects.
//   - TestBuiltinKindsUsePlans (there) compares them for objects that use every field of every
//     built-in kind, and fails if a plan gives up.
//   - TestSeparatedNumbersDifferAsFloat64 (there) covers numbers, which structured-merge-diff
//     compares as float64: trees are prepared so that different numbers stay different.
//   - TestRandomWritesHaveSameOwners (apply/conformance) plays random writes on this package and on the field
//     manager of k8s.io/apimachinery, and compares objects and managedFields.
package apply
