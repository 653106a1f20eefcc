// Command binary is a server that others can install: it has four kinds, a rule and an exact quota as
// admission plugins, a data directory, TLS with its own authority, roles, and a kubeconfig of the
// administrator.
//
//	go run ./examples/binary -dir kitchen-data
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/serving"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
)

func main() {
	dir := flag.String("dir", "kitchen-data", "data directory")
	listen := flag.String("listen", "127.0.0.1:6443", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir, *listen, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "binary:", err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, dir, listen string, out io.Writer) error {
	ca, err := serving.LoadAuthority(dir)
	if err != nil {
		return err
	}
	s, err := open(ctx, dir, ca)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return errors.Join(err, s.Shutdown(ctx))
	}
	host, _, _ := net.SplitHostPort(l.Addr().String())
	tls, err := ca.TLS("localhost", host)
	if err != nil {
		return errors.Join(err, l.Close(), s.Shutdown(ctx))
	}
	path, err := writeKubeconfig(dir, ca, "https://"+l.Addr().String())
	if err != nil {
		return errors.Join(err, l.Close(), s.Shutdown(ctx))
	}
	fmt.Fprintf(out, "serving on https://%s\ntry: kubectl --kubeconfig %s get recipes\n", l.Addr(), path)
	return serving.Run(ctx, s, l, serving.Options{TLS: tls})
}

// open builds the server with the store in the directory.
func open(ctx context.Context, dir string, ca *serving.Authority) (*server.Server, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, err := badgerstore.Open(badgerstore.Options{Dir: filepath.Join(dir, "objects"), Logger: log})
	if err != nil {
		return nil, err
	}
	return build(ctx, store, ca, log)
}

// build builds the server with a store. The built-in kinds are registered for namespaces and roles.
func build(ctx context.Context, store storage.Backend, ca *serving.Authority, log *slog.Logger) (*server.Server, error) {
	b := &server.Builder{Names: names.Kubernetes, Storage: store, Logger: log, Admission: []admission.Plugin{allergens(), shelfSpace()}}
	b.Register(builtin.Kinds()...)
	b.Register(kinds()...)
	b.Register(quotaKinds()...)
	if err := access.Setup(b, access.Config{ClientCAs: ca.Pool(), RootCA: ca.PEM()}); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return b.Build(ctx)
}

// writeKubeconfig writes the kubeconfig of the administrator, with a certificate that is valid for a
// year.
func writeKubeconfig(dir string, ca *serving.Authority, url string) (string, error) {
	text, err := ca.Kubeconfig(url, "admin", auth.Masters)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "admin.kubeconfig")
	return path, serving.WritePrivate(path, text)
}
