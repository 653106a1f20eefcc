package serviceaccount

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// The paths of the discovery documents.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeySetPath        = "/openid/v1/jwks"
)

// Discovery returns the handlers, by path, of the OpenID Connect discovery
// documents with which others verify tokens: the issuer's configuration and its public
// keys. It returns an error if the first issuer or the address of the key set is not
// an https URL.
func (t *Tokens) Discovery() (map[string]http.Handler, error) {
	issuer, err := url.Parse(t.config.Issuers[0])
	if err != nil || issuer.Scheme != "https" || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" {
		return nil, fmt.Errorf("serviceaccount: issuer %q must be an https URL to serve discovery documents", t.config.Issuers[0])
	}
	keysAt := t.config.JWKSURL
	if keysAt == "" {
		keysAt = strings.TrimSuffix(t.config.Issuers[0], "/") + KeySetPath
	}
	if u, err := url.Parse(keysAt); err != nil || u.Scheme != "https" {
		return nil, errors.New("serviceaccount: JWKSURL must be an https URL")
	}
	algs := make([]string, 0, len(t.algs))
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, a := range t.algs {
		algs = append(algs, string(a))
	}
	slices.Sort(algs)
	for _, k := range t.config.Keys {
		set.Keys = append(set.Keys, k.jwk())
	}
	configuration, err := json.Marshal(map[string]any{
		"issuer": t.config.Issuers[0], "jwks_uri": keysAt,
		"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": algs,
	})
	if err != nil {
		return nil, fmt.Errorf("serviceaccount: %w", err)
	}
	keys, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("serviceaccount: %w", err)
	}
	return map[string]http.Handler{
		ConfigurationPath: document("application/json", configuration),
		KeySetPath:        document("application/jwk-set+json", keys),
	}, nil
}

// document returns a handler for GET and HEAD of a constant document.
func document(mediaType string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(body)
	})
}
