// Package serving has the tools that a program needs around a server: a certificate authority that is created
// and kept in a directory, kubeconfig files for clients, and Run, which serves TLS and shuts down gracefully.
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

// The lifetimes of certificates. They are valid from clockSkew before their creation, for clients whose
// clocks are slow.
const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	clockSkew       = 5 * time.Minute
)

// Authority is a certificate authority. Its own certificate is valid for ten years; issued certificates are valid for
// a year. It is immutable, so its methods are safe for concurrent use.
type Authority struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// NewAuthority creates an authority with a new key and the given common name.
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

// authorityFile is the name of the file with the key and certificate of an authority.
const authorityFile = "authority.pem"

// LoadAuthority reads the authority stored in a directory. If the directory has no authority, it creates an authority
// and stores it in a file that only the owner can read. If several processes call it concurrently, they all get the same
// authority.
func LoadAuthority(dir string) (*Authority, error) {
	path := filepath.Join(dir, authorityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = newAuthorityPEM(); err == nil {
			data, err = CreatePrivate(path, data)
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
		return nil, fmt.Errorf("%s: not an ECDSA key", path)
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

// PEM returns the certificate of the authority, with which clients verify servers.
func (ca *Authority) PEM() []byte { return certPEM(ca.Cert.Raw) }

// Pool returns a pool with only the certificate of the authority.
func (ca *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Cert)
	return pool
}

// KeyPEM returns the private key of the authority, for components that sign in its name.
func (ca *Authority) KeyPEM() ([]byte, error) { return keyPEM(ca.Key) }

// TLS returns the configuration of a server with a new certificate for the given IP addresses and host names.
// It requests client certificates, but leaves it to authenticators to verify them.
func (ca *Authority) TLS(hosts ...string) (*tls.Config, error) {
	cert, key, err := ca.Server(hosts...)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	return TLS(pair), err
}

// Server returns a new server certificate for the given IP addresses and host names, and its key, as PEM.
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

// TLS returns the configuration of a server with the given certificate. It requests client certificates like
// Authority.TLS.
func TLS(cert tls.Certificate) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2", "http/1.1"},
	}
}

// Client returns a new client certificate of a user in groups, and its key, as PEM. The authenticator for
// client certificates accepts it.
func (ca *Authority) Client(user string, groups ...string) (cert, key []byte, err error) {
	return ca.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// issue creates a key and signs a certificate for it. It returns both as PEM.
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

// WritePrivate writes a file that only the owner can read. It replaces an existing file atomically, and
// creates missing directories.
func WritePrivate(path string, data []byte) error { return putPrivate(path, data, os.Rename) }

// CreatePrivate is like WritePrivate, but does not replace an existing file. It returns the contents of the
// file. If several processes call it concurrently, they all get the same contents.
func CreatePrivate(path string, data []byte) (kept []byte, err error) {
	if err := putPrivate(path, data, linkOrRename); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}

// linkOrRename gives a file a name that does not exist yet. On file systems without hard links it renames,
// which can replace the file of a process that started at the same time.
func linkOrRename(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(from, to)
}

// putPrivate writes a temporary file in the directory of path, and names it by put.
func putPrivate(path string, data []byte, put func(from, to string) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, filepath.Base(path)+"-") // readable by the owner only
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = put(file.Name(), path)
	}
	if removeErr := os.Remove(file.Name()); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}
