package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/extras"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

// Publish is what a server tells others of itself, in objects that it keeps
// while its controllers run: made when they are missing, put right when they were
// changed. What is left empty is not told.
type Publish struct {
	// Address and Port make the service by which programs in the cluster find
	// the server: its address, the first of the network of services, and the
	// port that the server listens on. Where another service has the address
	// already, a warning names it, and the service is made when that is gone.
	Address netip.Addr
	Port    int

	// Endpoint is where that service leads to, at Port: an address of the server
	// itself, in its Endpoints and its EndpointSlice. One that means nothing on
	// other machines, such as a loopback address, is not told. Of several servers over one
	// store all that live are told that have the same Port and an address of the same family,
	// see server.Builder.Advertise: one that ends in order is gone at once, one that dies when
	// its Lease has run out.
	Endpoint netip.Addr

	// Authentication is what servers that serve further groups on behalf of this
	// one verify callers with, in a ConfigMap that the reader role gives access
	// to: authorities in PEM by the key client-ca-file, and by which
	// certificate and headers this server tells them who calls.
	Authentication Authentication

	// URL is where machines that join reach the server. With BootstrapTokens it
	// stands, together with RootCA, in the ConfigMap cluster-info. The role and
	// the binding that let anybody read it are made before it and never again
	// while it is there: deleting one of them closes it. Its text follows URL and
	// RootCA until somebody else writes it.
	URL string
}

// Authentication are the settings by which callers are verified; a nil list is
// not told.
type Authentication struct {
	ClientCAs []byte // PEM

	// ProxyCAs are the authorities, in PEM, of server.Serving.ProxyCertificate; without them
	// nothing is told of how this server tells others who calls. With them the headers are
	// told that it sends.
	ProxyCAs   []byte
	ProxyNames []string // that the certificate may have; none: any
}

func (a Authentication) data() map[string]any {
	data := map[string]any{}
	if len(a.ClientCAs) > 0 {
		data["client-ca-file"] = string(a.ClientCAs)
	}
	if len(a.ProxyCAs) == 0 {
		return data
	}
	data["requestheader-client-ca-file"] = string(a.ProxyCAs)
	for key, list := range map[string][]string{
		"requestheader-allowed-names": a.ProxyNames, "requestheader-username-headers": {extras.UserHeader}, "requestheader-uid-headers": {extras.UIDHeader},
		"requestheader-group-headers": {extras.GroupHeader}, "requestheader-extra-headers-prefix": {extras.Prefix},
	} {
		if list == nil {
			list = []string{}
		}
		text, _ := json.Marshal(list) // of strings: it cannot fail
		data[key] = string(text)
	}
	return data
}

// kept is an object that the server keeps.
type kept struct {
	resource meta.GroupResource
	object   *meta.Object
	own      [][]string // the paths that are put right; none: only a missing object is made
	fixed    [][]string // the paths that no update may change: an object that differs there is made anew
	manager  string     // the paths are put right only while nobody but this manager has written them; empty: always
	before   []kept     // what is made before a missing object, and only then

	// lead lets object lead to the servers; nil: it does not depend on them.
	lead func(object *meta.Object, servers []netip.Addr)
}

// objects are those that c keeps, under the names of p.
func (c Config) objects(p names.Profile) (list []kept) {
	add := func(r meta.GroupResource, apiVersion, kind, namespace, name string, body map[string]any, own ...[]string) {
		list = append(list, kept{resource: r, object: newObject(apiVersion, kind, namespace, name, body), own: own})
	}
	configMaps := meta.GroupResource{Resource: "configmaps"}
	if c.Publish.Address.IsValid() {
		add(meta.GroupResource{Resource: "services"}, "v1", "Service", "default", p.Wire(names.ServerService), c.Publish.service(p),
			[]string{"spec", "ports"}, []string{"spec", "type"}, []string{"spec", "sessionAffinity"},
			[]string{"spec", "clusterIP"}, []string{"spec", "clusterIPs"})
		if _, told := c.Publish.at(); told {
			list = append(list, c.Publish.endpoints(p)...)
		}
	}
	if data := c.Publish.Authentication.data(); len(data) > 0 {
		add(configMaps, "v1", "ConfigMap", p.SystemNamespace("system"), names.ReaderConfigMap, map[string]any{"data": data}, []string{"data"})
	}
	if c.BootstrapTokens && c.Publish.URL != "" {
		list = append(list, c.clusterInfo(p))
	}
	return list
}

