package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/nodeagent"
)

// nodeFlags configure the connections to the kubelets of nodes.
type nodeFlags struct{ authority, certificate, key, addressTypes string }

func (f *nodeFlags) define(set *flag.FlagSet) {
	set.StringVar(&f.authority, "kubelet-certificate-authority", "", "certificate authorities of kubelets, PEM; without it, log, exec, attach, port-forward and node proxy requests fail")
	set.StringVar(&f.certificate, "kubelet-client-certificate", "", "client certificate for requests to kubelets, PEM")
	set.StringVar(&f.key, "kubelet-client-key", "", "key of --kubelet-client-certificate, PEM")
	set.StringVar(&f.addressTypes, "kubelet-preferred-address-types", strings.Join(nodeagent.AddressTypes(), ","), "types of node addresses to use, in order of preference")
}

func (f *nodeFlags) validate() []error {
	for _, kind := range strings.Split(f.addressTypes, ",") {
		if !slices.Contains(nodeagent.AddressTypes(), kind) {
			return []error{fmt.Errorf("--kubelet-preferred-address-types: unknown type %q", kind)}
		}
	}
	return nil
}

// connector returns the connector to kubelets, or nil without an authority that verifies them.
func (f *nodeFlags) connector() (server.Connector, error) {
	if f.authority == "" {
		return nil, nil
	}
	bundle, err := os.ReadFile(f.authority)
	if err != nil {
		return nil, fmt.Errorf("--kubelet-certificate-authority: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !c.RootCAs.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("--kubelet-certificate-authority: no certificate in %s", f.authority)
	}
	if f.certificate != "" {
		own, err := tls.LoadX509KeyPair(f.certificate, f.key)
		if err != nil {
			return nil, fmt.Errorf("--kubelet-client-certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return nodeagent.New(nodeagent.Config{TLS: c, AddressTypes: strings.Split(f.addressTypes, ",")}), nil
}
