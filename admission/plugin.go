package admission

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Plugin is one step of admission: a row of a table. It is shared by servers and
// holds nothing of any of them; what does is made by Setup.
type Plugin struct {
	Name    string  // by which it is enabled, disabled and configured
	Default Default // whether it runs if nobody names it

	// Deprecated is why nobody should use the plugin any more; a server that runs it says so
	// in its log. Empty: it is not.
	Deprecated string

	// Rules say which requests concern the plugin: those that match one of them.
	// None is all. Groups go by their spec names. A word that no request can have
	// fails the Build of a server.
	Rules []Rule

	// Config is the configuration of a server that gives none. What one gives must
	// have the same type. nil: there is nothing to configure.
	Config any

	// ConfigKinds are what a file says that Config is, by spec groups, the newest first;
	// none: it says nothing. See LoadConfig.
	ConfigKinds []meta.GroupVersionKind

	// Mutate may change the object of a request, Validate sees what became of it. A
	// nil one skips its phase. An error that is a *meta.Status goes to the caller as it
	// is; any other becomes 403 Forbidden with its text, but one of a store that cannot
	// be read or of time that is over. Both are called by many
	// goroutines at once. One that runs has one of them at least.
	Mutate   func(ctx context.Context, r *Request) error
	Validate func(ctx context.Context, r *Request) error

	// Setup completes a copy of the plugin for one server: it sets Mutate and
	// Validate to functions over what env holds. nil: they stand there already.
	Setup func(p *Plugin, env Env) error

	// Close frees what Setup made, once no request runs any more. nil: nothing.
	Close func()
}

// Default says whether a plugin runs.
type Default int

// The defaults.
const (
	On       Default = iota // unless it is disabled
	Off                     // only if it is enabled
	Required                // always: it cannot be disabled
)

// Env is what a plugin may use of its server.
type Env struct {
	Names      names.Profile
	Authorizer auth.Authorizer

	// Client reads and writes objects as the server itself, and gives a feed of
	// changes. It works from the first request on, not in Setup.
	Client client.Client

	// Features are those of the server.
	Features *features.Set

	// Rules are those of the server, for built-in plugins.
	Rules compat.Rules

	// Admitted is a Client whose updates nobody admits: for what a plugin notes of writes that
	// it lets pass, in a status such as that of a quota, and which is part of them. A webhook
	// for that status could hold up every one of these writes, or wait for one itself. Get and
	// List show the newest state, where those of Client, with the context of a request, may
	// show the one that the request found when it came. nil: Client.
	Admitted client.Client

	// Fence returns the revision at which the fence of a namespace was raised last, by whichever
	// server over the store, 0 if it never was. RaiseFence raises it: no write is stored from
	// then on that rests on the fence as it was (Request.Fence), and Client shows those that
	// were. So a plugin that counts objects after that knows that none comes which it let pass
	// before, here or elsewhere. nil: there are no fences.
	Fence, RaiseFence func(ctx context.Context, namespace string) (storage.Revision, error)

	// Type returns the resource type that is served now under a wire group and
	// plural, or nil.
	Type func(meta.GroupResource) *registry.Type

	// Schema returns the schema of a kind in a version that is served now, or nil. It must
	// not be changed.
	Schema func(meta.GroupVersionKind) *schema.Schema

	// Convert returns an object of a type as callers of another of its versions see it. The
	// result must not be changed.
	Convert func(ctx context.Context, obj *meta.Object, version meta.GroupVersion) (*meta.Object, error)

	// Runs reports whether the server was given a controller of that name, and runs it.
	Runs func(controller string) bool

	// Control has the server run a controller beside its own. It is for Setup. ask makes a
	// key due after some time that no change does: asked for often it is due once. Before the
	// controller runs it does nothing. nil: nobody runs any.
	Control func(client.Controller) (ask func(key string, after time.Duration))

	// Services finds the endpoints of services, for plugins that call webhooks.
	Services services.Resolver

	// Metrics is where plugins register theirs; two may share one.
	Metrics prometheus.Registerer

	Log    *slog.Logger
	Config any // of the type of Plugin.Config
}

// Options choose plugins by name.
type Options struct {
	Enable  []string // besides those that run by default
	Disable []string

	// Config is the configuration of plugins, by their names.
	Config map[string]any
}

// Wire returns a name of the spec as it is on the wire.
func (e *Env) Wire(spec string) string { return e.Names.Wire(spec) }

// Serves reports whether a resource is served, by the spec's name of its group.
func (e *Env) Serves(group, plural string) bool {
	return e.Type(meta.GroupResource{Group: e.Names.Group(group), Resource: plural}) != nil
}

// List returns the objects of a resource, by the spec's name of its group, in a namespace,
// or in all of them if that is empty. There are none of a resource that is not served.
func (e *Env) List(ctx context.Context, group, plural, namespace string) ([]*meta.Object, error) {
	if !e.Serves(group, plural) {
		return nil, nil
	}
	r := meta.GroupResource{Group: e.Names.Group(group), Resource: plural}
	return e.Client.List(ctx, r, namespace)
}

// Find returns an object of a resource, by the spec's name of its group, or nil if there
// is none or the resource is not served.
func (e *Env) Find(ctx context.Context, group, plural string, key meta.Key) (*meta.Object, error) {
	if !e.Serves(group, plural) {
		return nil, nil
	}
	r := meta.GroupResource{Group: e.Names.Group(group), Resource: plural}
	obj, err := e.Client.Get(ctx, r, key)
	if meta.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}
