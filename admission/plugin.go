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

// Plugin is a step of admission. Several servers may use the same Plugin, so it has no state of a server; Setup creates
// that state.
type Plugin struct {
	Name    string  // identifies the plugin in options and configuration files
	Default Default // whether it runs if no option names it

	// Deprecated is the reason to stop using the plugin, which a server that runs the plugin logs. Empty: the plugin
	// is not deprecated.
	Deprecated string

	// Rules select the requests for which the plugin runs. A request is selected if it matches a rule, or if there
	// are no rules. Groups are spec names. A word that no request can match is an error of New;
	// a group or resource that is not served is none, because a CustomResourceDefinition may add it.
	Rules []Rule

	// Config is the default configuration. A configuration in the server's options must have the same type. nil: the
	// plugin cannot be configured.
	Config any

	// ConfigKinds are the kinds of configuration files for Config, by spec groups, the newest first. Empty: the plugin
	// cannot be configured by a file. See LoadConfig.
	ConfigKinds []meta.GroupVersionKind

	// Mutate may change the object of a request; fields that the kind does not have are dropped from the result, and so
	// is the status of a kind with the subresource status. Validate gets the result of all Mutate functions and must
	// not change it: its changes would be stored without validation. If a function is
	// nil, the plugin skips the phase; at least one must be set after Setup. A *meta.Status error is returned to the
	// caller unchanged. Any other error becomes 403 Forbidden with its text, except errors of an unreadable store and
	// of ctx. Both functions must be safe for concurrent use.
	Mutate   func(ctx context.Context, r *Request) error
	Validate func(ctx context.Context, r *Request) error

	// Setup completes a copy of the plugin for a server: it sets Mutate, Validate and Close to functions that use c.
	// nil: the plugin needs no setup.
	Setup func(p *Plugin, c PluginContext) error

	// Close releases the resources of Setup. It is called after the last request. It may be nil.
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

	// Client reads and writes objects as the server itself, and has a feed of changes. It must not be used in Setup,
	// only after the server is built.
	Client client.Client

	// Features are the feature gates of the server.
	Features *features.Set

	// Rules are the compatibility rules of the server, for built-in plugins.
	Rules compat.Rules

	// Accounting is for plugins that reserve usage in an object, such as the status of a ResourceQuota, before the
	// admitted writes are committed. It is nil outside a server.
	//
	// Updates by this client skip admission: they are part of writes that were admitted, and a webhook for the
	// object could block all these writes, or deadlock with its own write. Get and List return the latest state, even
	// with the context of a request, for which PluginContext.Client may return the state at the start of the request.
	//
	// Fence returns the revision at which any server over the store last raised the fence of a namespace, or 0 if the
	// fence was never raised. RaiseFence raises the fence. Afterwards, no write with the former fence as a Precondition
	// can be stored, and the client returns all writes that were stored. So if a plugin counts objects after
	// RaiseFence, each write that was admitted before is either counted or never stored.
	Accounting interface {
		client.Client
		Fence(ctx context.Context, namespace string) (storage.Revision, error)
		RaiseFence(ctx context.Context, namespace string) (storage.Revision, error)
	}

	// Type returns the resource type that is currently served under a wire group and plural, or nil.
	Type func(meta.GroupResource) *registry.Type

	// Schema returns the schema of a kind in a version that is currently served, or nil. The caller must not change
	// it.
	Schema func(meta.GroupVersionKind) *schema.Schema

	// Convert returns an object of a type in another of its versions. The result must not be changed.
	Convert func(ctx context.Context, obj *meta.Object, version meta.GroupVersion) (*meta.Object, error)

	// Runs reports whether the server has a controller with the name and runs it.
	Runs func(controller string) bool

	// Control adds a controller to the server. Call it in Setup. enqueue adds a key to the controller's queue after a
	// delay; several calls before that have the effect of a single call. Before the controller runs, enqueue does
	// nothing. Control is nil if the server cannot run controllers.
	Control func(client.Controller) (enqueue func(key string, after time.Duration))

	// Services resolves services to addresses, for plugins that call webhooks.
	Services services.Resolver

	// Metrics is the registry for metrics of plugins; plugins may share a metric.
	Metrics prometheus.Registerer

	Log    *slog.Logger
	Config any // of the type of Plugin.Config
}

// Options enable, disable and configure plugins by name.
type Options struct {
	Enable  []string // in addition to the plugins that run by default
	Disable []string

	// Config is the configuration of plugins by name. Each value must have the type of Plugin.Config.
	Config map[string]any
}

// Wire returns the name on the wire of a spec name.
func (c *PluginContext) Wire(spec string) string { return c.Names.Wire(spec) }

// Serves reports whether a resource is served. group is a spec name.
func (c *PluginContext) Serves(group, plural string) bool {
	return c.Type(meta.GroupResource{Group: c.Names.Group(group), Resource: plural}) != nil
}

// List returns the objects of a resource in a namespace, or in all namespaces if namespace is empty. group is a spec
// name. The list is empty if the resource is not served. The caller must not change the objects.
func (c *PluginContext) List(ctx context.Context, group, plural, namespace string) ([]*meta.Object, error) {
	if !c.Serves(group, plural) {
		return nil, nil
	}
	r := meta.GroupResource{Group: c.Names.Group(group), Resource: plural}
	return c.Client.List(ctx, r, namespace)
}

// Find returns an object, or nil if it does not exist or the resource is not served. group is a spec name. The caller
// must not change the object.
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
