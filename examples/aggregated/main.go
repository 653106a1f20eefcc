// Command aggregated is an extension API server: the API server of a cluster forwards the requests for
// one group to it. It authenticates the users that the cluster's front proxy passes, asks the cluster
// for authorization, and stores its objects itself.
//
//	go run ./examples/aggregated -kubeconfig CLUSTER -tls-cert-file CRT -tls-private-key-file KEY -dir harbor-data
//
// The directory manifests has the objects that the cluster needs.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/webhook"
	"orch.io/controlplane/client"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/serving"
	"orch.io/controlplane/storage/badgerstore"
)

const group = "harbor.example.com"

// Berth is a place for a ship in the harbor.
type Berth struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Length int `json:"length" schema:"required,min=1,max=400" doc:"the longest ship, in metres"`
	} `json:"spec"`
}

func berth() *registry.Kind {
	return registry.Of(registry.Definition[Berth]{Group: group, Version: "v1", Columns: []registry.Column{
		{Name: "Length", Type: "integer", JSONPath: ".spec.length"}, registry.AgeColumn(),
	}})
}

type options struct{ kubeconfig, listen, cert, key, dir string }

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:8443", "address to listen on")
	flag.StringVar(&o.cert, "tls-cert-file", "", "server certificate for SERVICE.NAMESPACE.svc, PEM")
	flag.StringVar(&o.key, "tls-private-key-file", "", "key of -tls-cert-file, PEM")
	flag.StringVar(&o.dir, "dir", "", "data directory; empty keeps objects in memory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "aggregated:", err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, o options, out io.Writer) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	config, err := kubeconfig.Load(o.kubeconfig)
	if err != nil {
		return err
	}
	cluster, err := config.Current()
	if err != nil {
		return err
	}
	conn := client.Conn{URL: cluster.URL.String(), Transport: cluster.Transport(), Names: names.Kubernetes, Log: log}
	defer (&http.Client{Transport: conn.Transport}).CloseIdleConnections()
	proxy := newTrust(conn)
	if err := proxy.load(ctx); err != nil {
		return err
	}
	reviews := *cluster
	reviews.URL = cluster.URL.JoinPath("apis/authorization.k8s.io/v1/subjectaccessreviews")
	rights, err := webhook.NewAuthorizer(webhook.AuthorizerConfig{
		Remote: &reviews, Names: names.Kubernetes, KeepAllowed: 10 * time.Second, KeepDenied: 10 * time.Second,
	})
	if err != nil {
		return err
	}
	defer rights.Close()
	cert, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return err
	}
	b := &server.Builder{
		Names: names.Kubernetes, Logger: log, Admission: []admission.Plugin{namespaces(conn)},
		Authenticators: []auth.Authenticator{proxy, auth.AnonymousAccess},
		Authorizer:     auth.Chain(auth.Superuser(auth.Masters), rights),
		RunControllers: []string{"envtest"}, // the controllers of the cluster also delete namespaces and collect garbage here
	}
	b.Register(berth())
	return serve(ctx, b, o, proxy, serving.TLS(cert), out)
}

// serve runs the server, and meanwhile follows the cluster's settings.
func serve(ctx context.Context, b *server.Builder, o options, proxy *trust, config *tls.Config, out io.Writer) (err error) {
	if o.dir != "" {
		if b.Storage, err = badgerstore.Open(badgerstore.Options{Dir: o.dir, Logger: b.Logger}); err != nil {
			return err
		}
	}
	s, err := b.Build(ctx)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return errors.Join(err, s.Shutdown(ctx))
	}
	fmt.Fprintf(out, "serving %s on https://%s\n", group, l.Addr())
	following, stop := context.WithCancel(ctx)
	followed := make(chan error, 1)
	go func() { followed <- proxy.follow(following) }()
	err = serving.Run(ctx, s, l, serving.Options{TLS: config})
	stop()
	return errors.Join(err, <-followed)
}
