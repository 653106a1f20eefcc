// Package pkitest makes certificate requests and keys that are so large that their arithmetic would
// not end, for tests of code that must reject them first.
package pkitest

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
)

var (
	oidRSA    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
	oidSHA256 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}
)

// number returns the largest number with a length in bits.
func number(bits int) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	return n.Sub(n, big.NewInt(1))
}

// PublicKey returns an invalid RSA key with a modulus of the given length in bits.
func PublicKey(bits int) *rsa.PublicKey { return &rsa.PublicKey{N: number(bits), E: 65537} }

// Request returns a certificate signing request in PEM for PublicKey(bits). Its signature has the
// right length but is invalid.
func Request(bits int) []byte {
	type body struct {
		Version    int
		Subject    asn1.RawValue
		Key        publicKey
		Attributes []asn1.RawValue `asn1:"tag:0,set"`
	}
	signature := bytes.Repeat([]byte{1}, (bits+7)/8)
	der := encode(struct {
		Body      body
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		body{Subject: asn1.RawValue{FullBytes: encode(pkix.Name{CommonName: "bomb"}.ToRDNSequence())}, Key: newPublicKey(bits)},
		pkix.AlgorithmIdentifier{Algorithm: oidSHA256, Parameters: asn1.NullRawValue},
		asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)},
	})
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

type publicKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Key       asn1.BitString
}

func newPublicKey(bits int) publicKey {
	der := encode(struct {
		N *big.Int
		E int
	}{number(bits), 65537})
	return publicKey{
		pkix.AlgorithmIdentifier{Algorithm: oidRSA, Parameters: asn1.NullRawValue},
		asn1.BitString{Bytes: der, BitLength: 8 * len(der)},
	}
}

// PrivateKey returns an invalid RSA private key (PKCS #1, DER) with a modulus and a factor of the
// given lengths in bits. It lacks the precomputed values, so that a parser has to compute them.
func PrivateKey(modulus, factor int) []byte {
	return encode(struct {
		Version int
		N       *big.Int
		E       int
		D, P, Q *big.Int
	}{0, number(modulus), 65537, number(modulus - 1), number(factor), big.NewInt(7)})
}

// encode returns the DER encoding of a value that is known to be encodable.
func encode(v any) []byte {
	der, err := asn1.Marshal(v)
	if err != nil {
		return fmt.Appendf(nil, "%v", err)
	}
	return der
}
