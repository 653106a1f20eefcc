package serving

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"orch.io/controlplane/server"
)

// Options configure Run.
type Options struct {
	// TLS is the TLS configuration; nil serves plain HTTP.
	TLS *tls.Config

	// Handler handles the requests; nil is the server itself.
	Handler http.Handler

	// Drain is how long the server accepts requests after ctx ended, while /readyz fails, so that load
	// balancers stop sending requests. In the second half the server asks clients to open new connections,
	// which load balancers route to another server.
	Drain time.Duration

	// Timeout is how long requests in flight may take after Drain. 0 means 1 minute. Then their connections
	// are cut.
	Timeout time.Duration

	// Logger receives connection errors at level debug; nil discards them.
	Logger *slog.Logger
}

// The limits of connections without a complete request.
const (
	headTime  = 10 * time.Second
	idleTime  = 3 * time.Minute
	headBytes = 64 << 10
)

// Run serves s on a listener and runs its controllers until ctx ends or serving fails. Then it shuts down:
// /readyz fails, watches end, requests in flight complete, controllers stop, and the store is closed. Run
// closes the listener. It returns nil if ctx ended and the shutdown succeeded.
func Run(ctx context.Context, s *server.Server, l net.Listener, o Options) error {
	conns := &listener{Listener: l, open: map[*conn]struct{}{}}
	web := &http.Server{
		Handler: conns.wrap(cmp.Or[http.Handler](o.Handler, s)), TLSConfig: o.TLS, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: headBytes,
		ConnState: conns.follow,
	}
	errorLog, err := newErrorLog(s.Metrics(), o.Logger)
	if err != nil {
		return errors.Join(err, l.Close(), s.Shutdown(ctx))
	}
	web.ErrorLog = errorLog
	serve := web.Serve
	if o.TLS != nil {
		serve = func(l net.Listener) error { return web.ServeTLS(l, "", "") }
	}
	failed := make(chan error, 2)
	var tasks sync.WaitGroup
	tasks.Go(func() { failed <- serve(conns) })
	tasks.Go(func() { failed <- s.Run(context.WithoutCancel(ctx)) })
	select {
	case <-ctx.Done():
		s.Drain()
		time.Sleep(o.Drain / 2)
		conns.parting.Store(true)
		time.Sleep(o.Drain - o.Drain/2)
	case err = <-failed:
		s.Drain()
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(o.Timeout, time.Minute))
	defer cancel()
	err = errors.Join(err, conns.end(end, web, s.EndWatches))
	rest, cancelRest := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancelRest()
	err = errors.Join(err, s.Shutdown(rest))
	tasks.Wait()
	return err
}

// shutdownTime is how long controllers may take to stop after the last request.
const shutdownTime = 10 * time.Second
