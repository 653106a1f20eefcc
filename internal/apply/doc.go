// Package apply changes objects by patches and keeps account of who owns which field.
//
// JSONPatch, MergePatch and StrategicMerge are pure functions on trees; a
// Tracker, made once for a kind, does server-side apply and keeps
// metadata.managedFields (spec 000, "Server-side apply and field ownership").
//
// # In the write path
//
// All objects of a call are in the version of the request (Write.APIVersion).
//
//  1. Load live; nil if there is none.
//  2. Every write but apply: make the new object (from the body, or by a patch),
//     fit it to the schema and default it, then call Update(live, obj, w).
//     Apply: out := Apply(live, patch, w), then fit and default out. Apply has
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
