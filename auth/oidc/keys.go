package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// keySet holds the issuer's public keys and implements oidc.KeySet. When a token has
// an unknown key, keySet fetches the keys again, but at most once per retry, so
// clients cannot cause a flood of requests to the issuer.
type keySet struct {
	authenticator *Authenticator
	address       string // URL of the key set
	algs          []jose.SignatureAlgorithm
	keys          atomic.Pointer[[]jose.JSONWebKey] // replaced as a whole by refresh

	mu      sync.Mutex // held during a fetch; guards the fields below
	fetched time.Time  // end of the last fetch; zero before the first
	err     error      // of the last fetch
}

// unreachableError is the error of a failed fetch of the keys.
type unreachableError struct{ error }

// Unwrap returns the cause.
func (e *unreachableError) Unwrap() error { return e.error }

var errSignature = errors.New("invalid signature")

func newKeySet(a *Authenticator, address string) *keySet {
	k := &keySet{authenticator: a, address: address}
	for _, alg := range a.config.Algorithms {
		k.algs = append(k.algs, jose.SignatureAlgorithm(alg))
	}
	k.keys.Store(&[]jose.JSONWebKey{})
	return k
}

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	parsed, err := jose.ParseSignedCompact(token, k.algs)
	if err != nil || len(parsed.Signatures) != 1 {
		return nil, errors.New("invalid header or unsupported algorithm")
	}
	known := k.keys.Load()
	if body, ok := verify(parsed, *known); ok {
		return body, nil
	}
	// If the key with this id is known, a fetch would not help: ids are unique, so
	// the signature is invalid.
	if id := parsed.Signatures[0].Header.KeyID; id != "" && hasKey(*known, id) {
		return nil, errSignature
	}
	if err := k.refresh(ctx, known); err != nil {
		return nil, err
	}
	if body, ok := verify(parsed, *k.keys.Load()); ok {
		return body, nil
	}
	return nil, errSignature
}

func hasKey(keys []jose.JSONWebKey, id string) bool {
	return slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool { return k.KeyID == id })
}

// verify returns the payload of a token if one of the keys verifies its signature.
func verify(token *jose.JSONWebSignature, keys []jose.JSONWebKey) ([]byte, bool) {
	head := token.Signatures[0].Header
	for i := range keys {
		k := &keys[i]
		if head.KeyID != "" && k.KeyID != head.KeyID || k.Algorithm != "" && k.Algorithm != head.Algorithm {
			continue
		}
		if body, err := token.Verify(k); err == nil {
			return body, true
		}
	}
	return nil, false
}

// refresh fetches the keys, unless another call replaced known meanwhile or the last
// fetch is more recent than retry. In the latter case it returns the error of that
// fetch.
func (k *keySet) refresh(ctx context.Context, known *[]jose.JSONWebKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.authenticator.config.Now
	if k.keys.Load() != known {
		return nil
	}
	if !k.fetched.IsZero() && now().Sub(k.fetched) < retry {
		return k.err
	}
	keys, err := k.fetch(ctx)
	k.fetched = now()
	if err != nil {
		k.err = &unreachableError{fmt.Errorf("oidc: fetching the issuer's keys: %w", err)}
		return k.err
	}
	k.err = nil
	k.keys.Store(&keys)
	return nil
}

// fetch returns the issuer's public signing keys. It ignores the cancellation of
// ctx, because other requests wait for the result, too.
func (k *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.authenticator.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("unexpected response code %d", resp.StatusCode)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("response is not a JSON Web Key Set")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("key set has more than %d keys", maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		// Skip private keys before decoding: validating their numbers can take
		// minutes.
		var private struct {
			D json.RawMessage `json:"d"`
		}
		if json.Unmarshal(raw, &private) != nil || private.D != nil {
			continue
		}
		var key jose.JSONWebKey
		// Skip keys of unknown types.
		if json.Unmarshal(raw, &key) == nil && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