func newObject(apiVersion, kind, namespace, name string, body map[string]any) *meta.Object {
	body["apiVersion"], body["kind"] = apiVersion, kind
	o := meta.NewObject(body)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// clusterInfo is what machines that join read before they trust anybody. The
// role and its binding are no objects of their own in the list: who deletes them
// means that nobody reads it any more.
func (c Config) clusterInfo(p names.Profile) kept {
	public, group := p.SystemNamespace("public"), p.Group(names.GroupRBAC)
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n",
		c.Publish.URL, base64.StdEncoding.EncodeToString(c.RootCA))
	role := newObject(group+"/v1", "Role", public, p.Wire(names.ClusterInfoRole), map[string]any{"rules": []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{names.ClusterInfo}, "verbs": []any{"get"},
	}}})
	binding := newObject(group+"/v1", "RoleBinding", public, p.Wire(names.ClusterInfoRole), map[string]any{
		"roleRef":  map[string]any{"apiGroup": group, "kind": "Role", "name": p.Wire(names.ClusterInfoRole)},
		"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": auth.Anonymous}},
	})
	return kept{
		resource: meta.GroupResource{Resource: "configmaps"},
		object:   newObject("v1", "ConfigMap", public, names.ClusterInfo, map[string]any{"data": map[string]any{"kubeconfig": config}}),
		own:      [][]string{{"data", "kubeconfig"}}, manager: p.Wire(names.ServerManager),
		before: []kept{
			{resource: meta.GroupResource{Group: group, Resource: "roles"}, object: role},
			{resource: meta.GroupResource{Group: group, Resource: "rolebindings"}, object: binding},
		},
	}
}

func (p Publish) service(profile names.Profile) map[string]any {
	provider := profile.Wire(names.ServerService)
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"component": "apiserver", "provider": provider}},
		"spec": map[string]any{
			"type": "ClusterIP", "clusterIP": p.Address.String(), "clusterIPs": []any{p.Address.String()}, "sessionAffinity": "None",
			"ports": []any{map[string]any{"name": "https", "protocol": "TCP", "port": int64(443), "targetPort": int64(p.Port)}},
		},
	}
}

// keeper keeps objects.
type keeper struct {
	places  map[string]kept
	servers *servers
	log     *slog.Logger

	mu   sync.Mutex // guards told
	told map[string]string
}

func newKeeper(list []kept, all *servers) *keeper {
	k := &keeper{places: map[string]kept{}, servers: all, log: slog.New(slog.DiscardHandler), told: map[string]string{}}
	for _, o := range list {
		k.places[place(o.resource, keyOf(o.object))] = o
	}
	return k
}

// prepare keeps once what is the same for all servers. What fails is left to the controller,
// and so is what tells where servers are: this one does not answer there yet.
func (k *keeper) prepare(ctx context.Context, cl client.Client) error {
	for at, o := range k.places {
		if o.lead != nil {
			continue
		}
		if _, err := k.keep(ctx, cl, at); err != nil {
			k.log.Warn("an object of the server's own could not be made; it is tried again", "object", keyOf(o.object), "error", err)
		}
	}
	return ctx.Err()
}

// controller keeps the objects while the server runs. Its keys are their places.
func (k *keeper) controller() client.Controller {
	namespaces := meta.GroupResource{Resource: "namespaces"}
	types := []meta.GroupResource{namespaces, k.servers.leases}
	var leading []string // the places of what leads to the servers
	for at, o := range k.places {
		if !slices.Contains(types, o.resource) {
			types = append(types, o.resource)
		}
		if o.lead != nil {
			leading = append(leading, at)
		}
	}
	return client.Controller{
		Name: "publisher", Types: types, Identity: true, Forget: k.servers.forget,
		MapEvent: func(c client.Event) (due []string) {
			switch {
			case c.Resource == k.servers.leases:
				if k.servers.observe(c) {
					due = leading
				}
			case c.Resource != namespaces:
				if _, ok := k.places[place(c.Resource, c.Key)]; ok {
					due = append(due, place(c.Resource, c.Key))
				}
			case c.Old == nil: // a namespace that comes, also at the start, may lack them
				for at, o := range k.places {
					if o.object.Namespace() == c.Key.Name {
						due = append(due, at)
					}
				}
			}
			return due
		},
		Reconcile: k.keep,
	}
}

func keyOf(o *meta.Object) meta.Key { return meta.Key{Namespace: o.Namespace(), Name: o.Name()} }

func place(r meta.GroupResource, key meta.Key) string { return resource.StorageKey(r, key) }

// blocked is how long an object waits that others stand in the way of.
const blocked = time.Minute

