package serviceaccount

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Resources that the controllers watch.
var (
	namespaceType = meta.GroupResource{Resource: "namespaces"}
	accountType   = meta.GroupResource{Resource: "serviceaccounts"}
	secretType    = meta.GroupResource{Resource: "secrets"}
	configMapType = meta.GroupResource{Resource: "configmaps"}
)

// defaultAccount is the name of the service account in every active namespace.
const defaultAccount = "default"

// DefaultAccounts returns a controller that creates the service account "default"
// in every active namespace.
func DefaultAccounts() client.Controller {
	return perNamespace("serviceaccount", accountType, defaultAccount, func(ctx context.Context, c client.Client, namespace string) error {
		obj := meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "ServiceAccount",
			"metadata": map[string]any{"name": defaultAccount, "namespace": namespace}})
		_, err := c.Create(ctx, accountType, obj)
		return err
	})
}

// RootCA returns a controller that maintains a ConfigMap with the server's CA
// certificates in every active namespace. authorities is PEM.
func RootCA(p names.Profile, authorities []byte) client.Controller {
	name := p.Wire(wellknown.RootCAConfigMap)
	return perNamespace("root-ca-cert-publisher", configMapType, name, func(ctx context.Context, c client.Client, namespace string) error {
		data := map[string]any{"ca.crt": string(authorities)}
		_, err := c.Create(ctx, configMapType, meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": name, "namespace": namespace, "annotations": map[string]any{
				p.Wire(wellknown.Description): "CA certificates that verify connections to this server's own addresses.",
			}}, "data": data}))
		if !meta.IsAlreadyExists(err) {
			return err
		}
		_, err = c.Update(ctx, configMapType, meta.Key{Namespace: namespace, Name: name}, "", func(o *meta.Object) error {
			o.Tree()["data"] = data
			return nil
		})
		return err
	})
}

// perNamespace returns a controller that calls ensure for every active namespace,
// when the namespace or the object with the name changes. ensure creates or updates
// the object. The keys of the controller are names of namespaces.
func perNamespace(loop string, r meta.GroupResource, name string, ensure func(ctx context.Context, c client.Client, namespace string) error) client.Controller {
	return client.Controller{
		Name:     loop,
		Types:    []meta.GroupResource{namespaceType, r},
		Identity: true,
		MapEvent: func(c client.Event) []string {
			switch {
			case c.Resource == namespaceType && c.Object != nil:
				return []string{c.Key.Name}
			case c.Resource == r && c.Key.Name == name:
				return []string{c.Key.Namespace}
			}
			return nil
		},
		Reconcile: func(ctx context.Context, c client.Client, namespace string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			ns, err := c.Get(ctx, namespaceType, meta.Key{Name: namespace})
			if meta.IsNotFound(err) || err == nil && ns.Terminating() {
				return 0, nil
			}
			if err == nil {
				err = ensure(ctx, c, namespace)
			}
			if meta.IsAlreadyExists(err) || meta.IsNotFound(err) || namespaceTerminating(err) {
				return 0, nil // the object exists, or a namespace event follows
			}
			return 0, err
		},
	}
}

// namespaceTerminating reports whether a write failed because its namespace is
// terminating.
func namespaceTerminating(err error) bool {
	var s *meta.Status
	return errors.As(err, &s) && s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c meta.StatusCause) bool {
		return c.Reason == meta.CauseNSTerminating
	})
}

// Secrets returns a controller that adds a token, the namespace and the server's CA
// certificates to Secrets of the service account token type. It deletes such a
// Secret if its account was deleted or recreated, or if no account exists a few
// seconds after the Secret was created. authorities is PEM.
func (t *Tokens) Secrets(authorities []byte) client.Controller {
	s := &secrets{tokens: t, authorities: base64.StdEncoding.EncodeToString(authorities), wire: t.config.Names.Wire}
	s.forget()
	return client.Controller{
		Name:     "serviceaccount-token",
		Types:    []meta.GroupResource{secretType, accountType},
		MapEvent: s.mapEvent, Forget: s.forget, Reconcile: s.reconcile,
	}
}

// secrets is the state of the controller. Only mapEvent and forget, which the
// controller calls one after the other, use byAccount; so it needs no lock.
type secrets struct {
	tokens      *Tokens
	authorities string // base64
	wire        func(string) string
	byAccount   map[meta.Key]map[string]bool // account to the names of its token secrets
}

func (s *secrets) forget() { s.byAccount = map[meta.Key]map[string]bool{} }

