package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"orch.io/controlplane/auth"
)

// identity is what the server shows and whom it trusts.
type identity struct {
	ca      *authority
	tls     *tls.Config
	clients *x509.CertPool // authorities of client certificates
	caPEM   []byte         // what clients verify the server with
}

// authority is the self-made certificate authority, kept in the data directory.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// identity loads or makes the server's certificates; at is where it is reached.
func (f *flags) identity(at netip.Addr) (*identity, error) {
	ca, err := loadAuthority(f.dataDir)
	if err != nil {
		return nil, err
	}
	id := &identity{ca: ca, clients: x509.NewCertPool(), caPEM: ca.pem}
	id.clients.AddCert(ca.cert)
	if f.authn.clientCAFile != "" {
		bundle, err := os.ReadFile(f.authn.clientCAFile)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		if !id.clients.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("--client-ca-file: %s holds no certificate", f.authn.clientCAFile)
		}
	}
	cert, err := f.serving(ca, at)
	if err != nil {
		return nil, err
	}
	if f.tlsCert != "" {
		if id.caPEM, err = os.ReadFile(f.tlsCert); err != nil {
			return nil, err
		}
	}
	id.tls = &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2", "http/1.1"},
	}
	return id, nil
}

func (f *flags) serving(ca *authority, at netip.Addr) (tls.Certificate, error) {
	if f.tlsCert != "" {
		return tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
	}
	names := []string{"localhost"}
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, at.WithZone("").AsSlice()}
	if ip := net.ParseIP(f.bindAddress); ip != nil {
		ips = append(ips, ip)
	} else {
		names = append(names, f.bindAddress)
	}
	certPEM, keyPEM, err := ca.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "apiserver"}, DNSNames: names, IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// loadAuthority reads the authority in dir, or makes one and keeps it there.
func loadAuthority(dir string) (*authority, error) {
	path := filepath.Join(dir, "authority.pem")
	if dir != "" {
		data, err := os.ReadFile(path)
		if err == nil {
			return parseAuthority(data)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	ca, keyPEM, err := newAuthority()
	if err != nil || dir == "" {
		return ca, err
	}
	return ca, writePrivate(path, append(keyPEM, ca.pem...))
}

func newAuthority() (*authority, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	self := &x509.Certificate{
		Subject: pkix.Name{CommonName: "controlplane"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := sign(self, self, key.Public(), key, 10*365*24*time.Hour)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err := encodeKey(key)
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, keyPEM, err
}

func parseAuthority(data []byte) (*authority, error) {
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("authority.pem: %w", err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("authority.pem: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("authority.pem: the key is no ECDSA key")
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})}, nil
}

// issue signs a certificate for a new key, both PEM.
func (ca *authority) issue(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := sign(template, ca.cert, key.Public(), ca.key, 365*24*time.Hour)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM, err
}

func sign(template, parent *x509.Certificate, public any, key *ecdsa.PrivateKey, life time.Duration) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-5 * time.Minute)
	template.NotAfter = time.Now().Add(life)
	return x509.CreateCertificate(rand.Reader, template, parent, public, key)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// writeKubeconfig writes a client configuration with a certificate of the
// admin, and returns its path.
func (id *identity) writeKubeconfig(f *flags, server string) (string, error) {
	certPEM, keyPEM, err := id.ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "admin", Organization: []string{auth.Masters}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return "", err
	}
	path := f.kubeconfig
	if path == "" {
		file, err := os.CreateTemp("", "admin-*.kubeconfig")
		if err != nil {
			return "", err
		}
		path = file.Name()
		_ = file.Close()
	}
	b64 := base64.StdEncoding.EncodeToString
	doc := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: admin
clusters:
- name: controlplane
  cluster:
    server: %s
    certificate-authority-data: %s
contexts:
- name: admin
  context: {cluster: controlplane, user: admin}
users:
- name: admin
  user:
    client-certificate-data: %s
    client-key-data: %s
`, server, b64(id.caPEM), b64(certPEM), b64(keyPEM))
	return path, writePrivate(path, []byte(doc))
}

// writePrivate writes a file that only its owner can read, whatever was there:
// whole or not at all.
func writePrivate(path string, data []byte) error {
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
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