// keep makes an object or puts it right. What is refused as invalid, which is so because
// of what others have, or for want of room is told once, and looked at again later.
func (k *keeper) keep(ctx context.Context, cl client.Client, at string) (time.Duration, error) {
	o := k.places[at]
	var again time.Duration
	if o.lead != nil {
		living, next, err := k.servers.living(ctx, cl)
		if err != nil {
			return 0, err
		}
		o.object, again = o.object.Clone(), next
		o.lead(o.object, living)
	}
	err := o.keep(ctx, cl)
	why := ""
	if isInvalid(err) || isNoRoom(err) {
		why = err.Error()
	}
	k.mu.Lock()
	news := why != k.told[at]
	k.told[at] = why
	k.mu.Unlock()
	if why == "" {
		return again, err
	}
	if news {
		k.log.Warn("an object of the server's own cannot be as it should", "object", keyOf(o.object), "held by", o.holder(ctx, cl), "error", err)
	}
	return blocked, nil
}

// holder names the other object that has the address of a service; empty: none
// has.
func (k kept) holder(ctx context.Context, cl client.Client) string {
	list, err := cl.List(ctx, k.resource, "")
	address, invalid := netip.ParseAddr(k.object.String("spec", "clusterIP"))
	if err != nil || invalid != nil {
		return ""
	}
	for _, o := range list {
		has := slices.ContainsFunc(o.Strings("spec", "clusterIPs"), func(ip string) bool {
			a, err := netip.ParseAddr(ip)
			return err == nil && a == address
		})
		if has && keyOf(o) != keyOf(k.object) {
			return keyOf(o).String()
		}
	}
	return ""
}

// keep makes the object, or puts it right.
func (k kept) keep(ctx context.Context, cl client.Client) error {
	there, err := cl.Get(ctx, k.resource, keyOf(k.object))
	switch {
	case meta.IsNotFound(err):
		err = k.create(ctx, cl)
	case err != nil || there.Terminating():
	case k.stuck(there):
		if err = cl.Delete(ctx, k.resource, keyOf(there), registry.DeleteOptions{UID: there.UID()}); err == nil {
			err = k.create(ctx, cl)
		}
	case len(k.own) > 0:
		_, err = cl.Update(ctx, k.resource, keyOf(k.object), "", k.correct)
	}
	if meta.IsNotFound(err) || meta.IsAlreadyExists(err) {
		return nil // its namespace is gone, or it changed meanwhile: that comes as a change
	}
	return err
}

// stuck reports whether an object differs where no update may change it.
func (k kept) stuck(there *meta.Object) bool {
	return slices.ContainsFunc(k.fixed, func(path []string) bool {
		want, _ := k.object.Get(path...)
		has, _ := there.Get(path...)
		return !meta.Equal(want, has)
	})
}

func (k kept) create(ctx context.Context, cl client.Client) error {
	for _, first := range k.before {
		if _, err := cl.Create(ctx, first.resource, first.object); err != nil && !meta.IsAlreadyExists(err) {
			return err
		}
	}
	_, err := cl.Create(ctx, k.resource, k.object)
	if isInvalid(err) { // maybe for what the same object has that another server has just made
		if _, missing := cl.Get(ctx, k.resource, keyOf(k.object)); missing == nil {
			return meta.AlreadyExists(k.resource, k.object.Name())
		}
	}
	return err
}

func isInvalid(err error) bool { return meta.ReasonOf(err) == meta.ReasonInvalid }

func isNoRoom(err error) bool {
	var s *meta.Status
	return errors.As(err, &s) && s.Code == http.StatusInsufficientStorage
}

func (k kept) correct(o *meta.Object) error {
	for _, path := range k.own {
		if v, ok := k.object.Get(path...); ok && (k.manager == "" || writtenBy(o, k.manager, path)) {
			o.Set(meta.Clone(v), path...)
		}
	}
	return nil
}

// writtenBy reports whether a manager, and no other, has written a field.
func writtenBy(o *meta.Object, manager string, path []string) bool {
	found := false
	for _, e := range o.List("metadata", "managedFields") {
		tree, _ := e.(map[string]any)
		entry := meta.NewObject(tree)
		fields, _ := entry.Get("fieldsV1")
		text, err := json.Marshal(fields)
		if err != nil || !owns(text, path) {
			continue
		}
		if entry.String("manager") != manager {
			return false
		}
		found = true
	}
	return found
}

// owns reports whether a set of fields, as managedFields have it, holds a path.
func owns(set json.RawMessage, path []string) bool {
	for _, name := range path {
		var fields map[string]json.RawMessage
		if json.Unmarshal(set, &fields) != nil {
			return false
		}
		var ok bool
		if set, ok = fields["f:"+name]; !ok {
			return false
		}
	}
	return true
}
