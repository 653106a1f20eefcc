// Package certificates processes CertificateSigningRequests. It has the rules of the
// built-in signers, and the controllers that approve requests of node agents, sign
// approved requests and delete old requests.
package certificates

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"orch.io/controlplane/internal/pki"
)

// backdate is how long before its signing a certificate becomes valid, because
// other clocks may be behind.
const backdate = 5 * time.Minute

// Authority is a certificate authority: a CA certificate and its private key. It is
// safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority returns the authority with a CA certificate and its private key, both
// in PEM.
func NewAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	pair, err := pki.ParseKeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("certificate authority: the private key cannot sign")
	}
	if !cert.IsCA {
		return nil, fmt.Errorf("certificate authority: certificate %q is not a CA certificate", cert.Subject)
	}
	return &Authority{cert, key}, nil
}

// Sign returns a certificate in PEM with the subject, the subject alternative names
// and the public key of a request. Other extensions of the request are ignored. The
// certificate is valid from five minutes before now until now plus valid, but not
// longer than the authority's certificate.
func (a *Authority) Sign(r *x509.CertificateRequest, usages []string, valid time.Duration, now time.Time) ([]byte, error) {
	if err := pki.CheckPublicKey(r.PublicKey); err != nil {
		return nil, err
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("request is not signed with its key: %w", err)
	}
	key, ext, err := keyUsages(usages)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	end := now.Add(valid)
	if !now.Before(a.cert.NotAfter) {
		return nil, fmt.Errorf("the CA certificate expired at %s", a.cert.NotAfter.Format(time.RFC3339))
	}
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: r.Subject, NotBefore: now.Add(-backdate), NotAfter: end,
		DNSNames: r.DNSNames, IPAddresses: r.IPAddresses, EmailAddresses: r.EmailAddresses, URIs: r.URIs,
		KeyUsage: key, ExtKeyUsage: ext, BasicConstraintsValid: true, IsCA: false,
	}, a.cert, r.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
