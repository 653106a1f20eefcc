// Command admission is a server with two admission plugins of its own: one writes the name of the
// creator into each order, the other rejects orders above a limit that a configuration file sets.
//
//	go run ./examples/admission examples/admission/admission.yaml
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// Order is the kind that the plugins work on.
type Order struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		By       string `json:"by,omitempty" schema:"immutable"`
		Quantity int    `json:"quantity" schema:"min=1"`
	} `json:"spec"`
}

// orderWrites returns the rules of both plugins: creates and updates of orders.
func orderWrites() []admission.Rule {
	return []admission.Rule{{
		Operations: []admission.Operation{admission.Create, admission.Update},
		Groups:     []string{"example.com"}, Resources: []string{"orders"},
	}}
}

// signer returns a mutating plugin that records the creator of an order.
func signer() admission.Plugin {
	return admission.Plugin{
		Name: "OrderSigner", Rules: orderWrites(),
		Mutate: func(_ context.Context, r *admission.Request) error {
			if r.Operation == admission.Create {
				r.Object.Set(r.User.Name, "spec", "by")
			}
			return nil
		},
	}
}

// limit is the configuration of OrderLimit.
type limit struct {
	Most int `json:"most"`
}

// limiter returns a validating plugin. Setup is called once for each server, with the configuration of
// the plugin.
func limiter() admission.Plugin {
	return admission.Plugin{
		Name: "OrderLimit", Rules: orderWrites(), Config: limit{Most: 100},
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			most := env.Config.(limit).Most // the server checks the type of the configuration
			if most < 1 {
				return fmt.Errorf("most is %d, less than 1", most)
			}
			p.Validate = func(_ context.Context, r *admission.Request) error {
				if n := r.Object.Int("spec", "quantity"); n > int64(most) {
					return fmt.Errorf("%d is more than %d", n, most) // answered with 403 and this message
				}
				return nil
			}
			return nil
		},
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: admission FILE")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "admission:", err)
		os.Exit(1)
	}
}

// run serves with the plugins, configured by an AdmissionConfiguration. A program without a
// configuration file sets Options.Config instead.
func run(ctx context.Context, path string, out io.Writer) error {
	order := registry.Of(registry.Definition[Order]{Group: "example.com", Version: "v1", Scope: registry.Cluster})
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll, Admission: []admission.Plugin{signer(), limiter()}}
	b.Register(order)
	config, warnings, err := admission.LoadConfig(path, plugins.Table(b.Admission...), b.Names)
	if err != nil {
		return err
	}
	for _, text := range warnings {
		fmt.Fprintln(out, "warning:", text)
	}
	b.AdmissionOptions = admission.Options{Config: config}
	s, err := b.Build(ctx)
	if err != nil {
		return err
	}
	return errors.Join(tour(ctx, client.Of[Order](s.Conn(auth.User{Name: "jane"}), order), out), s.Shutdown(ctx))
}

func tour(ctx context.Context, orders *client.Objects[Order], out io.Writer) error {
	apples := &Order{ObjectMeta: meta.ObjectMeta{Name: "apples"}}
	apples.Spec.By, apples.Spec.Quantity = "somebody else", 5
	made, err := orders.Create(ctx, apples)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d %s for %s\n", made.Spec.Quantity, made.Name, made.Spec.By)
	_, err = orders.Modify(ctx, "apples", func(o *Order) error { o.Spec.Quantity = 6; return nil })
	fmt.Fprintln(out, "refused:", err)
	return nil
}
