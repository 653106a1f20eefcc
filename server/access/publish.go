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
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Publish configures the objects by which others find and trust the server. The server creates them if they
// are missing, and corrects them after changes, as long as its controllers run. Empty fields publish nothing.
type Publish struct {
	// Address and Port define the service by which programs in the cluster reach the server: its cluster IP,
	// which is the first of the service network, and the port that the server listens on. If another service
	// has the IP, the server logs a warning with its name, and creates the service when the IP is free.
	Address netip.Addr
	Port    int

	// Endpoint is the address of this server, to which the service routes at Port. It is published in
	// Endpoints and an EndpointSlice, unless other machines cannot reach it, like a loopback address. If
	// several servers share the store, the service routes to all live servers with the same Port and address
	// family, see server.Builder.Advertise. A server that shuts down is removed at once, a server that dies
	// when its Lease expires.
	Endpoint netip.Addr

	// Authentication is published in a ConfigMap for extension API servers, which use it to verify requests that this
	// server proxies to them: CA certificates under client-ca-file, and the certificate names and headers by
	// which this server passes the user. The reader role gives access to the ConfigMap.
	Authentication Authentication

	// URL is the address at which joining machines reach the server. If BootstrapTokens is set, it is published with
	// RootCA in the ConfigMap cluster-info. The server creates a Role and RoleBinding that let anonymous users read
	// the ConfigMap, but only when it creates the ConfigMap, so that deleting either closes the access. The server keeps
	// the text up to date with URL and RootCA until another client edits it.
	URL string
}

// Authentication configures how extension API servers authenticate users. Empty fields are not published.
type Authentication struct {
	ClientCAs []byte // PEM

	// ProxyCAs are the CA certificates, PEM, of server.Serving.ProxyCertificate. If they are empty, neither
	// the names nor the headers of proxied requests are published.
	ProxyCAs   []byte
	ProxyNames []string // allowed common names of that certificate; empty: any
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
		text, _ := json.Marshal(list) // strings always encode
		data[key] = string(text)
	}
	return data
}

// published is an object that the server creates and corrects.
type published struct {
	resource meta.GroupResource
	object   *meta.Object
	own      [][]string  // paths that are corrected; empty: the object is only created
	fixed    [][]string  // immutable paths: an object that differs there is deleted and created
	manager  string      // correct a path only while no other field manager has written it; empty: always
	before   []published // created before a missing object, and only then

	// lead sets the addresses of the servers in object; nil: it does not depend on them.
	lead func(object *meta.Object, servers []netip.Addr)
}

// objects returns the objects that c publishes, under the names of p.
func (c Config) objects(p names.Profile) (list []published) {
	add := func(r meta.GroupResource, apiVersion, kind, namespace, name string, body map[string]any, own ...[]string) {
		list = append(list, published{resource: r, object: newObject(apiVersion, kind, namespace, name, body), own: own})
	}
	configMaps := meta.GroupResource{Resource: "configmaps"}
	if c.Publish.Address.IsValid() {
		add(meta.GroupResource{Resource: "services"}, "v1", "Service", "default", p.Wire(wellknown.ServerService), c.Publish.service(p),
			[]string{"spec", "ports"}, []string{"spec", "type"}, []string{"spec", "sessionAffinity"},
			[]string{"spec", "clusterIP"}, []string{"spec", "clusterIPs"})
		if _, ok := c.Publish.serverAddress(); ok {
			list = append(list, c.Publish.endpoints(p)...)
		}
	}
	if data := c.Publish.Authentication.data(); len(data) > 0 {
		add(configMaps, "v1", "ConfigMap", p.SystemNamespace("system"), wellknown.ReaderConfigMap, map[string]any{"data": data}, []string{"data"})
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

// clusterInfo returns the ConfigMap that joining machines read before they can authenticate the server. Its Role and
// RoleBinding are created only together with it, so that deleting either closes the access permanently.
func (c Config) clusterInfo(p names.Profile) published {
	public, group := p.SystemNamespace("public"), p.Group(wellknown.GroupRBAC)
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n",
		c.Publish.URL, base64.StdEncoding.EncodeToString(c.RootCA))
	role := newObject(group+"/v1", "Role", public, p.Wire(wellknown.ClusterInfoRole), map[string]any{"rules": []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{wellknown.ClusterInfo}, "verbs": []any{"get"},
	}}})
	binding := newObject(group+"/v1", "RoleBinding", public, p.Wire(wellknown.ClusterInfoRole), map[string]any{
		"roleRef":  map[string]any{"apiGroup": group, "kind": "Role", "name": p.Wire(wellknown.ClusterInfoRole)},
		"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": auth.Anonymous}},
	})
	return published{
		resource: meta.GroupResource{Resource: "configmaps"},
		object:   newObject("v1", "ConfigMap", public, wellknown.ClusterInfo, map[string]any{"data": map[string]any{"kubeconfig": config}}),
		own:      [][]string{{"data", "kubeconfig"}}, manager: p.Wire(wellknown.ServerManager),
		before: []published{
			{resource: meta.GroupResource{Group: group, Resource: "roles"}, object: role},
			{resource: meta.GroupResource{Group: group, Resource: "rolebindings"}, object: binding},
		},
	}
}

