package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"orch.io/controlplane/examples/internal/apiserver"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore"
)

// etcdFlags say where etcd is, under the names that the field's servers give them.
type etcdFlags struct {
	servers                   []string
	prefix                    string
	caFile, certFile, keyFile string
	compaction, sync          time.Duration
}

func etcd(set *flag.FlagSet) apiserver.Opener {
	f := &etcdFlags{}
	f.define(set)
	return f.open
}

func (f *etcdFlags) define(set *flag.FlagSet) {
	set.Func("etcd-servers", "members of etcd, scheme://ip:port, separated by commas", func(text string) error {
		f.servers = nil
		for s := range strings.SplitSeq(text, ",") {
			if s = strings.TrimSpace(s); s != "" {
				f.servers = append(f.servers, s)
			}
		}
		return nil
	})
	set.StringVar(&f.prefix, "etcd-prefix", "/registry", "what all keys in etcd begin with")
	set.StringVar(&f.caFile, "etcd-cafile", "", "authorities of etcd, PEM (default: the host's)")
	set.StringVar(&f.certFile, "etcd-certfile", "", "certificate that etcd is shown, PEM")
	set.StringVar(&f.keyFile, "etcd-keyfile", "", "key of that certificate, PEM")
	set.DurationVar(&f.sync, "etcd-sync-interval", 0, "how often etcd is asked for its members, which must advertise addresses that can be reached from here; 0 is never")
	set.DurationVar(&f.compaction, "etcd-compaction-interval", 5*time.Minute, "how long what was replaced can still be read; 0 is forever, or until somebody else compacts etcd")
}

// open opens the store. A password of etcd is in the environment, where others do not see it:
// ETCD_USERNAME and ETCD_PASSWORD.
func (f *etcdFlags) open(ctx context.Context, log *slog.Logger, server bool) (storage.Backend, error) {
	if len(f.servers) == 0 {
		return nil, errors.New("--storage etcd needs --etcd-servers")
	}
	config, err := f.tls()
	if err != nil {
		return nil, err
	}
	return etcdstore.Open(ctx, etcdstore.Options{
		Endpoints: f.servers, SyncEndpoints: f.sync, TLS: config, Prefix: f.prefix, Retain: f.retain(server), Logger: log,
		Username: os.Getenv("ETCD_USERNAME"), Password: os.Getenv("ETCD_PASSWORD"),
	})
}

// retain is for how long the history stays; below 0 nothing is forgotten, as under all commands.
func (f *etcdFlags) retain(server bool) time.Duration {
	if f.compaction <= 0 || !server {
		return -1
	}
	return f.compaction
}

// tls is nil if neither a file nor an address asks for it.
func (f *etcdFlags) tls() (*tls.Config, error) {
	if (f.certFile == "") != (f.keyFile == "") {
		return nil, errors.New("--etcd-certfile and --etcd-keyfile go together")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	wanted := f.caFile != "" || f.certFile != ""
	for _, s := range f.servers {
		wanted = wanted || strings.HasPrefix(s, "https://")
	}
	if !wanted {
		return nil, nil
	}
	if f.caFile != "" {
		bundle, err := os.ReadFile(f.caFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("--etcd-cafile: no certificate in %s", f.caFile)
		}
	}
	if f.certFile != "" {
		if _, err := f.certificate(nil); err != nil {
			return nil, fmt.Errorf("--etcd-certfile: %w", err)
		}
		c.GetClientCertificate = f.certificate
	}
	return c, nil
}

// certificate reads the files anew for each connection, since they may be replaced.
func (f *etcdFlags) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	own, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	return &own, err
}
