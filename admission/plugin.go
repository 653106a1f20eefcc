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

// Plugin is one step of admission: a row of a table. Servers share it, so it holds no state of a server; Setup makes
// that.
type Plugin struct {
	Name    string  // by which it is enabled, disabled and configured
	Default Default // whether it runs if no option names it

	// Deprecated is the reason to stop using the plugin; a server that runs the plugin logs it. Empty: none.
	Deprecated string

	// Rules select the requests that the plugin runs for: those that match one of them. None selects all. Groups
	// have their spec names. A word that no request can have fails the Build of a server.
	Rules []Rule

	// Config is the default configuration. A configuration of the server must have the same type. nil: the plugin
	// has none.
	Config any

	// ConfigKinds are the kinds of a configuration file for Config, by spec groups, the newest first; none: it
	// cannot be in a file. See LoadConfig.
	ConfigKinds []meta.GroupVersionKind

	// Mutate may change the object of a request, Validate sees the result. nil skips the phase; a plugin that runs
	// has at least one of them. An error that is a *meta.Status is returned to the caller as it is. Any other error
	// is 403 Forbidden with its text, except that of a store that cannot be read and the end of ctx. Both functions
	// are called by many goroutines at once.
	Mutate   func(ctx context.Context, r *Request) error
	Validate func(ctx context.Context, r *Request) error

	// Setup completes a copy of the plugin for one server: it sets Mutate and Validate to functions that use c.
	// nil: they are set already.
	Setup func(p *Plugin, c PluginContext) error

	// Close releases what Setup made, when no request runs any more. nil: nothing.
	Close func()
}

// Default is whether a plugin runs if no option names it.
type Default int

// The defaults.
const (
	On       Default = iota // it runs unless it is disabled
	Off                     // it runs only if it is enabled
	Required                // it always runs: it cannot be disabled
)

// PluginContext gives a plugin access to its server. It is safe for concurrent use.
type PluginContext struct {
	Names      names.Profile
	Authorizer auth.Authorizer

	// Client reads and writes objects as the server itself, and has a feed of changes. It works from the first
	// request on, not in Setup.
	Client client.Client

	// Features are the feature gates of the server.
	Features *features.Set

	// Rules are the compatibility rules of the server, for built-in plugins.
	Rules compat.Rules

	// Accounting is for plugins that write the sum of what they admit into an object, such as the status of a
	// ResourceQuota, before the admitted writes are committed; nil: there is no server.
	//
	// Updates by this client skip admission: they are part of writes that were admitted, and a webhook for the
	// object could block all of these writes, or wait for one itself. Get and List return the newest state, even
	// with the context of a request, for which PluginContext.Client may return the state when the request came.
	//
	// Fence returns the revision at which the fence of a namespace was last raised by any server over the store, 0
	// if it never was. RaiseFence raises it: no write is stored from then on that has the former fence as a
	// Precondition, and the client returns those that were stored. So a plugin that counts objects after RaiseFence
	// has counted every write that was admitted before it, or that write is never stored.
	Accounting interface {
		client.Client
		Fence(ctx context.Context, namespace string) (storage.Revision, error)
		RaiseFence(ctx context.Context, namespace string) (storage.Revision, error)
	}

	// Type returns the resource type that is served now under a wire group and
	// plural, or nil.
	Type func(meta.GroupResource) *registry.Type

	// Schema returns the schema of a kind in a version that is served now, or nil. It must
	// not be changed.
	Schema func(meta.GroupVersionKind) *schema.Schema

	// Convert returns an object of a type in another of its versions. The result must not be changed.
	Convert func(ctx context.Context, obj *meta.Object, version meta.GroupVersion) (*meta.Object, error)

	// Runs reports whether the server was given a controller of that name, and runs it.
	Runs func(controller string) bool

	// Control has the server run a controller beside its own. Call it in Setup. enqueue makes a key due after a
	// time, once for many calls. It does nothing before the controller runs. nil: no controller can be run.
	Control func(client.Controller) (enqueue func(key string, after time.Duration))

	// Services finds the endpoints of services, for plugins that call webhooks.
	Services services.Resolver

	// Metrics is where plugins register their metrics; two plugins may share one.
	Metrics prometheus.Registerer

	Log    *slog.Logger
	Config any // of the type of Plugin.Config
}

// Options enable, disable and configure plugins by name.
type Options struct {
	Enable  []string // in addition to the plugins that run by default
	Disable []string

	// Config is the configuration of plugins by name. Its type must be that of Plugin.Config.
	Config map[string]any
}

// Wire returns a name of the spec as it is on the wire.
func (c *PluginContext) Wire(spec string) string { return c.Names.Wire(spec) }

// Serves reports whether a resource is served, by the spec's name of its group.
func (c *PluginContext) Serves(group, plural string) bool {
	return c.Type(meta.GroupResource{Group: c.Names.Group(group), Resource: plural}) != nil
}

// List returns the objects of a resource, by the spec's name of its group, in a namespace,
// or in all namespaces if that is empty. The list is empty if the resource is not served.
func (c *PluginContext) List(ctx context.Context, group, plural, namespace string) ([]*meta.Object, error) {
	if !c.Serves(group, plural) {
		return nil, nil
	}
	r := meta.GroupResource{Group: c.Names.Group(group), Resource: plural}
	return c.Client.List(ctx, r, namespace)
}

// Find returns an object of a resource, by the spec's name of its group, or nil if it does
// not exist or the resource is not served.
func (c *PluginContext) Find(ctx context.Context, group, plural string, key meta.Key) (*meta.Object, error) {
	if !c.Serves(group, plural) {
		return nil, nil
	}
	r := meta.GroupResource{Group: c.Names.Group(group), Resource: plural}
	obj, err := c.Client.Get(ctx, r, key)
	if meta.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}