func (p Publish) service(profile names.Profile) map[string]any {
	provider := profile.Wire(wellknown.ServerService)
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"component": "apiserver", "provider": provider}},
		"spec": map[string]any{
			"type": "ClusterIP", "clusterIP": p.Address.String(), "clusterIPs": []any{p.Address.String()}, "sessionAffinity": "None",
			"ports": []any{map[string]any{"name": "https", "protocol": "TCP", "port": int64(443), "targetPort": int64(p.Port)}},
		},
	}
}

// keeper creates and corrects the published objects.
type keeper struct {
	objects map[string]published // by storage key
	servers *servers
	log     *slog.Logger

	mu       sync.Mutex        // guards problems
	problems map[string]string // the logged problem by storage key
}

func newKeeper(list []published, all *servers) *keeper {
	k := &keeper{objects: map[string]published{}, servers: all, log: slog.New(slog.DiscardHandler), problems: map[string]string{}}
	for _, o := range list {
		k.objects[storageKey(o.resource, keyOf(o.object))] = o
	}
	return k
}

// prepare creates or corrects the objects that do not depend on the addresses of servers. Errors are logged,
// and the controller tries again. The other objects are left to the controller, because this server does not
// answer at its address yet.
func (k *keeper) prepare(ctx context.Context, cl client.Client) error {
	for at, o := range k.objects {
		if o.lead != nil {
			continue
		}
		if _, err := k.keep(ctx, cl, at); err != nil {
			k.log.Warn("failed to publish an object; will retry", "object", keyOf(o.object), "error", err)
		}
	}
	return ctx.Err()
}

// controller returns the controller that keeps the objects. Its keys are their storage keys.
func (k *keeper) controller() client.Controller {
	namespaces := meta.GroupResource{Resource: "namespaces"}
	types := []meta.GroupResource{namespaces, k.servers.leases}
	var leading []string // keys of the objects with server addresses
	for at, o := range k.objects {
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
				if _, ok := k.objects[storageKey(c.Resource, c.Key)]; ok {
					due = append(due, storageKey(c.Resource, c.Key))
				}
			case c.Old == nil: // a new namespace, or an existing namespace at the start: its objects may be missing
				for at, o := range k.objects {
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

func storageKey(r meta.GroupResource, key meta.Key) string { return resource.StorageKey(r, key) }

// blocked is the pause before the next attempt for an object that conflicts with another object, or that the full store
// refuses.
const blocked = time.Minute

// keep creates or corrects the object with a storage key. If the server refuses the object as invalid, because another
// object conflicts with it, or because the store is full, keep logs the refusal once and returns the pause blocked.
func (k *keeper) keep(ctx context.Context, cl client.Client, at string) (time.Duration, error) {
	o := k.objects[at]
	var again time.Duration
	if o.lead != nil {
		live, next, err := k.servers.live(ctx, cl)
		if err != nil {
			return 0, err
		}
		o.object, again = o.object.Clone(), next
		o.lead(o.object, live)
	}
	err := o.keep(ctx, cl)
	why := ""
	if isInvalid(err) || isNoRoom(err) {
		why = err.Error()
	}
	k.mu.Lock()
	changed := why != k.problems[at]
	k.problems[at] = why
	k.mu.Unlock()
	if why == "" {
		return again, err
	}
	if changed {
		k.log.Warn("cannot publish an object", "object", keyOf(o.object), "held by", o.holder(ctx, cl), "error", err)
	}
	return blocked, nil
}

// holder returns the service that has the cluster IP of this service, as namespace/name. It is empty if no service
// has the IP.
func (k published) holder(ctx context.Context, cl client.Client) string {
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

// keep creates the object, or corrects it.
func (k published) keep(ctx context.Context, cl client.Client) error {
	existing, err := cl.Get(ctx, k.resource, keyOf(k.object))
	switch {
	case meta.IsNotFound(err):
		err = k.create(ctx, cl)
	case err != nil || existing.Terminating():
	case k.needsReplacement(existing):
		if err = cl.Delete(ctx, k.resource, keyOf(existing), registry.DeleteOptions{UID: existing.UID()}); err == nil {
			err = k.create(ctx, cl)
		}
	case len(k.own) > 0:
		_, err = cl.Update(ctx, k.resource, keyOf(k.object), "", k.correct)
	}
	if meta.IsNotFound(err) || meta.IsAlreadyExists(err) {
		return nil // the namespace was deleted, or the object changed: that change triggers another call
	}
	return err
}

// needsReplacement reports whether an immutable path differs.
func (k published) needsReplacement(existing *meta.Object) bool {
	return slices.ContainsFunc(k.fixed, func(path []string) bool {
		want, _ := k.object.Get(path...)
		has, _ := existing.Get(path...)
		return !meta.Equal(want, has)
	})
}

func (k published) create(ctx context.Context, cl client.Client) error {
	for _, first := range k.before {
		if _, err := cl.Create(ctx, first.resource, first.object); err != nil && !meta.IsAlreadyExists(err) {
			return err
		}
	}
	_, err := cl.Create(ctx, k.resource, k.object)
	if isInvalid(err) { // the conflicting object may be the same object, just created by another server
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

func (k published) correct(o *meta.Object) error {
	for _, path := range k.own {
		if v, ok := k.object.Get(path...); ok && (k.manager == "" || writtenBy(o, k.manager, path)) {
			o.Set(meta.Clone(v), path...)
		}
	}
	return nil
}

// writtenBy reports whether the manager has written a field, and no other manager has.
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

// owns reports whether a field set of managedFields contains a path.
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
