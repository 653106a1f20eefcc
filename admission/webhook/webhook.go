// Package webhook has the admission plugins that call the webhooks of MutatingWebhookConfigurations and
// ValidatingWebhookConfigurations.
//
// source.go compiles the configurations once. For a request, match.go selects the webhooks and the version of
// the resource in which each sees it, review.go encodes the AdmissionReview and decodes the response,
// internal/webhookclient sends it. mutate.go calls webhooks sequentially, validate.go concurrently.
package webhook

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/webhookclient"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Config is the configuration of either plugin.
type Config struct {
	// KubeConfigFile is the absolute path of a kubeconfig file with users that are the credentials for webhooks.
	// The name of a user is the host of the webhook, or name.namespace.svc for a service, with :port if the
	// port is not 443. *.namespace.svc matches all services of a namespace, and * all webhooks. If empty,
	// webhooks are called without credentials.
	KubeConfigFile string `json:"kubeConfigFile,omitempty"`
}

// configKinds returns the kinds of a configuration file for Config.
func configKinds() []meta.GroupVersionKind {
	return []meta.GroupVersionKind{
		{Group: wellknown.GroupServerConfig, Version: "v1", Kind: "WebhookAdmissionConfiguration"},
		{Group: wellknown.GroupServerAlpha, Version: "v1alpha1", Kind: "WebhookAdmission"},
	}
}

// Mutating returns the plugin MutatingAdmissionWebhook. It calls the webhooks sequentially, by the names of their
// configurations and, within a configuration, in the order of its list. Each webhook sees the changes of the webhooks
// before it. If a webhook changes the object, the mutating phase runs once more, and the webhooks with
// reinvocationPolicy IfNeeded that did not see the change are called again.
func Mutating() admission.Plugin {
	return admission.Plugin{
		Name: "MutatingAdmissionWebhook", Config: Config{}, ConfigKinds: configKinds(),
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			w, err := open(env, "mutatingwebhookconfigurations", mutating)
			if err != nil {
				return err
			}
			p.Mutate, p.Close = w.mutate, w.close
			return nil
		},
	}
}

// Validating returns the plugin ValidatingAdmissionWebhook. It calls the webhooks concurrently. If several webhooks
// refuse the request, the caller gets the refusal of the webhook that is first in the order of Mutating.
func Validating() admission.Plugin {
	return admission.Plugin{
		Name: "ValidatingAdmissionWebhook", Config: Config{}, ConfigKinds: configKinds(),
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			w, err := open(env, "validatingwebhookconfigurations", validating)
			if err != nil {
				return err
			}
			p.Validate, p.Close = w.validate, w.close
			return nil
		},
	}
}

// webhooks is the state of a plugin in a server. Its methods are safe for concurrent use.
type webhooks struct {
	names  names.Profile
	client client.Client
	has    func(meta.GroupResource) *registry.Type
	log    *slog.Logger
	counts *counts

	expressions func() (*cel.RequestEnv, error) // of matchConditions, created on first use

	source meta.GroupResource // the resource of the configurations
	review string             // wire group of AdmissionReview
	dialer webhookclient.Dialer
	index  *client.Index[table]
	list   atomic.Pointer[[]*hook] // the webhooks in index, in calling order; never nil
}

func open(env admission.PluginContext, plural, sort string) (*webhooks, error) {
	credentials := &kubeconfig.Config{}
	if config, ok := env.Config.(Config); ok && config.KubeConfigFile != "" {
		if !filepath.IsAbs(config.KubeConfigFile) { // a relative path has no obvious base directory
			return nil, fmt.Errorf("kubeConfigFile: Invalid value: %q: must be an absolute file path", config.KubeConfigFile)
		}
		var err error
		if credentials, err = kubeconfig.Load(config.KubeConfigFile); err != nil {
			return nil, err
		}
	}
	counts, err := newCounts(env.Metrics, sort)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	log := env.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	source := meta.GroupResource{Group: env.Names.Group(wellknown.GroupRegistration), Resource: plural}
	w := &webhooks{
		names: env.Names, client: env.Client, has: env.Type, log: log, counts: counts,
		expressions: sync.OnceValues(func() (*cel.RequestEnv, error) {
			return cel.NewRequestEnv(env.Names, cel.Sees{Asks: true})
		}),
		source: source, review: env.Names.Group(wellknown.GroupAdmission),
		dialer: webhookclient.Dialer{Config: credentials, Services: env.Services, Agent: env.Names.Wire(wellknown.ServerManager) + "-admission"},
	}
	w.index = client.NewIndex(env.Client, []meta.GroupResource{source},
		func() table { return table{} },
		func(t table, e client.Event) { t.put(e.Key.Name, w.compile(e.Object)) })
	w.index.Publish(func(t table) { w.show(t.list()) })
	w.list.Store(new([]*hook))
	metrics.For(env.Metrics).Before(func() { w.hooks() })
	return w, nil
}

func (w *webhooks) close() {
	w.index.Close()
	w.show(nil)
}

// hooks returns the webhooks in calling order, including the webhooks of every configuration whose write was
// acknowledged before the call. It takes no lock if no configuration changed.
func (w *webhooks) hooks() []*hook {
	if w.has(w.source) == nil {
		return nil
	}
	w.index.Update()
	return *w.list.Load()
}
