// Package clientcert authenticates callers by the client certificate of their
// TLS connection: the subject's common name is the user, every organization a
// group.
//
// The server must ask for certificates without verifying them
// (tls.RequestClientCert), because each method has authorities of its own.
package clientcert

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/internal/verifier"
	"orch.io/controlplane/internal/pki"
)

// Authenticator accepts the client certificates of some authorities.
type Authenticator struct{ verifier *verifier.Verifier }

// New returns a method that accepts certificates for client authentication
// that lead to one of roots; nil accepts none.
func New(roots *x509.CertPool) *Authenticator { return &Authenticator{verifier.New(roots, nil)} }

// ParseBundle returns the authorities of a PEM bundle; one at least.
func ParseBundle(pem []byte) (*x509.CertPool, error) {
	pool, err := pki.ParsePool(pem)
	if err != nil {
		return nil, fmt.Errorf("clientcert: %w", err)
	}
	return pool, nil
}

// Authenticate implements auth.Authenticator. A connection without a
// certificate, or a valid one without a common name, is none of its business.
func (a *Authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	leaf, err := a.verifier.Verify(r)
	if leaf == nil || err != nil || leaf.Subject.CommonName == "" {
		return nil, err
	}
	return &auth.User{Name: leaf.Subject.CommonName, Groups: slices.Clone(leaf.Subject.Organization)}, nil
}
