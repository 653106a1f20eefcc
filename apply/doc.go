// Package apply changes objects by patches and keeps account of who owns which field.
//
// JSONPatch, MergePatch and StrategicMerge are pure functions on trees; a
// Tracker, made once for a kind, does server-side apply and keeps
// metadata.managedFields.
//
// # Who may change what
//
// Objects that are given in may be shared by any number of goroutines and stay as they
// are, but for obj of Update, whose managedFields it writes. A Tracker is never written
// after NewTracker, except for its cache of field sets, which has a lock of its own. The
// sets in that are shared by all who read the same text, so nobody changes a set that
// he did not make.
//
// Nearly all objects are walked as plain trees (plan). These walks give up where
// anything is unusual, and structured-merge-diff is asked instead; where they do not
// give up, they say what it would say, which FuzzPlan compares.
//
// # In the write path
//
// What is applied is in the version of the request (Write.APIVersion); live and obj may
// be in another one, both in the same.
//
//  1. Load live; nil if there is none.
//  2. Every write but apply: make the new object (from the body, or by a patch),
//     make it conform to the schema and default it, then call Update(live, obj, w).
//     Apply: out := Apply(live, patch, w), then conform and default out. Apply has
//     set managedFields already; what defaults add has no owner.
//  3. Admission, the kind's Prepare and validation come after that. What they
//     change has no owner before somebody writes it; plugins must leave
//     managedFields alone.
//  4. Unchanged(live, obj): nothing is stored and live is the answer.
//
// A write through the sub-resource scale is an apply or update of the object
// with nothing but its replica count, with Write.Subresource scale.
//
// A field that an endpoint does not write (status on the object itself, all else
// on status) is never owned through it, but Apply merges it: the server puts
// such fields back.
package apply
