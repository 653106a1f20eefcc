// Package serving is what a program of its own needs around a server: a certificate
// authority that it makes and keeps itself, a kubeconfig for its clients, and the
// way to serve TLS and to end in order.
//
//	ca, err := serving.LoadAuthority(dir)
//	config, err := ca.TLS("127.0.0.1", "localhost")
//	kubeconfig, err := ca.Kubeconfig("https://127.0.0.1:6443", "admin", auth.Masters)
//	err = serving.Run(ctx, s, listener, serving.Options{TLS: config})
package serving

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// How long certificates hold. They are valid a little before they are made, for
// clients whose clocks are late.
const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	clockSkew       = 5 * time.Minute
)

// Authority is a certificate authority: what it signs, clients that know its
// certificate trust. Certificates hold for a year, its own for ten.
type Authority struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority of that common name.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	self := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := sign(self, self, key, key, authorityLife)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert, key}, err
}

// authorityFile is where an authority lies in its directory, key and certificate.
const authorityFile = "authority.pem"

// LoadAuthority reads the authority that is kept in a directory. If there is none it
// makes one and keeps it there, in a file that only its owner can read. Of several
// processes that do so at once one makes it, and all have the same.
func LoadAuthority(dir string) (*Authority, error) {
	path := filepath.Join(dir, authorityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = newAuthorityPEM(); err == nil {
			data, err = KeepPrivate(path, data)
		}
	}
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: the key is no ECDSA key", path)
	}
	return &Authority{pair.Leaf, key}, nil
}

func newAuthorityPEM() ([]byte, error) {
	ca, err := NewAuthority("controlplane")
	if err != nil {
		return nil, err
	}
	key, err := keyPEM(ca.Key)
	return append(key, ca.PEM()...), err
}

// PEM returns the certificate that clients verify servers with.
func (ca *Authority) PEM() []byte { return certPEM(ca.Cert.Raw) }

// Pool returns the authority alone, to verify what it signed.
func (ca *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Cert)
	return pool
}

// KeyPEM returns the authority's private key, for what signs in its name.
func (ca *Authority) KeyPEM() ([]byte, error) { return keyPEM(ca.Key) }

// TLS returns the configuration of a server that is reached at some addresses and
// host names. Clients may show a certificate; whom to believe one, authenticators
// decide.
func (ca *Authority) TLS(hosts ...string) (*tls.Config, error) {
	cert, key, err := ca.Server(hosts...)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	return TLS(pair), err
}

// Server returns a certificate of a server that is reached at some addresses and
// host names, and its key, as PEM.
func (ca *Authority) Server(hosts ...string) (cert, key []byte, err error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return ca.issue(template)
}

// TLS returns the configuration of a server with a certificate from elsewhere, see
// Authority.TLS.
func TLS(cert tls.Certificate) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2", "http/1.1"},
	}
}

// Client returns a certificate of a user in groups, and its key, as PEM: what the
// authenticator of client certificates takes.
func (ca *Authority) Client(user string, groups ...string) (cert, key []byte, err error) {
	return ca.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// issue signs a certificate for a new key, both PEM.
func (ca *Authority) issue(template *x509.Certificate) (cert, private []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := sign(template, ca.Cert, key, ca.Key, certificateLife)
	if err != nil {
		return nil, nil, err
	}
	private, err = keyPEM(key)
	return certPEM(der), private, err
}

func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey, life time.Duration) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-clockSkew), time.Now().Add(life)
	return x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// WritePrivate writes a file that only its owner can read, whatever was there:
// whole or not at all. Missing directories are made.
func WritePrivate(path string, data []byte) error { return putPrivate(path, data, os.Rename) }

// KeepPrivate writes a file as WritePrivate does unless there is one, and returns what
// is there then: of several processes that do so at once all get the same.
func KeepPrivate(path string, data []byte) (kept []byte, err error) {
	if err := putPrivate(path, data, linkOrRename); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}

// linkOrRename takes no name that is taken, but where there are no links, as on some
// file systems: processes that begin at once may overwrite each other's files there.
func linkOrRename(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(from, to)
}

// putPrivate writes a file for its owner alone and gives it its name by put.
func putPrivate(path string, data []byte, put func(from, to string) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, filepath.Base(path)+"-") // for its owner alone
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = put(file.Name(), path)
	}
	if gone := os.Remove(file.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
