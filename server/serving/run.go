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

// Options are how a server is served.
type Options struct {
	// TLS is the configuration to serve with; nil serves plain HTTP.
	TLS *tls.Config

	// Handler is what requests come to; nil is the server itself.
	Handler http.Handler

	// Drain is how long requests are still taken at the end, while /readyz already
	// fails, so that load balancers send no more. In its second half clients that have a
	// connection are asked to come by a new one, which balancers lead to another server.
	Drain time.Duration

	// Timeout is how long requests under way may take at the end, 1 minute if it is
	// zero. What is left then is cut off.
	Timeout time.Duration

	// Logger receives at level debug what clients did to their connections; nil
	// discards.
	Logger *slog.Logger
}

// Bounds of what a client may hold open before a request is there.
const (
	headTime  = 10 * time.Second
	idleTime  = 3 * time.Minute
	headBytes = 64 << 10
)

// Run serves a server on a listener and runs its controllers until the context ends
// or serving fails. Then it ends in order: /readyz fails, watches end, requests under way
// finish, controllers stop, the store is closed. It takes the listener over. The error is nil
// if all of that went well.
func Run(ctx context.Context, s *server.Server, l net.Listener, o Options) error {
	conns := &listener{Listener: l, open: map[*conn]struct{}{}}
	web := &http.Server{
		Handler: conns.around(cmp.Or[http.Handler](o.Handler, s)), TLSConfig: o.TLS, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: headBytes,
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
	var both sync.WaitGroup
	both.Go(func() { failed <- serve(conns) })
	both.Go(func() { failed <- s.Run(context.WithoutCancel(ctx)) })
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
	both.Wait()
	return err
}

// shutdownTime is what controllers have to end in when no request is left, or all were cut off.
const shutdownTime = 10 * time.Second
