// Package apiserver implements the program of examples/apiserver, and of examples/envtest under the
// name kube-apiserver.
package apiserver

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/serving"
	"orch.io/controlplane/storage"
)

// Command is the program under one of its names. The zero Command is examples/apiserver.
type Command struct {
	// Name is the program name in messages; "apiserver" by default.
	Name string

	// Defaults replaces the default values of flags, by flag name.
	Defaults map[string]string

	// Ignored contains additional flags that are accepted and ignored; the server logs the given ones
	// at its start. The value is true if the flag can stand alone, without a value. If Ignored is not
	// nil, the server also ignores flags that have no effect without another flag, and feature gates
	// and versions that it does not have, instead of rejecting them.
	Ignored map[string]bool

	// IgnoredPlugins are admission plugins that the server does not have. Enabling or disabling them
	// has no effect.
	IgnoredPlugins []string

	// Quiet omits the output for interactive use: the client configuration, unless --kubeconfig is set,
	// and the example commands.
	Quiet bool

	// Engines are the values of --storage other than the directory. If it is empty, there is no such
	// flag.
	Engines map[string]Engine

	// Memory opens the store of a server with an empty --data-dir. If it is nil, the store is a
	// memstore.
	Memory func() storage.Backend

	// Controllers are additional controllers of the program.
	Controllers []client.Controller

	// End limits how long running requests may take during the shutdown; 0 is one minute.
	End time.Duration
}

// Main runs the program with the arguments of the process until a signal stops it. It exits with 1 on
// failure.
func (c Command) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal kills the process
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40) // most of the heap holds encoded objects without pointers, which are cheap for the collector
	}
	if err := c.run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cmp.Or(c.Name, "apiserver"), err)
		os.Exit(1)
	}
}

// run serves until the context ends, or runs the command that args names.
func (c Command) run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		if command, ok := c.commands()[args[0]]; ok {
			return command(ctx, args[1:], out)
		}
	}
	f, err := c.parseFlags(args)
	if err != nil {
		return err
	}
	log := newLogger(f.logLevel())
	if len(f.ignored) > 0 {
		log.Warn("ignoring unsupported flags", "flags", strings.Join(f.ignored, " "))
	}
	if len(f.otherGates) > 0 {
		log.Warn("ignoring unsupported feature gates", "gates", strings.Join(f.otherGates, " "))
	}
	if len(f.otherVersions) > 0 {
		log.Warn("ignoring unsupported versions in --runtime-config", "versions", strings.Join(f.otherVersions, " "))
	}
	store, err := f.openStore(ctx, log)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(f.bindAddress, fmt.Sprint(f.securePort)))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	defer l.Close() // a second time does not hurt
	at, err := reachableAddress(l.Addr(), net.InterfaceAddrs)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	id, err := f.identity(at.Addr())
	if err != nil {
		return errors.Join(err, store.Close())
	}
	b := &server.Builder{Names: f.names, Storage: store, Logger: log, Limits: f.limits.limits(), Release: f.release, RunControllers: f.authz.controllers, Features: f.features,
		Controllers: c.Controllers, Handlers: map[string]http.Handler{backupPath: backupHandler(store)},
		Serving: server.Serving{LivezGrace: f.livezGrace, RuntimeConfig: f.runtimeConfig, ShowHiddenMetricsFor: f.showHidden}}
	b.Register(f.kinds()...)
	b.Kind("", "Service").Allocator = f.network.Pool()
	closeAccess, err := f.configureAccess(b, id, at)
	defer closeAccess()
	if err != nil {
		return errors.Join(err, store.Close())
	}
	if err := f.admission.configure(b); err != nil {
		return errors.Join(err, store.Close())
	}
	if b.Connector, err = f.nodes.connector(); err != nil {
		return errors.Join(err, store.Close())
	}
	flushAudit, err := f.configureAudit(b, min(auditTimeout, cmp.Or(c.End, time.Minute)))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	defer flushAudit()
	s, err := b.Build(ctx)
	if err != nil {
		return f.advise(err)
	}
	if err := c.announce(f, id, at, out); err != nil {
		return errors.Join(err, l.Close(), s.Shutdown(context.Background()))
	}
	if m, ok := store.(*moving); ok {
		m.start(ctx, log, out)
	}
	return serving.Run(ctx, s, l, serving.Options{TLS: id.tls, Drain: f.shutdownDelay, Timeout: c.End, Logger: log})
}

// advise adds advice to the error about a store that uses the other naming profile.
func (f *flags) advise(err error) error {
	var other *server.NamesError
	if !errors.As(err, &other) {
		return err
	}
	where, take := f.dataDir, "another --data-dir"
	if f.storage != directory {
		where, take = f.storage, "another place in "+f.storage
	}
	return fmt.Errorf("%w: to use the data in %s, start with --names %s; to use --names %s, select %s",
		err, where, other.Store, other.Server, take)
}

// configureAccess configures authentication and authorization in b. The caller must call close, also after an
// error.
func (f *flags) configureAccess(b *server.Builder, id *identity, at netip.AddrPort) (close func(), err error) {
	var c access.Config
	closeAuthn, err := f.authenticate(b, id, &c)
	if err != nil {
		return closeAuthn, err
	}
	closeAuthz, err := f.authorize(id, &c)
	close = func() { closeAuthn(); closeAuthz() }
	if err != nil {
		return close, err
	}
	if c.Publish, err = f.publish(id, at); err != nil {
		return close, err
	}
	return close, access.Setup(b, c)
}

// announce prints that the server is ready and how to reach it.
func (c Command) announce(f *flags, id *identity, at netip.AddrPort, out io.Writer) error {
	address := at.String()
	if c.Quiet && f.kubeconfig == "" {
		fmt.Fprintf(out, "serving on https://%s\n", address)
		return nil
	}
	kubeconfig, err := id.writeKubeconfig(f, "https://"+address)
	if err != nil {
		return err
	}
	debug.FreeOSMemory() // the start leaves as much garbage as the server needs memory
	fmt.Fprintf(out, "serving on https://%s\n", address)
	fmt.Fprintf(out, "try: kubectl --kubeconfig %s get namespaces\n", kubeconfig)
	if f.names == names.Kubernetes {
		fmt.Fprintf(out, "     kubectl --kubeconfig %s create configmap hello --from-literal=greeting=world\n", kubeconfig)
	} else { // kubectl create sends a media type of the kubernetes profile
		fmt.Fprintf(out, "     echo '{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"hello\"}}' | kubectl --kubeconfig %s apply -f -\n", kubeconfig)
	}
	return nil
}
