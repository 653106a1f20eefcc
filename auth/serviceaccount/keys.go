package serviceaccount

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/go-jose/go-jose/v4"

	"orch.io/controlplane/internal/pki"
)

// minRSA is the minimum length of an RSA key in bits.
const minRSA = 2048

// Key is an issuer's key. Every Key verifies tokens; a private key also signs them.
type Key struct {
	ID      string // base64url SHA-256 digest of the public key; the key id in tokens
	public  crypto.PublicKey
	private crypto.Signer // nil for a public key
	alg     jose.SignatureAlgorithm
}

// Private reports whether the key can sign.
func (k Key) Private() bool { return k.private != nil }

// GenerateKey returns a new private ECDSA P-256 key.
func GenerateKey() (Key, error) {
	k, _, err := NewKeyPEM()
	return k, err
}

// NewKeyPEM returns a new private ECDSA P-256 key, and the key as a PEM block that
// ParseKeys reads.
func NewKeyPEM() (Key, []byte, error) {
	raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Key{}, nil, fmt.Errorf("serviceaccount: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(raw)
	if err != nil {
		return Key{}, nil, fmt.Errorf("serviceaccount: %w", err)
	}
	k, err := newKey(raw)
	return k, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// newKey returns the Key for a private or public RSA or ECDSA key. It checks the
// length or the curve.
func newKey(key any) (Key, error) {
	k := Key{public: key}
	if s, ok := key.(crypto.Signer); ok {
		k.private, k.public = s, s.Public()
	}
	if err := pki.CheckPublicKey(k.public); err != nil {
		return Key{}, fmt.Errorf("serviceaccount: %w", err)
	}
	switch p := k.public.(type) {
	case *rsa.PublicKey:
		if p.N.BitLen() < minRSA {
			return Key{}, fmt.Errorf("serviceaccount: RSA key has %d bits, at least %d are required", p.N.BitLen(), minRSA)
		}
		k.alg = jose.RS256
	case *ecdsa.PublicKey:
		switch p.Curve {
		case elliptic.P256():
			k.alg = jose.ES256
		case elliptic.P384():
			k.alg = jose.ES384
		case elliptic.P521():
			k.alg = jose.ES512
		}
	}
	if k.alg == "" {
		return Key{}, fmt.Errorf("serviceaccount: keys of type %T cannot sign tokens", key)
	}
	der, err := x509.MarshalPKIXPublicKey(k.public)
	if err != nil {
		return Key{}, fmt.Errorf("serviceaccount: %w", err)
	}
	sum := sha256.Sum256(der)
	k.ID = base64.RawURLEncoding.EncodeToString(sum[:])
	return k, nil
}

// LoadKeys returns the keys of PEM files; see ParseKeys.
func LoadKeys(paths ...string) ([]Key, error) {
	var keys []Key
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("serviceaccount: %w", err)
		}
		k, err := ParseKeys(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		keys = append(keys, k...)
	}
	return keys, nil
}

// ParseKeys returns the private keys, the public keys and the public keys of
// certificates in PEM data. It skips other blocks, and returns an error if there is
// no key.
func ParseKeys(data []byte) ([]Key, error) {
	var keys []Key
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		data = rest
		raw, err := parseBlock(block)
		if err != nil {
			return nil, fmt.Errorf("serviceaccount: PEM block %q: %w", block.Type, err)
		}
		if raw == nil {
			continue
		}
		k, err := newKey(raw)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errors.New("serviceaccount: PEM data has no key")
	}
	return keys, nil
}

// parseBlock returns the key of a PEM block, or nil if the block has an unknown
// type.
func parseBlock(b *pem.Block) (any, error) {
	if err := pki.CheckPrivateKey(b.Bytes); err != nil && b.Type != "CERTIFICATE" {
		return nil, err
	}
	switch b.Type {
	case "PRIVATE KEY":
		return x509.ParsePKCS8PrivateKey(b.Bytes)
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(b.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(b.Bytes)
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(b.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(b.Bytes)
	case "CERTIFICATE":
		c, err := pki.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, err
		}
		return c.PublicKey, nil
	}
	return nil, nil
}

// signer returns a signer with the private key k.
func (k Key) signer() (jose.Signer, error) {
	return jose.NewSigner(jose.SigningKey{Algorithm: k.alg, Key: jose.JSONWebKey{Key: k.private, KeyID: k.ID}}, nil)
}

// jwk returns the public key as a JSON Web Key.
func (k Key) jwk() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.public, KeyID: k.ID, Algorithm: string(k.alg), Use: "sig"}
}
