// Package admission is the stage between authorization and storage: plugins that
// change or refuse what is about to be written.
//
// A plugin is one value in one file: a name, the requests that concern it as data,
// and a function for one or both phases.
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
//					return errors.New("no lamps in the attic") // 403 with this text
//				}
//				return nil
//			},
//		}
//	}
//
//	b.Admission = append(b.Admission, noAttic()) // of a server.Builder
//
// What a plugin needs of its server (objects, the authorizer, the names on the wire) it
// finds in an [Env], in [Request].Server; what it prepares once, such as its
// configuration, it prepares in its Setup, which gets one too. The plugins that every
// server has are the table of package admission/plugins.
//
// A [Chain] is what a table becomes for one server: first Mutate of every plugin in
// the order of the table, then, after the object was validated, Validate of every
// plugin in the same order.
package admission

import (
	"context"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Operation is the kind of a write.
type Operation string

// The operations. Connect is a request to a sub-resource that connects, such as
// exec; a sub-resource that answers a body, such as token, is created.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Request is one write under admission. A Mutate function may change Object in
// place; nothing else may be changed.
type Request struct {
	Operation   Operation
	Kind        meta.GroupVersionKind // of Object: of a kind with conversions the hub's
	Resource    meta.Resource         // with Kind's version
	Type        *registry.Type        // of Resource, with all its versions
	Subresource string
	Namespace   string
	Name        string // on create as the caller sent it in Mutate, so empty if it is generated, and as stored in Validate
	User        *auth.User
	Object      *meta.Object // nil on delete; the options of a connection
	Old         *meta.Object // nil on create and connect; must not be changed
	Verb        string       // of the caller's request: create, update, patch or delete; empty on connect
	Options     *meta.Object // CreateOptions, UpdateOptions or DeleteOptions, as the operation is; nil on connect
	DryRun      bool

	// RequestKind and RequestResource are those that the caller spoke of.
	RequestKind     meta.GroupVersionKind
	RequestResource meta.Resource

	// Forms are how callers see Object and Old; nil: as they are.
	Forms Forms

	// Warn sends a warning to the caller.
	Warn func(text string)
	// Annotate records a key and value in the audit event.
	Annotate func(key, value string)
	// AnnotateExternal is Annotate with what somebody outside says, such as a webhook. It
	// takes no room from what the server says; false: there is none left for it. The room
	// is that of the caller's request, however often and about how many objects admission
	// is asked.
	AnnotateExternal func(key, value string) bool

	// Server is what plugins may use of their server.
	Server *Env

	// Attempt is how often the same request was admitted before, in vain: another write
	// came between, or a name that was made up is taken. A refusal does not count: one
	// that rests on what was not stored in the end is not told, and asked for once more.
	Attempt int

	// Pass is 0, and 1 while Mutate runs again, see Again.
	Pass  int
	again bool
	after []func(committed bool)

	// Bases are what the decision rests on, for plugins to add to.
	Bases []Base

	// Fence is the fence of the namespace that the decision rests on, as Env.Fence had it; nil:
	// it rests on none. If it was raised before the write is stored, nothing is written, and the
	// whole chain is asked once more with a new Request.
	Fence *storage.Revision

	// Serialize makes the write the next one of a sequence, of a namespace or of the cluster,
	// that plugins name. After it returns, Server shows all writes of the sequence that any
	// server over the store committed, and no other one is committed before this write: if one
	// is, nothing is written, and the whole chain is asked once more with a new Request. So a
	// plugin that sums objects with Server.List, and is asked about every write that raises the
	// sum, also by sub-resources such as scale and status, never lets the sum exceed its bound. Call it first, in Validate; writes that
	// cannot break the rule need not be in the sequence. Writes of one sequence are committed one
	// at a time, and the name of a sequence is never deleted as long as its namespace holds
	// objects: use one sequence for each bound. nil outside of a server.
	Serialize func(ctx context.Context, sequence meta.Key) error

	// Uncertain says, when the attempt has ended, that nobody knows whether the object was
	// written, or will be yet: the store has not answered.
	Uncertain bool

	// Kept is what plugins keep from one pass to the next, each by a key of its own;
	// nil at first.
	Kept map[any]any
}

// After has f called once when this attempt at the write has ended, and told whether the
// object was written: what a plugin counted or took for it is confirmed or given back
// there. Nothing is written by a dry run, by a connection, and where another write came
// between, after which the whole chain is asked once more with a new Request. false may also
// mean that nobody knows, see Uncertain.
func (r *Request) After(f func(committed bool)) { r.after = append(r.after, f) }

// Ended is for those who make requests: it calls what After was given, in reverse order.
func (r *Request) Ended(committed bool) {
	for _, f := range slices.Backward(r.after) {
		f(committed)
	}
	r.after = nil
}

// Base is an object that the decision about a write rests on, such as a namespace that stays.
// If it has changed or is gone when the write is stored, by whichever server over the store,
// and the decision does not hold, nothing is written, and the whole chain is asked once more
// with a new Request. Few objects are worth that: each counts towards storage.CommitLength.
type Base struct {
	Resource meta.GroupResource
	Object   *meta.Object // as it was read

	// Holds reports whether the decision is the same with the object as it is now, which has
	// the same uid; nil: it is with no other than the one that was read. Of what others, or
	// those who are asked, change all the time nothing may ever be stored without it.
	Holds func(now *meta.Object) bool
}

// Forms are how callers see the objects of a request: in any version of its resource,
// and through a sub-resource with a body of its own, such as scale, as that body.
type Forms interface {
	// Kind returns what callers of a version see; false: there is no such version.
	Kind(version meta.GroupVersion) (meta.GroupVersionKind, bool)

	// Show returns Object or Old as callers of a version see it. The result must not
	// be changed.
	Show(ctx context.Context, obj *meta.Object, version meta.GroupVersion) (*meta.Object, error)

	// Merge returns shown, the object as callers of a version see it, with the fields of
	// patch, which has no apiVersion and no kind, as server-side apply merges them: items of
	// lists by their keys. The error says which fields the version does not have, and what
	// would be replaced whole, such as an atomic list. Nothing is changed.
	Merge(shown *meta.Object, patch map[string]any, version meta.GroupVersion) (*meta.Object, error)

	// Take makes Object what changed says, which is what somebody made of shown, the
	// object as callers of that version see it. Fields that the version does not have are
	// dropped, defaults filled in, and what only the server writes stays as it is. The paths
	// of what was dropped are told of a kind that is a Go type; what the schema of a
	// definition does not have is pruned, as from a body. An error says what is wrong with
	// changed, a *meta.Status as callers are told; Object is as it was.
	Take(ctx context.Context, r *Request, shown, changed *meta.Object, version meta.GroupVersion) (dropped []string, err error)
}

// Again asks that the mutating phase runs once more when it is through, from the
// first plugin on: this one made changes that those before it have to see, as a
// webhook does. There are two passes at most; in the second one it does nothing.
// So Mutate of every plugin must leave alone what it has done already.
func (r *Request) Again() { r.again = true }