// mapEvent returns the keys to reconcile after an event: "namespace/secret", and
// "namespace/secret/account" if a secret of the account was deleted.
func (s *secrets) mapEvent(c client.Event) []string {
	ns := c.Key.Namespace + "/"
	if c.Resource == accountType {
		var keys []string
		for name := range maps.Keys(s.byAccount[c.Key]) {
			keys = append(keys, ns+name)
		}
		return keys
	}
	old, account := s.account(c.Old), s.account(c.Object)
	if old != "" && old != account {
		delete(s.byAccount[meta.Key{Namespace: c.Key.Namespace, Name: old}], c.Key.Name)
	}
	var keys []string
	if account != "" {
		k := meta.Key{Namespace: c.Key.Namespace, Name: account}
		if s.byAccount[k] == nil {
			s.byAccount[k] = map[string]bool{}
		}
		s.byAccount[k][c.Key.Name] = true
		keys = append(keys, ns+c.Key.Name)
	}
	if c.Object == nil && old != "" {
		keys = append(keys, ns+c.Key.Name+"/"+old)
	}
	return keys
}

// account returns the name of a token secret's account, or "" if o is nil or no
// token secret.
func (s *secrets) account(o *meta.Object) string {
	if o == nil || o.String("type") != s.wire(wellknown.SecretServiceToken) {
		return ""
	}
	return o.Annotation(s.wire(wellknown.ServiceAccountName))
}

func (s *secrets) reconcile(ctx context.Context, c client.Client, key string) (time.Duration, error) {
	ctx = actor.Take(ctx)
	parts := strings.Split(key, "/")
	k := meta.Key{Namespace: parts[0], Name: parts[1]}
	var again time.Duration
	var err error
	if len(parts) == 3 {
		err = s.unlink(ctx, c, meta.Key{Namespace: parts[0], Name: parts[2]}, k.Name)
	} else {
		again, err = s.fill(ctx, c, k)
	}
	if meta.IsNotFound(err) || meta.IsConflict(err) {
		return 0, nil
	}
	return again, err
}

// accountGrace is how long a secret may exist before its account: a client may
// create both together, in any order.
const accountGrace = 5 * time.Second

// fill adds the missing data to a token secret, or deletes the secret if its
// account does not exist. again is the time until the next attempt, or zero.
func (s *secrets) fill(ctx context.Context, c client.Client, k meta.Key) (again time.Duration, err error) {
	o, err := c.Get(ctx, secretType, k)
	if err != nil {
		return 0, err
	}
	name := s.account(o)
	if name == "" || o.Terminating() {
		return 0, nil
	}
	uid := o.Annotation(s.wire(wellknown.ServiceAccountUID))
	account, err := c.Get(ctx, accountType, meta.Key{Namespace: k.Namespace, Name: name})
	if left := accountGrace - time.Since(o.CreationTimestamp()); meta.IsNotFound(err) && uid == "" && left > 0 {
		return min(left, accountGrace), nil
	}
	if meta.IsNotFound(err) || err == nil && uid != "" && uid != account.UID() {
		return 0, c.Delete(ctx, secretType, k, registry.DeleteOptions{UID: o.UID(), Version: o.ResourceVersion()})
	}
	if err != nil {
		return 0, err
	}
	_, err = c.Update(ctx, secretType, k, "", func(o *meta.Object) error {
		o.Set(account.UID(), "metadata", "annotations", s.wire(wellknown.ServiceAccountUID))
		o.Set(s.authorities, "data", "ca.crt")
		o.Set(base64.StdEncoding.EncodeToString([]byte(k.Namespace)), "data", "namespace")
		if o.String("data", "token") != "" {
			return nil
		}
		token, err := s.tokens.secretToken(k.Namespace, name, account.UID(), k.Name)
		if err == nil {
			o.Set(base64.StdEncoding.EncodeToString([]byte(token)), "data", "token")
		}
		return err
	})
	return 0, err
}

// unlink removes a deleted secret from the field secrets of its account.
func (s *secrets) unlink(ctx context.Context, c client.Client, account meta.Key, secret string) error {
	if _, err := c.Get(ctx, secretType, meta.Key{Namespace: account.Namespace, Name: secret}); err == nil {
		return nil // the secret was created again
	}
	_, err := c.Update(ctx, accountType, account, "", func(o *meta.Object) error {
		var left []any
		for _, v := range o.List("secrets") {
			if m, ok := v.(map[string]any); ok && m["name"] == secret {
				continue
			}
			left = append(left, v)
		}
		if left == nil {
			o.Delete("secrets")
			return nil
		}
		o.Tree()["secrets"] = left
		return nil
	})
	return err
}
