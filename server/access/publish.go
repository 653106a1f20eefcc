package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// Publish is what a server tells others of itself, in objects that it keeps
// while its loops run: made when they are missing, put right when they were
// changed. What is left empty is not told.
type Publish struct {
	// Address and Port make the service by which programs in the cluster find
	// the server: its address, the first of the network of services, and the
	// port that the server listens on.
	Address netip.Addr
	Port    int

	// Authentication is what servers that serve further groups on behalf of this
	// one verify callers with, in a ConfigMap that the reader role gives access
	// to: authorities in PEM by the key client-ca-file, and the settings of the
	// authenticating proxy.
	Authentication Authentication

	// URL is where machines that join reach the server. With BootstrapTokens it
	// stands, together with RootCA, in the ConfigMap cluster-info, which anybody
	// may read. Only a missing one is made: its text is the administrator's.
	URL string
}

// Authentication are the settings by which callers are verified; a nil list is
// not told.
type Authentication struct {
	ClientCAs []byte // PEM

	ProxyCAs                                                  []byte // PEM; without it nothing of the proxy is told
	ProxyNames, UserHeaders, UIDHeaders, GroupHeaders, Extras []string
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
		"requestheader-allowed-names": a.ProxyNames, "requestheader-username-headers": a.UserHeaders, "requestheader-uid-headers": a.UIDHeaders,
		"requestheader-group-headers": a.GroupHeaders, "requestheader-extra-headers-prefix": a.Extras,
	} {
		if list == nil {
			list = []string{}
		}
		text, _ := json.Marshal(list) // of strings: it cannot fail
		data[key] = string(text)
	}
	if a.UIDHeaders == nil {
		delete(data, "requestheader-uid-headers")
	}
	return data
}

// kept is an object that the server keeps.
type kept struct {
	resource meta.GroupResource
	object   *meta.Object
	own      [][]string // the paths that are put right; none: only a missing object is made
}

// objects are those that c keeps, under the names of p.
func (c Config) objects(p names.Profile) (list []kept) {
	add := func(r meta.GroupResource, apiVersion, kind, namespace, name string, body map[string]any, own ...[]string) {
		body["apiVersion"], body["kind"] = apiVersion, kind
		o := meta.NewObject(body)
		o.SetNamespace(namespace)
		o.SetName(name)
		list = append(list, kept{r, o, own})
	}
	configMaps := meta.GroupResource{Resource: "configmaps"}
	if c.Publish.Address.IsValid() {
		add(meta.GroupResource{Resource: "services"}, "v1", "Service", "default", p.Wire(names.ServerService), c.Publish.service(p),
			[]string{"spec", "ports"}, []string{"spec", "type"}, []string{"spec", "sessionAffinity"})
	}
	if data := c.Publish.Authentication.data(); len(data) > 0 {
		add(configMaps, "v1", "ConfigMap", p.SystemNamespace("system"), names.ReaderConfigMap, map[string]any{"data": data}, []string{"data"})
	}
	if c.BootstrapTokens && c.Publish.URL != "" {
		public, group := p.SystemNamespace("public"), p.Group(names.GroupRBAC)
		config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n",
			c.Publish.URL, base64.StdEncoding.EncodeToString(c.RootCA))
		add(configMaps, "v1", "ConfigMap", public, names.ClusterInfo, map[string]any{"data": map[string]any{"kubeconfig": config}})
		add(meta.GroupResource{Group: group, Resource: "roles"}, group+"/v1", "Role", public, names.ClusterInfoRole, map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{names.ClusterInfo}, "verbs": []any{"get"},
		}}})
		add(meta.GroupResource{Group: group, Resource: "rolebindings"}, group+"/v1", "RoleBinding", public, names.ClusterInfoRole, map[string]any{
			"roleRef":  map[string]any{"apiGroup": group, "kind": "Role", "name": names.ClusterInfoRole},
			"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": auth.Anonymous}},
		})
	}
	return list
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

// publisher returns the loop that keeps objects. Its keys are their places in
// the list.
func publisher(list []kept) registry.Loop {
	places := map[string]kept{}
	var types []meta.GroupResource
	for _, k := range list {
		places[place(k.resource, keyOf(k.object))] = k
		types = append(types, k.resource)
	}
	namespaces := meta.GroupResource{Resource: "namespaces"}
	return registry.Loop{
		Name: "publisher", Types: append(types, namespaces), Identity: true,
		Observe: func(c registry.Change) (due []string) {
			if c.Resource != namespaces {
				if _, ok := places[place(c.Resource, c.Key)]; ok {
					due = append(due, place(c.Resource, c.Key))
				}
				return due
			}
			for at, k := range places { // a namespace that comes, also at the start, may lack them
				if k.object.Namespace() == c.Key.Name && c.Old == nil {
					due = append(due, at)
				}
			}
			return due
		},
		Reconcile: func(ctx context.Context, cl registry.Client, key string) (time.Duration, error) {
			return 0, places[key].keep(ctx, cl)
		},
	}
}

func keyOf(o *meta.Object) meta.Key { return meta.Key{Namespace: o.Namespace(), Name: o.Name()} }

func place(r meta.GroupResource, key meta.Key) string { return registry.StorageKey(r, key) }

// keep makes the object, or puts it right.
func (k kept) keep(ctx context.Context, cl registry.Client) error {
	there, err := cl.Get(ctx, k.resource, keyOf(k.object))
	switch {
	case meta.IsNotFound(err):
		_, err = cl.Create(ctx, k.resource, k.object)
	case err != nil || there.Terminating():
	case len(k.own) > 0:
		_, err = cl.Update(ctx, k.resource, keyOf(k.object), "", k.correct)
	}
	if meta.IsNotFound(err) || meta.IsAlreadyExists(err) {
		return nil // its namespace is gone, or it changed meanwhile: that comes as a change
	}
	return err
}

func (k kept) correct(o *meta.Object) error {
	for _, path := range k.own {
		if v, ok := k.object.Get(path...); ok {
			o.Set(meta.Clone(v), path...)
		}
	}
	return nil
}
