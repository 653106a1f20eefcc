// Package pki parses certificates, certificate requests and private keys in PEM. It checks limits
// before any arithmetic: the work with a key grows with the cube of its length, and the data comes
// from untrusted clients.
package pki

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Limits of the input.
const (
	// MaxBits is the maximum length of an RSA modulus, in bits. TLS rejects longer keys anyway.
	MaxBits = 8192
	// MaxCertificate and MaxKey are the maximum size of a decoded PEM block, in bytes.
	MaxCertificate = 256 << 10
	MaxKey         = 8 << 10
	// MaxChain is the maximum number of certificates in a text.
	MaxChain = 256
	// MaxNames is the maximum number of subject alternative names of a certificate or request.
	MaxNames = 1000
	// maxPrime is the maximum length of a prime factor, in bits: half of MaxBits, with some room
	// because the factors may differ in length.
	maxPrime = MaxBits/2 + 64
)

// ParseRequest returns the PKCS#10 request in the first PEM block, which must be a CERTIFICATE
// REQUEST and have a valid signature by its own key. Text around the block is ignored.
func ParseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	if err := checkLength("request", block.Bytes, MaxCertificate); err != nil {
		return nil, err
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if err := checkNames(len(r.DNSNames) + len(r.EmailAddresses) + len(r.IPAddresses) + len(r.URIs)); err != nil {
		return nil, err
	}
	if err := CheckPublicKey(r.PublicKey); err != nil {
		return nil, err
	}
	return r, r.CheckSignature()
}

// ParseCertificate returns the certificate in DER data.
func ParseCertificate(der []byte) (*x509.Certificate, error) {
	if err := checkLength("certificate", der, MaxCertificate); err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	if err := checkNames(len(c.DNSNames) + len(c.EmailAddresses) + len(c.IPAddresses) + len(c.URIs)); err != nil {
		return nil, err
	}
	return c, CheckPublicKey(c.PublicKey)
}

// ParseChain returns the certificates of a text with at least one PEM block, which must all be of
// type CERTIFICATE and have no headers.
func ParseChain(text []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		switch {
		case block.Type != "CERTIFICATE":
			return nil, errors.New("only CERTIFICATE PEM blocks are allowed")
		case len(block.Headers) > 0:
			return nil, errors.New("no PEM block headers are permitted")
		case len(chain) == MaxChain:
			return nil, fmt.Errorf("must have at most %d certificates", MaxChain)
		}
		c, err := ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return chain, nil
}

// ParsePool returns the authorities of a bundle with at least one certificate. Other blocks and
// certificates that cannot be parsed are ignored.
func ParsePool(text []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if c, err := ParseCertificate(block.Bytes); err == nil {
			pool.AddCert(c)
			found = true
		}
	}
	if !found {
		return nil, errors.New("no certificate in the bundle")
	}
	return pool, nil
}

// CheckBundle returns the error of ParsePool for a base64-encoded bundle, the form in webhook
// configurations. An empty bundle is valid.
func CheckBundle(encoded string) error {
	if encoded == "" {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil {
		_, err = ParsePool(text)
	}
	return err
}

// ParseKeyPair is tls.X509KeyPair with limits: the first certificate of chain must match the first
// private key in key.
func ParseKeyPair(chain, key []byte) (tls.Certificate, error) {
	count := 0
	for rest := chain; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if count++; count > MaxChain {
			return tls.Certificate{}, fmt.Errorf("must have at most %d certificates", MaxChain)
		}
		if err := checkLength("certificate", block.Bytes, MaxCertificate); err != nil {
			return tls.Certificate{}, err
		}
	}
	for rest := key; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "PRIVATE KEY" || strings.HasSuffix(block.Type, " PRIVATE KEY") {
			if err := CheckPrivateKey(block.Bytes); err != nil {
				return tls.Certificate{}, err
			}
		}
	}
	return tls.X509KeyPair(chain, key)
}

// CheckPublicKey returns an error if key is an RSA key with a modulus above MaxBits. The length of
// other keys is fixed by their curve.
func CheckPublicKey(key any) error {
	if k, ok := key.(*rsa.PublicKey); ok && k.N.BitLen() > MaxBits {
		return tooLong(k.N.BitLen())
	}
	return nil
}

func tooLong(bits int) error {
	return fmt.Errorf("an RSA key of %d bits: must have at most %d", bits, MaxBits)
}

// Parts of the ASN.1 structures of private keys (RFC 5958, RFC 8017). Numbers are not decoded, so they may
// be of any length.
type (
	wrapped struct {
		Version   int
		Algorithm asn1.RawValue
		Key       []byte
	}
	rsaKey struct {
		Version              int
		Modulus, Public      asn1.RawValue
		Private              asn1.RawValue
		FactorOne, FactorTwo asn1.RawValue
	}
)

// CheckPrivateKey returns an error if parsing a private key in DER would take too long: the parser
// validates the numbers of RSA keys. It returns nil for data that is not a key.
func CheckPrivateKey(der []byte) error {
	if err := checkLength("private key", der, MaxKey); err != nil {
		return err
	}
	var w wrapped
	if _, err := asn1.Unmarshal(der, &w); err == nil {
		der = w.Key
	}
	var k rsaKey
	if _, err := asn1.Unmarshal(der, &k); err != nil {
		return nil
	}
	for _, v := range []asn1.RawValue{k.Modulus, k.Private} {
		if bits := bitsOf(v); bits > MaxBits {
			return tooLong(bits)
		}
	}
	if max(bitsOf(k.FactorOne), bitsOf(k.FactorTwo)) > maxPrime {
		return fmt.Errorf("an RSA key with a factor of more than %d bits", maxPrime)
	}
	return nil
}

// bitsOf returns the length of a positive integer in bits, rounded up to whole bytes.
func bitsOf(v asn1.RawValue) int {
	b := v.Bytes
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	return 8 * len(b)
}

// checkLength returns an error if der is longer than most bytes. what names its content.
func checkLength(what string, der []byte, most int) error {
	if len(der) > most {
		return fmt.Errorf("a %s of %d bytes: must have at most %d", what, len(der), most)
	}
	return nil
}

// checkNames returns an error if n exceeds MaxNames.
func checkNames(n int) error {
	if n > MaxNames {
		return fmt.Errorf("%d alternative names: must have at most %d", n, MaxNames)
	}
	return nil
}
