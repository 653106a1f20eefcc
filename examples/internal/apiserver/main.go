// Package apiserver is the program that examples/apiserver is, and that examples/envtest
// is under the name of kube-apiserver.
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
	// Name is how it calls itself; empty is apiserver.
	Name string

	// Defaults are values of flags that are not given, in place of the usual ones.
	Defaults map[string]string

	// Ignored are further flags, which are taken and have no effect: the server logs at
	// its start which of them it was given. The value tells those that can stand alone,
	// without a value. If it is not nil, what the other flags ask for without effect is
	// taken likewise: flags that mean nothing without another one, and feature gates and versions
	// that the server does not have.
	Ignored map[string]bool

	// IgnoredPlugins are admission plugins that the server does not have; to enable or
	// disable them has no effect.
	IgnoredPlugins []string

	// Quiet leaves out what people need: a client configuration, unless --kubeconfig says
	// where to write one, and the commands to try.
	Quiet bool

	// Engines are what --storage can name beside the directory; without any there is no
	// such flag.
	Engines map[string]Engine

	// Memory makes the store of a server whose --data-dir is empty; nil makes a memstore.
	Memory func() storage.Backend

	// Controllers are the program's own.
	Controllers []client.Controller

	// End is how long requests under way may take at the end; zero is a minute.
	End time.Duration
}

// Main runs the program with the arguments of the process, until a signal ends it, and
// exits with 1 if anything is wrong.
func (c Command) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40) // most of the heap is bytes of objects, which cost little to collect around
	}
	if err := c.run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cmp.Or(c.Name, "apiserver"), err)
		os.Exit(1)
	}
}

// run serves until the context ends, or does what another command says.
func (c Command) run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		if do, ok := c.commands()[args[0]]; ok {
			return do(ctx, args[1:], out)
		}
	}
	f, err := c.parseFlags(args)
	if err != nil {
		return err
	}
	log := logFrom(f.logLevel())
	if len(f.ignored) > 0 {
		log.Warn("these flags have no effect here", "flags", strings.Join(f.ignored, " "))
	}
	if len(f.otherGates) > 0 {
		log.Warn("these feature gates have no effect here", "gates", strings.Join(f.otherGates, " "))
	}
	if len(f.otherVersions) > 0 {
		log.Warn("--runtime-config: this server does not have these versions", "versions", strings.Join(f.otherVersions, " "))
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
	at, err := reachable(l.Addr(), net.InterfaceAddrs)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	id, err := f.identity(at.Addr())
	if err != nil {
		return errors.Join(err, store.Close())
	}
	b := &server.Builder{Names: f.names, Storage: store, Logger: log, Limits: f.limits.limits(), Release: f.release, RunControllers: f.authz.controllers, Features: f.features,
		Controllers: c.Controllers, Handlers: map[string]http.Handler{backupPath: backups(store)},
		Serving: server.Serving{LivezGrace: f.livezGrace, RuntimeConfig: f.runtimeConfig, ShowHiddenMetricsFor: f.showHidden}}
	b.Register(f.kinds()...)
	b.Kind("", "Service").Allocator = f.network.Pool()
	hangUp, err := f.access(b, id, at)
	defer hangUp()
	if err != nil {
		return errors.Join(err, store.Close())
	}
	if err := f.admission.configure(b); err != nil {
		return errors.Join(err, store.Close())
	}
	if b.Connector, err = f.nodes.connector(); err != nil {
		return errors.Join(err, store.Close())
	}
	flushAudit, err := f.record(b, min(auditPatience, cmp.Or(c.End, time.Minute)))
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

// advise says what to do about a store that was filled under other names.
func (f *flags) advise(err error) error {
	var other *server.NamesError
	if !errors.As(err, &other) {
		return err
	}
	where, take := f.dataDir, "another directory with --data-dir"
	if f.storage != directory {
		where, take = f.storage, "another place in "+f.storage
	}
	return fmt.Errorf("%w: for what is in %s start with --names %s, for a server with --names %s take %s",
		err, where, other.Store, other.Server, take)
}

// access puts the access control that the flags describe into a server. close
// ends what was opened.
func (f *flags) access(b *server.Builder, id *identity, at netip.AddrPort) (close func(), err error) {
	var c access.Config
	hangUp, err := f.authenticate(b, id, &c)
	if err != nil {
		return hangUp, err
	}
	hangUpToo, err := f.authorize(id, &c)
	close = func() { hangUp(); hangUpToo() }
	if err != nil {
		return close, err
	}
	if c.Publish, err = f.publish(id, at); err != nil {
		return close, err
	}
	return close, access.Setup(b, c)
}

// announce tells that the server is ready, and how to reach it.
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
	debug.FreeOSMemory() // the start leaves as much behind as the server needs
	fmt.Fprintf(out, "serving on https://%s\n", address)
	fmt.Fprintf(out, "try: kubectl --kubeconfig %s get namespaces\n", kubeconfig)
	if f.names == names.Kubernetes {
		fmt.Fprintf(out, "     kubectl --kubeconfig %s create configmap hello --from-literal=greeting=world\n", kubeconfig)
	} else { // what kubectl makes of a command line goes in a media type of the other names
		fmt.Fprintf(out, "     echo '{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"hello\"}}' | kubectl --kubeconfig %s apply -f -\n", kubeconfig)
	}
	return nil
}
