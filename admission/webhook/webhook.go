// Package webhook holds the two admission plugins that ask webhooks, those that
// MutatingWebhookConfigurations and ValidatingWebhookConfigurations name.
//
// The way of a request: source.go has the webhooks, compiled once from the
// configurations, match.go says which of them it concerns and in which version of its
// resource, review.go makes the AdmissionReview and reads the answer, internal/webhookclient
// sends it, and mutate.go and validate.go are the two orders in which that is done.
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
	"orch.io/controlplane/registry"
)

// Config is the configuration of either plugin.
type Config struct {
	// KubeConfigFile is the absolute path of a client configuration file whose users are
	// the credentials for webhooks: each is named by the host of a webhook,
	// name.namespace.svc of a service, with :port if that is not 443; *.namespace.svc is
	// all below, and * every other. Empty: webhooks are called without credentials.
	KubeConfigFile string `json:"kubeConfigFile,omitempty"`
}

// configKinds are what files say that Config is.
func configKinds() []meta.GroupVersionKind {
	return []meta.GroupVersionKind{
		{Group: names.GroupServerConfig, Version: "v1", Kind: "WebhookAdmissionConfiguration"},
		{Group: names.GroupServerAlpha, Version: "v1alpha1", Kind: "WebhookAdmission"},
	}
}

// Mutating returns the plugin MutatingAdmissionWebhook. It calls its webhooks one after
// the other, by the names of the configurations and then as they stand in one, and
// each sees what the one before made of the object. When one changed it, all plugins
// that change objects run once more, and of the webhooks those that ask for that.
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

// Validating returns the plugin ValidatingAdmissionWebhook. It calls its webhooks at the
// same time; of those that refuse, the first one in the order of Mutating answers.
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

// webhooks are those of one plugin of a server.
type webhooks struct {
	names  names.Profile
	client client.Client
	has    func(meta.GroupResource) *registry.Type
	log    *slog.Logger
	counts *counts

	expressions func() (*cel.RequestEnv, error) // of matchConditions, made with the first

	source meta.GroupResource // of the configurations
	review string             // the wire group of AdmissionReview
	dialer webhookclient.Dialer
	index  *client.Index[table]
	list   atomic.Pointer[[]*hook] // of index, in order; never nil
}

func open(env admission.PluginContext, plural, sort string) (*webhooks, error) {
	credentials := &kubeconfig.Config{}
	if config, ok := env.Config.(Config); ok && config.KubeConfigFile != "" {
		if !filepath.IsAbs(config.KubeConfigFile) { // it is relative to nothing that everybody would expect
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
	source := meta.GroupResource{Group: env.Names.Group(names.GroupRegistration), Resource: plural}
	w := &webhooks{
		names: env.Names, client: env.Client, has: env.Type, log: log, counts: counts,
		expressions: sync.OnceValues(func() (*cel.RequestEnv, error) {
			return cel.NewRequestEnv(env.Names, cel.Sees{Asks: true})
		}),
		source: source, review: env.Names.Group(names.GroupAdmission),
		dialer: webhookclient.Dialer{Config: credentials, Services: env.Services, Agent: env.Names.Wire(names.ServerManager) + "-admission"},
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

// hooks returns the webhooks in their order, as of every write that was acknowledged. It
// takes no lock if no configuration changed.
func (w *webhooks) hooks() []*hook {
	if w.has(w.source) == nil {
		return nil
	}
	w.index.Update()
	return *w.list.Load()
}
