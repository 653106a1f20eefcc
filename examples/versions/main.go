// Command versions is a server with a kind in two versions, each with its own struct, and a client of
// each version. Both clients use the same object in their version, and neither loses fields that only
// the other version has.
//
//	go run ./examples/versions
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// Upstream is the kind in v1, the hub: hooks, admission and controllers use this version.
type Upstream struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Host           string `json:"host" schema:"required,minLength=1"`
		Port           int    `json:"port" schema:"min=1,max=65535"`
		TimeoutSeconds int    `json:"timeoutSeconds,omitempty" schema:"default=10,min=1"`
	} `json:"spec"`
}

// UpstreamV1beta1 is the older version: a single address string, without a timeout.
type UpstreamV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Address         string `json:"address" schema:"required"`
}

// kind returns the kind with the hub and the older version. Objects are stored as v1.
func kind() *registry.Kind {
	return registry.Of(registry.Definition[Upstream]{
		Group: "example.com", Version: "v1", Scope: registry.Cluster,
		Versions: []registry.VersionOf[Upstream]{registry.Spoke[UpstreamV1beta1, Upstream]{
			Version: "v1beta1", ToHub: toHub, FromHub: fromHub,
		}},
	})
}

// toHub does not set fields that the older version lacks: the server preserves them.
func toHub(in *UpstreamV1beta1, out *Upstream) error {
	host, digits, err := net.SplitHostPort(in.Address)
	port, notNumber := strconv.Atoi(digits)
	if err != nil || notNumber != nil || digits != strconv.Itoa(port) {
		var faults check.Violations
		faults.Invalid(check.At("address"), in.Address, "must be HOST:PORT")
		return faults.Err()
	}
	out.Spec.Host, out.Spec.Port = host, port
	return nil
}

func fromHub(in *Upstream, out *UpstreamV1beta1) error {
	out.Address = net.JoinHostPort(in.Spec.Host, strconv.Itoa(in.Spec.Port))
	return nil
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(kind())
	s, err := b.Build(ctx)
	if err != nil {
		return err
	}
	return errors.Join(tour(ctx, s.Conn(auth.User{Name: "visitor"}), out), s.Shutdown(ctx))
}

// tour uses a client of each version. The struct selects the version of a client.
func tour(ctx context.Context, conn client.Conn, out io.Writer) error {
	older, newer := client.Of[UpstreamV1beta1](conn, kind()), client.Of[Upstream](conn, kind())
	made, err := older.Create(ctx, &UpstreamV1beta1{ObjectMeta: meta.ObjectMeta{Name: "db"}, Address: "db.example.com:5432"})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "v1beta1 made", made.Address)
	slow, err := newer.Modify(ctx, "db", func(u *Upstream) error { u.Spec.TimeoutSeconds = 60; return nil })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "v1 sees %+v\n", slow.Spec)
	if _, err := older.Modify(ctx, "db", func(u *UpstreamV1beta1) error { u.Address = "[::1]:5433"; return nil }); err != nil {
		return err
	}
	moved, err := newer.Get(ctx, "db")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "v1 sees %+v\n", moved.Spec)
	_, err = older.Modify(ctx, "db", func(u *UpstreamV1beta1) error { u.Address = "nowhere"; return nil })
	fmt.Fprintln(out, "refused:", err)
	return nil
}
