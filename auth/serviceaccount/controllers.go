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

// Types that the controllers follow.
var (
	namespaceType = meta.GroupResource{Resource: "namespaces"}
	accountType   = meta.GroupResource{Resource: "serviceaccounts"}
	secretType    = meta.GroupResource{Resource: "secrets"}
	configMapType = meta.GroupResource{Resource: "configmaps"}
)

// defaultAccount is the account that every active namespace has.
const defaultAccount = "default"

// DefaultAccounts returns the controller that gives every active namespace its account
// named default.
func DefaultAccounts() client.Controller {
	return perNamespace("serviceaccount", accountType, defaultAccount, func(ctx context.Context, c client.Client, namespace string) error {
		obj := meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "ServiceAccount",
			"metadata": map[string]any{"name": defaultAccount, "namespace": namespace}})
		_, err := c.Create(ctx, accountType, obj)
		return err
	})
}

// RootCA returns the controller that keeps a ConfigMap with the authorities of the
// server, in PEM, in every active namespace.
func RootCA(p names.Profile, authorities []byte) client.Controller {
	name := p.Wire(wellknown.RootCAConfigMap)
	return perNamespace("root-ca-cert-publisher", configMapType, name, func(ctx context.Context, c client.Client, namespace string) error {
		data := map[string]any{"ca.crt": string(authorities)}
		_, err := c.Create(ctx, configMapType, meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": name, "namespace": namespace, "annotations": map[string]any{
				p.Wire(wellknown.Description): "The authorities that a client of this server's own addresses verifies it with.",
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

// perNamespace is a controller that keeps one object in every active namespace. Its
// keys are namespaces.
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
			if meta.IsAlreadyExists(err) || meta.IsNotFound(err) || ended(err) {
				return 0, nil // another change tells of what comes next
			}
			return 0, err
		},
	}
}

// ended reports whether a write failed because its namespace is going.
func ended(err error) bool {
	var s *meta.Status
	return errors.As(err, &s) && s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c meta.StatusCause) bool {
		return c.Reason == meta.CauseNSTerminating
	})
}

// Secrets returns the controller that fills the Secrets of the token type with a
// token, the namespace and the authorities of the server, and removes those whose
// account is gone, is another one of the same name, or does not come soon.
func (t *Tokens) Secrets(authorities []byte) client.Controller {
	s := &secrets{tokens: t, authorities: base64.StdEncoding.EncodeToString(authorities), wire: t.config.Names.Wire}
	s.forget()
	return client.Controller{
		Name:     "serviceaccount-token",
		Types:    []meta.GroupResource{secretType, accountType},
		MapEvent: s.observe, Forget: s.forget, Reconcile: s.reconcile,
	}
}

// secrets is the state of the controller; of is used by observe and forget alone.
type secrets struct {
	tokens      *Tokens
	authorities string // base64
	wire        func(string) string
	of          map[meta.Key]map[string]bool // account to the names of its secrets
}

func (s *secrets) forget() { s.of = map[meta.Key]map[string]bool{} }

// observe returns keys "namespace/secret", and "namespace/secret/account" for a
// secret that is gone from an account.
func (s *secrets) observe(c client.Event) []string {
	ns := c.Key.Namespace + "/"
	if c.Resource == accountType {
		var keys []string
		for name := range maps.Keys(s.of[c.Key]) {
			keys = append(keys, ns+name)
		}
		return keys
	}
	was, is := s.account(c.Old), s.account(c.Object)
	if was != "" && was != is {
		delete(s.of[meta.Key{Namespace: c.Key.Namespace, Name: was}], c.Key.Name)
	}
	var keys []string
	if is != "" {
		k := meta.Key{Namespace: c.Key.Namespace, Name: is}
		if s.of[k] == nil {
			s.of[k] = map[string]bool{}
		}
		s.of[k][c.Key.Name] = true
		keys = append(keys, ns+c.Key.Name)
	}
	if c.Object == nil && was != "" {
		keys = append(keys, ns+c.Key.Name+"/"+was)
	}
	return keys
}

// account returns the account that a secret is a token of, or "".
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

// accountGrace is how long a secret waits for its account: the two may be made
// together, in any order.
const accountGrace = 5 * time.Second

// fill puts into a secret what it lacks, or removes it if its account is not
// there, or says when to look for that again.
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

// unlink takes a secret that is gone out of the list of its account.
func (s *secrets) unlink(ctx context.Context, c client.Client, account meta.Key, secret string) error {
	if _, err := c.Get(ctx, secretType, meta.Key{Namespace: account.Namespace, Name: secret}); err == nil {
		return nil // there again
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
