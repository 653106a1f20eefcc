package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/serving"
)

// identity holds the certificates of the server and the authorities that it trusts.
type identity struct {
	ca      *serving.Authority
	tls     *tls.Config
	clients *x509.CertPool // trusted authorities of client certificates
	caPEM   []byte         // authorities that verify the server
}

// identity loads or creates the certificates of the server. at is the address at which clients reach
// it.
func (f *flags) identity(at netip.Addr) (*identity, error) {
	ca, err := f.authority()
	if err != nil {
		return nil, err
	}
	id := &identity{ca: ca, clients: ca.Pool(), caPEM: ca.PEM()}
	if f.authn.clientCAFile != "" {
		bundle, err := os.ReadFile(f.authn.clientCAFile)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		if !id.clients.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("--client-ca-file: no certificate in %s", f.authn.clientCAFile)
		}
	}
	if id.tls, err = f.serving(ca, at); err != nil {
		return nil, err
	}
	if f.tlsCert != "" {
		if id.caPEM, err = os.ReadFile(f.tlsCert); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// serving returns the TLS configuration of the server. A generated certificate is also valid for the
// server's Service, through which pods reach the server.
func (f *flags) serving(ca *serving.Authority, at netip.Addr) (*tls.Config, error) {
	if f.tlsCert == "" {
		service := f.names.Wire(wellknown.ServerService) + ".default"
		return ca.TLS("localhost", "127.0.0.1", "::1", at.WithZone("").String(), f.bindAddress,
			f.network.First().String(), f.names.Wire(wellknown.ServerService), service, service+".svc", service+".svc.cluster.local")
	}
	cert, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
	return serving.TLS(cert), err
}

// authority returns the certificate authority of the server, which is generated once and kept in the
// data directory.
func (f *flags) authority() (*serving.Authority, error) {
	if f.dataDir == "" {
		return serving.NewAuthority("controlplane")
	}
	return serving.LoadAuthority(f.dataDir)
}

// writeKubeconfig writes a client configuration with a certificate of the administrator, and returns
// its path.
func (id *identity) writeKubeconfig(f *flags, server string) (string, error) {
	cert, key, err := id.ca.Client("admin", auth.Masters)
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
	return path, serving.WritePrivate(path, serving.Kubeconfig(server, "admin", id.caPEM, cert, key))
}
