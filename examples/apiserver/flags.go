package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"orch.io/controlplane/registry/names"
)

// flags are the command line, see parseFlags.
type flags struct {
	bindAddress   string
	securePort    int
	dataDir       string
	names         names.Profile
	kubeconfig    string
	tlsCert       string
	tlsKey        string
	livezGrace    time.Duration
	shutdownDelay time.Duration
	authn         authnFlags
	authz         authzFlags
	audit         auditFlags
	network       networkFlags
}

func parseFlags(args []string) (*flags, error) {
	f := &flags{}
	profile := ""
	set := flag.NewFlagSet("apiserver", flag.ContinueOnError)
	set.StringVar(&f.bindAddress, "bind-address", "127.0.0.1", "address to listen on")
	set.IntVar(&f.securePort, "secure-port", 6443, "port to serve HTTPS on; 0 takes a free one")
	set.StringVar(&f.dataDir, "data-dir", "./controlplane-data", "directory of the data; empty means memory")
	set.StringVar(&profile, "names", "orch", "names on the wire: orch, or kubernetes for kubectl and client-go")
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "where the admin's client configuration is written, mode 0600 (default: admin.kubeconfig in the data directory)")
	set.StringVar(&f.tlsCert, "tls-cert-file", "", "certificate of the server, PEM (default: self-made)")
	set.StringVar(&f.tlsKey, "tls-private-key-file", "", "key of the certificate, PEM")
	set.DurationVar(&f.livezGrace, "livez-grace-period", 0, "time after the start in which /livez does not fail")
	set.DurationVar(&f.shutdownDelay, "shutdown-delay-duration", 0, "time between a failing /readyz and the end")
	f.authn.define(set)
	f.authz.define(set)
	f.audit.define(set)
	f.network.define(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	f.authz.defaults(set, &f.authn)
	var ok bool
	if f.names, ok = names.Parse(profile); !ok {
		return nil, fmt.Errorf("--names is orch or kubernetes, not %q", profile)
	}
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return nil, fmt.Errorf("--tls-cert-file and --tls-private-key-file go together")
	}
	if f.kubeconfig == "" && f.dataDir != "" {
		f.kubeconfig = filepath.Join(f.dataDir, "admin.kubeconfig")
	}
	return f, nil
}
