// Package certificates is what becomes of certificate signing requests: the
// admission plugins that guard approval and signing, the rules of the built-in
// signers, and the controllers that approve requests of node agents, sign approved
// requests and remove old ones.
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

// backdate is how long before the signing a certificate becomes valid, for
// clocks that are behind.
const backdate = 5 * time.Minute

// Authority is a certificate authority: a certificate with its key.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority returns the authority of a certificate and its private key in
// PEM. The certificate must be allowed to sign others.
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
		return nil, fmt.Errorf("certificate authority: %q is not an authority's certificate", cert.Subject)
	}
	return &Authority{cert, key}, nil
}

// Sign returns a certificate in PEM for the subject, the alternative names and
// the key of a request; nothing else is taken from it. It is valid from five
// minutes before now, no longer than the authority itself.
func (a *Authority) Sign(r *x509.CertificateRequest, usages []string, valid time.Duration, now time.Time) ([]byte, error) {
	if err := pki.CheckPublicKey(r.PublicKey); err != nil {
		return nil, err
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the request is not signed by its key: %w", err)
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
		return nil, fmt.Errorf("the authority's certificate ended %s", a.cert.NotAfter.Format(time.RFC3339))
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
