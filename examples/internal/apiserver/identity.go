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

// identity is what the server shows and whom it trusts.
type identity struct {
	ca      *serving.Authority
	tls     *tls.Config
	clients *x509.CertPool // authorities of client certificates
	caPEM   []byte         // what clients verify the server with
}

// identity loads or makes the server's certificates; at is where it is reached.
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
			return nil, fmt.Errorf("--client-ca-file: %s holds no certificate", f.authn.clientCAFile)
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

// serving returns the server's certificate, with which pods reach it by its service too.
func (f *flags) serving(ca *serving.Authority, at netip.Addr) (*tls.Config, error) {
	if f.tlsCert == "" {
		service := f.names.Wire(wellknown.ServerService) + ".default"
		return ca.TLS("localhost", "127.0.0.1", "::1", at.WithZone("").String(), f.bindAddress,
			f.network.First().String(), f.names.Wire(wellknown.ServerService), service, service+".svc", service+".svc.cluster.local")
	}
	cert, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
	return serving.TLS(cert), err
}

// authority is the self-made certificate authority, kept in the data directory.
func (f *flags) authority() (*serving.Authority, error) {
	if f.dataDir == "" {
		return serving.NewAuthority("controlplane")
	}
	return serving.LoadAuthority(f.dataDir)
}

// writeKubeconfig writes a client configuration with a certificate of the
// admin, and returns its path.
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
