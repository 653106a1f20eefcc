// Package admission is the stage between authorization and storage: plugins that change or refuse a write
// before it is stored.
//
// A plugin is a value with a name, rules that select requests, and a function for one or both phases.
//
//	// noAttic keeps lamps out of the attic.
//	func noAttic() admission.Plugin {
//		return admission.Plugin{
//			Name: "NoAttic",
//			Rules: []admission.Rule{{
//				Operations: []admission.Operation{admission.Create, admission.Update},
//				Groups:     []string{"example.com"}, Resources: []string{"lamps"},
//			}},
//			Validate: func(ctx context.Context, r *admission.Request) error {
//				if r.Object.String("spec", "room") == "attic" {
//					return errors.New("no lamps in the attic") // 403 Forbidden
//				}
//				return nil
//			},
//		}
//	}
//
//	b.Admission = append(b.Admission, noAttic()) // of a server.Builder
//
// A plugin uses its server (objects, the authorizer, the names on the wire) through the [PluginContext] in
// [Request].Server. Its Setup function gets one, too, to prepare state that requests share, such as the
// parsed configuration. Package admission/plugins has the built-in plugins.
//
// A [Chain] runs the plugins of one server: first Mutate of every plugin in the order of the table, then,
// after the object was validated, Validate of every plugin in the same order.
package admission

import (
	"context"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Operation is the kind of change that a request makes.
type Operation string

// The operations. Connect is a request to a sub-resource that opens a connection, such as
// exec; a request to a sub-resource that answers a body, such as token, is Create.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Request is one write under admission. A Mutate function may change Object in place; it must not change anything
// else.
type Request struct {
	Operation   Operation
	Kind        meta.GroupVersionKind     // of Object: the hub version of a kind with conversions
	Resource    meta.GroupVersionResource // in the version of Kind
	Type        *registry.Type            // of Resource, with all its versions
	Subresource string
	Namespace   string
	Name        string // on create: in Mutate as the caller sent it, so empty if it is generated; in Validate as stored
	User        *auth.User
	Object      *meta.Object // nil on delete; the options of a connection
	Old         *meta.Object // nil on create and connect; must not be changed
	Verb        string       // of the caller's request: create, update, patch or delete; empty on connect
	Options     *meta.Object // CreateOptions, UpdateOptions or DeleteOptions, by Operation; nil on connect
	DryRun      bool

	// RequestKind and RequestResource are the kind and resource in the version of the caller's request.
	RequestKind     meta.GroupVersionKind
	RequestResource meta.GroupVersionResource

	// Representations convert Object and Old to other versions. nil: all versions are the same.
	Representations Representations

	// Warn sends a warning to the caller.
	Warn func(text string)
	// Annotate adds an annotation to the audit event.
	Annotate func(key, value string)
	// AnnotateExternal is Annotate for a value from outside of the server, such as that of a webhook. These values
	// have a size limit of their own, for all admission of one caller's request; false: it is used up.
	AnnotateExternal func(key, value string) bool

	// Server is the context of the plugins of this server.
	Server *PluginContext

	// Attempt is how often the same write was admitted before without being stored, because of a conflict with
	// another write or because a generated name was taken. Attempts that admission refused do not count.
	Attempt int

	// Pass is 0, and 1 while Mutate runs again, see Reinvoke.
	Pass     int
	reinvoke bool
	after    []func(written, certain bool)

	// Preconditions are the records that the decision depends on. Plugins append to it.
	Preconditions []Precondition

	// Serialize makes the write the next one of a sequence, of a namespace or of the cluster, that plugins name.
	// When it returns, Server shows all writes of the sequence that any server over the store has committed, and no
	// other one is committed before this write: if one is, nothing is written, and the whole chain runs again with
	// a new Request. So a plugin that sums objects with Server.List, and runs for every write that raises the sum,
	// also by sub-resources such as scale and status, never lets the sum exceed its bound. Call it first in
	// Validate; writes that cannot break the rule need not join. Writes of one sequence are committed one at a
	// time, and a sequence is kept as long as its namespace holds objects: use one for each bound. nil outside of
	// a server.
	Serialize func(ctx context.Context, sequence meta.Key) error

	// State keeps values of plugins from one pass to the next, each under a key of the plugin's own; nil at first.
	State map[any]any
}

// After has f called once, when this attempt at the write has ended. A plugin that counted something for the
// object, or reserved it, confirms that or gives it back. written reports whether the object was stored. It is false
// for a dry run, for a connection, and after a conflict with another write, when the whole chain runs again with a
// new Request. If certain is false, the store has not answered: the object may be stored, now or later.
func (r *Request) After(f func(written, certain bool)) { r.after = append(r.after, f) }

// Ended calls the functions given to After in reverse order. It is for the code that makes requests.
func (r *Request) Ended(written, certain bool) {
	for _, f := range slices.Backward(r.after) {
		f(written, certain)
	}
	r.after = nil
}

// Precondition is a record that the decision about a write depends on, such as a namespace that must not be
// terminating. If any server over the store has changed or deleted it when the write is committed, and the decision
// does not hold any more, nothing is written, and the whole chain runs again with a new Request. Each precondition
// counts towards storage.CommitLength.
type Precondition struct {
	// Resource and Object are the object as the plugin read it.
	Resource meta.GroupResource
	Object   *meta.Object

	// Holds reports whether the decision is the same with the object as it is now; its uid has not changed. nil:
	// the decision holds with the object as it was read only. Set it for an object that changes often, or that a
	// webhook changes when it is called: otherwise the write may never be committed.
	Holds func(now *meta.Object) bool

	// Fence replaces Object: the write is committed only if the fence of the request's namespace still has the
	// revision that PluginContext.Accounting returned.
	Fence *storage.Revision
}

// Representations convert the objects of a request to the representations that callers see: any version of the resource, and
// for a sub-resource with a body of its own, such as scale, that body.
type Representations interface {
	// Kind returns the kind that callers of a version see; false: there is no such version.
	Kind(version meta.GroupVersion) (meta.GroupVersionKind, bool)

	// Show returns Object or Old in a version. The result must not be changed.
	Show(ctx context.Context, obj *meta.Object, version meta.GroupVersion) (*meta.Object, error)

	// Merge returns shown, the object in a version, merged with patch as server-side apply merges: items of lists
	// by their keys. patch has neither apiVersion nor kind. The error names the fields that the version does not
	// have, and values that would be replaced as a whole, such as an atomic list. shown is not changed.
	Merge(shown *meta.Object, patch map[string]any, version meta.GroupVersion) (*meta.Object, error)

	// Take sets Object to changed, which was made of shown, the object in a version. It fills in defaults and keeps
	// the fields that only the server writes. It drops fields that the version does not have, and returns their
	// paths for a kind that is a Go type; unknown fields of a definition are pruned, as in a body. After an error,
	// which may be a *meta.Status for the caller, Object is unchanged.
	Take(ctx context.Context, r *Request, shown, changed *meta.Object, version meta.GroupVersion) (dropped []string, err error)
}

// Reinvoke has the mutating phase run once more, from the first plugin on, because the plugins before this one have
// to see its changes, as those of a webhook. There are at most two passes; in the second one Reinvoke does nothing.
// So a second call of Mutate for the same object must not repeat its changes.
func (r *Request) Reinvoke() { r.reinvoke = true }
