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

// trust authenticates requests of the cluster's front proxy. The cluster publishes in a ConfigMap how
// to verify the proxy and in which headers it passes the user; trust follows changes of the ConfigMap.
type trust struct {
	settings *client.Objects[core.ConfigMap] // only that ConfigMap
	log      *slog.Logger
	proxy    atomic.Pointer[clientcert.RequestHeader] // set by load
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

// Strip removes the headers of the proxy from a request that is forwarded
// to another server.
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

// load reads the settings. If they are missing or invalid, it returns an error and the previous
// settings stay in effect.
func (t *trust) load(ctx context.Context) error {
	m, err := t.settings.Get(ctx, wellknown.ReaderConfigMap)
	if err != nil {
		return err
	}
	roots, err := clientcert.ParseBundle([]byte(m.Data["requestheader-client-ca-file"]))
	if err != nil {
		return fmt.Errorf("the cluster publishes no CA of its front proxy: %w", err)
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

// namespaces rejects objects in namespaces that do not exist in the cluster or are being deleted: the
// cluster would not delete these objects with the namespace.
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
