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

// etcdFlags configure the connection to etcd, with the flag names of kube-apiserver.
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
	set.Func("etcd-servers", "etcd members, scheme://ip:port, separated by commas", func(text string) error {
		f.servers = nil
		for s := range strings.SplitSeq(text, ",") {
			if s = strings.TrimSpace(s); s != "" {
				f.servers = append(f.servers, s)
			}
		}
		return nil
	})
	set.StringVar(&f.prefix, "etcd-prefix", "/registry", "prefix of all keys in etcd")
	set.StringVar(&f.caFile, "etcd-cafile", "", "certificate authorities of etcd, PEM (default: those of the host)")
	set.StringVar(&f.certFile, "etcd-certfile", "", "client certificate for etcd, PEM")
	set.StringVar(&f.keyFile, "etcd-keyfile", "", "key of --etcd-certfile, PEM")
	set.DurationVar(&f.sync, "etcd-sync-interval", 0, "interval at which the member list of etcd is read; members must advertise addresses that this server can reach; 0 turns it off")
	set.DurationVar(&f.compaction, "etcd-compaction-interval", 5*time.Minute, "how long history is retained; 0 retains it until another program compacts etcd")
}

// open opens the store. The user and password of etcd come from the environment variables ETCD_USERNAME
// and ETCD_PASSWORD, which other users cannot see.
func (f *etcdFlags) open(ctx context.Context, log *slog.Logger, server bool) (storage.Backend, error) {
	if len(f.servers) == 0 {
		return nil, errors.New("--storage etcd requires --etcd-servers")
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

// retain returns how long the history is retained. A negative value turns compaction off, which all
// commands do.
func (f *etcdFlags) retain(server bool) time.Duration {
	if f.compaction <= 0 || !server {
		return -1
	}
	return f.compaction
}

// tls returns nil if neither a file nor an address requires TLS.
func (f *etcdFlags) tls() (*tls.Config, error) {
	if (f.certFile == "") != (f.keyFile == "") {
		return nil, errors.New("--etcd-certfile and --etcd-keyfile must be set together")
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

// certificate reads the files for each connection, because they may be replaced.
func (f *etcdFlags) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	own, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	return &own, err
}
