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

// keySet holds the issuer's keys. An unknown key makes it ask again, but not
// often: whoever sends tokens cannot make it a flood. It implements oidc.KeySet.
type keySet struct {
	authenticator *Authenticator
	address       string
	algs          []jose.SignatureAlgorithm
	keys          atomic.Pointer[[]jose.JSONWebKey]

	mu     sync.Mutex // held while asking; guards the rest
	asked  time.Time
	failed error // of the last try
}

// unreachableError says that the keys could not be had.
type unreachableError struct{ error }

// Unwrap returns why.
func (e *unreachableError) Unwrap() error { return e.error }

var errSignature = errors.New("the signature is not valid")

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
		return nil, errors.New("the token's header is not acceptable")
	}
	known := k.keys.Load()
	if body, ok := verify(parsed, *known); ok {
		return body, nil
	}
	// A signature that a known key of this id did not make is not made by a
	// newer one either.
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

// refresh asks the issuer for its keys, unless somebody did since known was read
// or not long ago.
func (k *keySet) refresh(ctx context.Context, known *[]jose.JSONWebKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.authenticator.config.Now
	if k.keys.Load() != known {
		return nil
	}
	if !k.asked.IsZero() && now().Sub(k.asked) < retry {
		return k.failed
	}
	keys, err := k.fetch(ctx)
	k.asked = now()
	if err != nil {
		k.failed = &unreachableError{fmt.Errorf("oidc: the issuer's keys: %w", err)}
		return k.failed
	}
	k.failed = nil
	k.keys.Store(&keys)
	return nil
}

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
		return nil, fmt.Errorf("the issuer answered %d", resp.StatusCode)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("the answer is no key set")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the issuer has more than %d keys", maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		// A private key has no business here, and reading one checks its numbers.
		var private struct {
			D json.RawMessage `json:"d"`
		}
		if json.Unmarshal(raw, &private) != nil || private.D != nil {
			continue
		}
		var key jose.JSONWebKey
		// Keys of kinds that this server does not know are for others.
		if json.Unmarshal(raw, &key) == nil && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
