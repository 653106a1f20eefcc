package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/wellknown"
)

var services = meta.GroupResource{Resource: "services"}

// ServiceNetworks maintains the ServiceCIDRs from which services get their addresses. It creates the networks of the
// server, sets the condition Ready of all networks, and keeps a network that is being deleted as long as a service
// has an address that no other network contains. A service that is written while a network is deleted may keep such
// an address. The address still belongs to that service alone.
type ServiceNetworks struct {
	Names   names.Profile
	Initial []*meta.Object // the networks of the server
}

func (n ServiceNetworks) networks() meta.GroupResource {
	return meta.GroupResource{Group: n.Names.Group(wellknown.GroupNetworking), Resource: "servicecidrs"}
}

// Start creates the networks of the server. An existing network that cannot be read is not an error.
func (n ServiceNetworks) Start(ctx context.Context, c client.Client) error {
	for _, o := range n.Initial {
		var unreadable *client.UnreadableError
		if err := n.reconcile(ctx, c, o.Name()); err != nil && !errors.As(err, &unreadable) {
			return fmt.Errorf("creating %s %s: %w", n.networks(), o.Name(), err)
		}
	}
	return nil
}

// Controller returns the controller that reconciles networks that change, and networks that are being deleted when a
// service or another network changes. Its keys are names of networks. Services are listed only for a network that is
// being deleted.
func (n ServiceNetworks) Controller() client.Controller {
	leaving := map[string]bool{}
	return client.Controller{
		Name: "service-cidr", Types: []meta.GroupResource{n.networks(), services},
		MapEvent: func(e client.Event) []string {
			if e.Resource == services {
				if e.Old == nil || e.Object != nil && slices.Equal(addressesOf(e.Old), addressesOf(e.Object)) {
					return nil
				}
				return slices.Collect(maps.Keys(leaving))
			}
			delete(leaving, e.Key.Name)
			keys := append(slices.Collect(maps.Keys(leaving)), e.Key.Name)
			if heldBy(e.Object, n.Names.Wire(wellknown.NetworkProtection)) {
				leaving[e.Key.Name] = true
			}
			return keys
		},
		Forget: func() { clear(leaving) },
		Reconcile: func(ctx context.Context, client client.Client, name string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			return 0, n.reconcile(ctx, client, name)
		},
	}
}

func (n ServiceNetworks) reconcile(ctx context.Context, client client.Client, name string) error {
	key, finalizer := meta.Key{Name: name}, n.Names.Wire(wellknown.NetworkProtection)
	o, err := client.Get(ctx, n.networks(), key)
	if meta.IsNotFound(err) {
		if o, err = n.restore(ctx, client, name); o == nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if o.Terminating() {
		err := removeFinalizer(ctx, client, n.networks(), key, finalizer, func(o *meta.Object) (bool, error) { return n.used(ctx, client, o) })
		if err != nil {
			return err
		}
		return n.writeStatus(ctx, client, key)
	}
	_, err = client.Update(ctx, n.networks(), key, "", func(o *meta.Object) error {
		if !o.Terminating() && !slices.Contains(o.Finalizers(), finalizer) {
			o.SetFinalizers(append(o.Finalizers(), finalizer))
		}
		return nil
	})
	if err != nil {
		return unlessGone(err)
	}
	return n.writeStatus(ctx, client, key)
}

// restore creates a network if it is missing and is one of the server's networks. Otherwise it returns nil. It acts
// as the server, because the role of the controller does not allow creates.
func (n ServiceNetworks) restore(ctx context.Context, client client.Client, name string) (*meta.Object, error) {
	i := slices.IndexFunc(n.Initial, func(o *meta.Object) bool { return o.Name() == name })
	if i < 0 {
		return nil, nil
	}
	o := n.Initial[i].Clone()
	o.SetFinalizers([]string{n.Names.Wire(wellknown.NetworkProtection)})
	o, err := client.Create(actor.AsServer(ctx), n.networks(), o)
	if meta.IsAlreadyExists(err) { // another server has created it
		return nil, nil
	}
	return o, err
}

// writeStatus sets the condition Ready of a network.
func (n ServiceNetworks) writeStatus(ctx context.Context, client client.Client, key meta.Key) error {
	_, err := client.Update(ctx, n.networks(), key, "status", func(o *meta.Object) error {
		if o.Terminating() {
			o.SetCondition("Ready", "False", "Terminating", "services use addresses of the network that no other network contains")
		} else {
			o.SetCondition("Ready", "True", "", "addresses of the network are available to services")
		}
		return nil
	})
	return unlessGone(err)
}

// used reports whether a service has an address that the network contains and no other network that stays contains.
func (n ServiceNetworks) used(ctx context.Context, client client.Client, network *meta.Object) (bool, error) {
	list, err := client.List(ctx, n.networks(), "")
	if err != nil {
		return true, err
	}
	list = slices.DeleteFunc(list, func(o *meta.Object) bool { return o.Terminating() })
	all, err := client.List(ctx, services, "")
	if err != nil {
		return true, err
	}
	for _, service := range all {
		for _, a := range addressesOf(service) {
			has := func(o *meta.Object) bool { return hasAddress(o, a) }
			if has(network) && !slices.ContainsFunc(list, has) {
				return true, nil
			}
		}
	}
	return false, nil
}

func addressesOf(service *meta.Object) (list []netip.Addr) {
	for _, text := range service.Strings("spec", "clusterIPs") {
		if a, err := netip.ParseAddr(text); err == nil {
			list = append(list, a)
		}
	}
	return list
}

func hasAddress(network *meta.Object, a netip.Addr) bool {
	return slices.ContainsFunc(network.Strings("spec", "cidrs"), func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && p.Contains(a)
	})
}
