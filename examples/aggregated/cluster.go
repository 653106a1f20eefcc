package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/clientcert"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// trust believes the cluster's front proxy: who that is and in which headers it names
// callers, the cluster tells in a ConfigMap, also when it changes.
type trust struct {
	settings *client.Objects[core.ConfigMap] // that one alone
	log      *slog.Logger
	proxy    atomic.Pointer[clientcert.RequestHeader] // as of the last load
}

func newTrust(conn client.Conn) *trust {
	kind := registry.Of(registry.Definition[core.ConfigMap]{Version: "v1"})
	maps := client.Of[core.ConfigMap](conn, kind).In(names.Kubernetes.SystemNamespace("system"))
	return &trust{settings: maps.WithFields("metadata.name=" + wellknown.ReaderConfigMap), log: conn.Log}
}

// Authenticate implements auth.Authenticator.
func (t *trust) Authenticate(r *http.Request) (*auth.User, error) {
	return t.proxy.Load().Authenticate(r)
}

// Strip takes what the proxy says out of a request that goes on to another server.
func (t *trust) Strip(h http.Header) { t.proxy.Load().Strip(h) }

// follow loads the settings whenever they change.
func (t *trust) follow(ctx context.Context) error {
	c, err := client.New(t.settings)
	if err != nil {
		return err
	}
	return client.Run(ctx, c, client.RunOptions{Log: t.log}, client.Controller{
		Name:     "trust",
		MapEvent: func(e client.Event) []string { return []string{e.Key.Name} },
		Reconcile: func(ctx context.Context, _ client.Client, _ string) (time.Duration, error) {
			return 0, t.load(ctx)
		},
	})
}

// load reads the settings. When they are missing or broken, those from before hold.
func (t *trust) load(ctx context.Context) error {
	m, err := t.settings.Get(ctx, wellknown.ReaderConfigMap)
	if err != nil {
		return err
	}
	roots, err := clientcert.ParseBundle([]byte(m.Data["requestheader-client-ca-file"]))
	if err != nil {
		return fmt.Errorf("the cluster tells no authority of its front proxy: %w", err)
	}
	c := clientcert.RequestHeaderConfig{Roots: roots}
	for key, list := range map[string]*[]string{
		"requestheader-allowed-names": &c.AllowedNames, "requestheader-username-headers": &c.UserHeaders, "requestheader-uid-headers": &c.UIDHeaders,
		"requestheader-group-headers": &c.GroupHeaders, "requestheader-extra-headers-prefix": &c.ExtraPrefixes,
	} {
		if text := m.Data[key]; text != "" {
			if err := json.Unmarshal([]byte(text), list); err != nil {
				return fmt.Errorf("%s of the cluster: %w", key, err)
			}
		}
	}
	proxy, err := clientcert.NewRequestHeader(c)
	if err == nil {
		t.proxy.Store(proxy)
	}
	return err
}

// namespaces refuses objects in namespaces that the cluster does not have, or no longer: it
// would not find them when it empties one.
func namespaces(conn client.Conn) admission.Plugin {
	kind := registry.Of(registry.Definition[core.Namespace]{Version: "v1", Scope: registry.Cluster})
	all := client.Of[core.Namespace](conn, kind)
	return admission.Plugin{
		Name:  "ClusterNamespaces",
		Rules: []admission.Rule{{Operations: []admission.Operation{admission.Create}, Groups: []string{group}, Resources: []string{"berths"}}},
		Validate: func(ctx context.Context, r *admission.Request) error {
			n, err := all.Get(ctx, r.Namespace)
			if err == nil && n.DeletionTimestamp != nil {
				err = fmt.Errorf("namespace %s is being deleted", r.Namespace)
			}
			return err
		},
	}
}
