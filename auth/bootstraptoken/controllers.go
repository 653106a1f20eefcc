package bootstraptoken

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

const signaturePrefix = "jws-kubeconfig-"

var (
	secretType    = meta.GroupResource{Resource: "secrets"}
	configMapType = meta.GroupResource{Resource: "configmaps"}
)

// sign returns a detached JWS of a document. The algorithm is HS256, the shared secret
// is the whole token, the key id is the token's id, and the payload between the two
// dots is empty. It does not use the JOSE library, which refuses such short secrets.
func sign(document []byte, t token) string {
	id, _ := json.Marshal(t.ID)
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":` + string(id) + `}`))
	return header + ".." + base64.RawURLEncoding.EncodeToString(mac(header, document, t))
}

func mac(header string, document []byte, t token) []byte {
	h := hmac.New(sha256.New, []byte(t.String()))
	h.Write([]byte(header + "." + base64.RawURLEncoding.EncodeToString(document)))
	return h.Sum(nil)
}

// Signer returns a controller that signs the kubeconfig in the ConfigMap cluster-info
// with each token that may sign and has not expired. now is the clock; nil is
// time.Now.
func Signer(p names.Profile, now func() time.Time) client.Controller {
	if now == nil {
		now = time.Now
	}
	info := meta.Key{Namespace: p.SystemNamespace("public"), Name: wellknown.ClusterInfo}
	return client.Controller{
		Name:     "bootstrapsigner",
		Types:    []meta.GroupResource{secretType, configMapType},
		Identity: true,
		MapEvent: func(c client.Event) []string {
			token := c.Key.Namespace == p.SystemNamespace("system") && strings.HasPrefix(c.Key.Name, namePrefix)
			if c.Resource == configMapType && c.Key == info || c.Resource == secretType && token {
				return []string{info.Name}
			}
			return nil
		},
		Reconcile: func(ctx context.Context, c client.Client, _ string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			o, err := c.Get(ctx, configMapType, info)
			if meta.IsNotFound(err) {
				return 0, nil
			}
			if err != nil {
				return 0, err
			}
			want, again, err := signatures(ctx, c, p, o.String("data", "kubeconfig"), now())
			if err != nil {
				return 0, err
			}
			_, err = c.Update(ctx, configMapType, info, "", func(o *meta.Object) error { return replaceSignatures(o, want) })
			if meta.IsNotFound(err) {
				return 0, nil
			}
			return again, err
		},
	}
}

func isToken(o *meta.Object, p names.Profile) bool {
	return o != nil && o.String("type") == p.Wire(wellknown.SecretBootstrap) && o.Namespace() == p.SystemNamespace("system")
}

// signatures returns the signatures of all signing tokens by their keys in the
// ConfigMap, and the time until the next of these tokens expires, or zero.
func signatures(ctx context.Context, c client.Client, p names.Profile, document string, now time.Time) (map[string]string, time.Duration, error) {
	out := map[string]string{}
	var again time.Duration
	list, err := c.List(ctx, secretType, p.SystemNamespace("system"))
	if meta.IsNotFound(err) { // the server does not serve Secrets
		return out, 0, nil
	}
	if err != nil || document == "" {
		return out, 0, err
	}
	for _, s := range list {
		t, ok := parseSecret(s, p)
		if !ok || !t.Signing || t.expired(now) || s.Name() != namePrefix+t.ID || !tokenForm.MatchString(t.String()) {
			continue
		}
		out[signaturePrefix+t.ID] = sign([]byte(document), t)
		if end, err := time.Parse(time.RFC3339, t.Expiration); err == nil && (again == 0 || end.Sub(now) < again) {
			again = end.Sub(now)
		}
	}
	return out, again, nil
}

// replaceSignatures sets the signatures in the ConfigMap to want.
func replaceSignatures(o *meta.Object, want map[string]string) error {
	for k := range o.Map("data") {
		if _, ok := want[k]; !ok && strings.HasPrefix(k, signaturePrefix) {
			o.Delete("data", k)
		}
	}
	for k, v := range want {
		o.Set(v, "data", k)
	}
	return nil
}

// Cleaner returns a controller that deletes the Secrets of expired bootstrap tokens.
// now is the clock; nil is time.Now.
func Cleaner(p names.Profile, now func() time.Time) client.Controller {
	if now == nil {
		now = time.Now
	}
	return client.Controller{
		Name:  "tokencleaner",
		Types: []meta.GroupResource{secretType},
		MapEvent: func(c client.Event) []string {
			if !isToken(c.Object, p) {
				return nil
			}
			return []string{c.Key.Name}
		},
		Reconcile: func(ctx context.Context, c client.Client, name string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			k := meta.Key{Namespace: p.SystemNamespace("system"), Name: name}
			o, err := c.Get(ctx, secretType, k)
			if meta.IsNotFound(err) {
				return 0, nil
			}
			if err != nil {
				return 0, err
			}
			t, ok := parseSecret(o, p)
			if !ok || t.Expiration == "" {
				return 0, nil
			}
			if !t.expired(now()) {
				end, err := time.Parse(time.RFC3339, t.Expiration)
				return end.Sub(now()), err
			}
			err = c.Delete(ctx, secretType, k, registry.DeleteOptions{UID: o.UID(), Version: o.ResourceVersion()})
			if meta.IsNotFound(err) || meta.IsConflict(err) {
				return 0, nil
			}
			return 0, err
		},
	}
}
