// Package admission runs plugins that change or refuse a write after it is authorized and before it is stored.
//
// A plugin is a value with a name, rules that select requests, and a function for at least one phase: Mutate, which
// may change the object, or Validate.
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
// [Request].Server. Its Setup function also gets the PluginContext, and prepares state that requests share, such as
// the parsed configuration. Package admission/plugins has the built-in plugins.
//
// A [Chain] runs the plugins of a server: first Mutate of every plugin in the order of the table, then, after the
// object was validated, Validate of every plugin in the same order.
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

// The operations. Connect is a request to a subresource that opens a connection, such as exec. A request to a
// subresource that returns an object, such as token, is Create.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Request is a write during admission. Mutate functions may change Object in place, and must not change the other
// objects.
type Request struct {
	Operation   Operation
	Kind        meta.GroupVersionKind     // of Object: the hub version of a kind with conversions
	Resource    meta.GroupVersionResource // in the version of Kind
	Type        *registry.Type            // of Resource, with all its versions
	Subresource string
	Namespace   string
	Name        string // on create: in Mutate as in the request, empty if it is to be generated; in Validate as stored
	User        *auth.User
	Object      *meta.Object // nil on delete; the options on connect
	Old         *meta.Object // nil on create and connect; must not be changed
	Verb        string       // of the caller's request: create, update, patch or delete; empty on connect
	Options     *meta.Object // CreateOptions, UpdateOptions or DeleteOptions, by Operation; nil on connect
	DryRun      bool

	// RequestKind and RequestResource are the kind and resource in the version of the caller's request.
	RequestKind     meta.GroupVersionKind
	RequestResource meta.GroupVersionResource

	// Representations converts Object and Old to other versions. nil: all versions of the kind are equal.
	Representations Representations

	// Warn sends a warning to the caller.
	Warn func(text string)
	// Annotate adds an annotation to the audit event.
	Annotate func(key, value string)
	// AnnotateExternal is like Annotate for a value from outside the server, such as from a webhook. The sum of these
	// values has its own limit, over all attempts of a caller's request. AnnotateExternal returns false if the value
	// would exceed the limit.
	AnnotateExternal func(key, value string) bool

	// Server is the context of the plugins of this server.
	Server *PluginContext

	// Attempt is the number of earlier attempts of this write that were admitted but not stored, because of a conflict
	// with another write or because the generated name existed. Attempts that admission refused do not count.
	Attempt int

	// Pass is 0 during the first mutating pass, and 1 while Mutate runs again, see Reinvoke.
	Pass     int
	reinvoke bool
	after    []func(written, certain bool)

	// Preconditions are conditions of the commit of this write. Plugins append to the list.
	Preconditions []Precondition

	// Serialize orders this write after all committed writes of a sequence, and before all others. sequence is a name
	// that the plugin chooses, in a namespace or cluster-wide. When Serialize returns, Server has all writes of the
	// sequence that any server over the store has committed. If another write of the sequence is committed before this
	// write, this write is not stored, and the whole chain runs again with a new Request.
	//
	// A plugin can therefore enforce a bound on a sum of objects, if it calls Serialize first in Validate, then sums the
	// objects with Server.List, and runs for every write that can raise the sum, including subresources such as scale
	// and status. Other writes need not call it. Writes of a sequence are committed one at a time. A sequence is
	// stored as long as its namespace has objects; use a sequence for each bound, not for each object. Serialize is nil
	// outside a server.
	Serialize func(ctx context.Context, sequence meta.Key) error

	// State keeps values of plugins from a mutating pass to the next, by keys that only the plugin has, such as a pointer
	// to its own state. It is nil until a plugin sets it.
	State map[any]any
}

// After registers a function that is called once, when this attempt of the write has ended. A plugin that has reserved
// something for the object confirms or releases the reservation in f. written reports whether the object was stored. It
// is false for a dry run, for a connection, and after a conflict with another write; then the whole chain runs again
// with a new Request. If certain is false, the store did not answer, and the object may be stored now or later.
func (r *Request) After(f func(written, certain bool)) { r.after = append(r.after, f) }

// Ended calls the functions registered with After in reverse order; a second call does nothing. The code that creates
// the Request calls it.
func (r *Request) Ended(written, certain bool) {
	for _, f := range slices.Backward(r.after) {
		f(written, certain)
	}
	r.after = nil
}

// Precondition is an object on which the decision about a write depends, such as a namespace that must not be
// terminating. If any server over the store has changed or deleted the object when the write is committed, and Holds
// does not accept the new object, the write is not stored, and the whole chain runs again with a new Request. Each
// precondition counts towards storage.CommitLength.
type Precondition struct {
	// Resource and Object are the object as the plugin read it.
	Resource meta.GroupResource
	Object   *meta.Object

	// Holds reports whether the decision is still valid for the changed object now, which has the same uid. nil: every
	// change invalidates the decision. Set Holds for an object that changes often, or that a webhook changes during
	// its call; otherwise the write may never be committed.
	Holds func(now *meta.Object) bool

	// Fence, if set, replaces Object: the write is committed only if the fence of the request's namespace still has
	// this revision, which PluginContext.Accounting returned.
	Fence *storage.Revision
}

// Representations converts the objects of a request to the versions of the resource. For a subresource with its own kind, such
// as scale, it converts that kind.
type Representations interface {
	// Kind returns the kind in a version, and false if the version does not exist.
	Kind(version meta.GroupVersion) (meta.GroupVersionKind, bool)

	// Show returns Object or Old in a version. The result must not be changed.
	Show(ctx context.Context, obj *meta.Object, version meta.GroupVersion) (*meta.Object, error)

	// Merge returns shown, the object in a version, merged with patch as server-side apply merges: items of lists
	// by their keys. patch has neither apiVersion nor kind. The error names the fields that the version does not
	// have, and values that would be replaced as a whole, such as an atomic list. shown is not changed.
	Merge(shown *meta.Object, patch map[string]any, version meta.GroupVersion) (*meta.Object, error)

	// Take sets r.Object to changed, a modified copy of shown, both in a version. It sets defaults and keeps the
	// fields that only the server writes. It drops fields that the version does not have. For a kind with a Go type it
	// returns their paths; for a CustomResourceDefinition they are pruned, as in a request body. After an error, which
	// may be a *meta.Status for the caller, r.Object is unchanged.
	Take(ctx context.Context, r *Request, shown, changed *meta.Object, version meta.GroupVersion) (dropped []string, err error)
}

// Reinvoke requests a second pass of the mutating phase, so that all plugins see the changes of this plugin, such as
// the changes of a webhook. It does nothing in the second pass. Because of it, a second call of Mutate for the same
// object must not repeat the changes.
func (r *Request) Reinvoke() { r.reinvoke = true }
