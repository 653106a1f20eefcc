package core

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

var (
	serviceResource  = meta.GroupResource{Resource: "services"}
	endpointResource = meta.GroupResource{Resource: "endpoints"}
)

// podProxy returns the subresource of pods that forwards HTTP requests.
func podProxy() registry.Subresource {
	return connecting[PodProxyOptions]("proxy", registry.Proxies, nil, func(ctx context.Context, call *registry.Call) (*registry.Target, error) {
		at, err := parseProxied(call)
		if err != nil {
			return nil, err
		}
		pod, err := call.Client.Get(ctx, podResource, at.key)
		if err != nil {
			return nil, err
		}
		return at.target(pod.String("status", "podIP"), podPort(pod, at.port))
	})
}

// podPort returns the port of a pod: the port with the given name, the first port of the containers if
// text is "", or text itself.
func podPort(pod *meta.Object, text string) string {
	for _, container := range pod.Objects("spec", "containers") {
		for _, port := range container.Objects("ports") {
			if text == "" || port.String("name") == text {
				return strconv.FormatInt(port.Int("containerPort"), 10)
			}
		}
	}
	return text
}

// nodeProxy returns the subresource of nodes that forwards HTTP requests to the kubelet or another
// port.
func nodeProxy() registry.Subresource {
	return connecting[NodeProxyOptions]("proxy", registry.Proxies, nil, func(ctx context.Context, call *registry.Call) (*registry.Target, error) {
		at, err := parseProxied(call)
		if err != nil {
			return nil, err
		}
		node, err := call.Client.Get(ctx, nodeResource, at.key)
		if err != nil {
			return nil, err
		}
		t, err := at.target("", at.port)
		if err != nil {
			return nil, err
		}
		t.Node = node
		return t, nil
	})
}

// serviceProxy returns the subresource of services that forwards HTTP requests to a pod of the service.
func serviceProxy() registry.Subresource {
	return connecting[ServiceProxyOptions]("proxy", registry.Proxies, nil, func(ctx context.Context, call *registry.Call) (*registry.Target, error) {
		at, err := parseProxied(call)
		if err != nil {
			return nil, err
		}
		service, err := call.Client.Get(ctx, serviceResource, at.key)
		if err != nil {
			return nil, err
		}
		if number, err := strconv.ParseInt(at.port, 10, 64); err == nil {
			ports := service.Objects("spec", "ports")
			i := slices.IndexFunc(ports, func(p *meta.Object) bool { return p.Int("port") == number })
			if i < 0 {
				return nil, unavailable("no service port %d found for service %q", number, service.Name())
			}
			at.port = ports[i].String("name")
		}
		endpoints, err := call.Client.Get(ctx, endpointResource, at.key)
		if err != nil {
			return nil, err
		}
		ip, port := chooseEndpoint(ctx, call, endpoints, at.port)
		if ip == "" {
			return nil, unavailable("no endpoints available for service %q", call.Key.Name)
		}
		return at.target(ip, port)
	})
}

// endpointTries limits the addresses of a service that are examined for a request.
const endpointTries = 100

// chooseEndpoint picks a random address that has the named port. It skips addresses that do not belong
// to a pod, because Endpoints objects can contain any address and the proxy must not reach it.
func chooseEndpoint(ctx context.Context, call *registry.Call, endpoints *meta.Object, port string) (ip, number string) {
	type choice struct{ address, port *meta.Object }
	var choices []choice
	for _, subset := range endpoints.Objects("subsets") {
		ports := subset.Objects("ports")
		i := slices.IndexFunc(ports, func(p *meta.Object) bool { return p.String("name") == port })
		if i < 0 {
			continue
		}
		for _, address := range subset.Objects("addresses") {
			choices = append(choices, choice{address, ports[i]})
		}
	}
	for range min(len(choices), endpointTries) {
		if ctx.Err() != nil {
			break
		}
		i := rand.IntN(len(choices))
		c := choices[i]
		choices[i] = choices[len(choices)-1]
		choices = choices[:len(choices)-1]
		ip := c.address.String("ip")
		if c.address.String("targetRef", "kind") != "Pod" || c.address.String("targetRef", "namespace") != call.Key.Namespace {
			continue
		}
		pod, err := call.Client.Get(ctx, podResource, meta.Key{Namespace: call.Key.Namespace, Name: c.address.String("targetRef", "name")})
		if err == nil && slices.ContainsFunc(pod.Objects("status", "podIPs"), func(own *meta.Object) bool { return own.String("ip") == ip }) {
			return ip, strconv.FormatInt(c.port.Int("port"), 10)
		}
	}
	return "", ""
}

func unavailable(format string, args ...any) *meta.Status {
	return meta.Failure(http.StatusServiceUnavailable, meta.ReasonServiceUnavailable, "%s", fmt.Sprintf(format, args...))
}

// proxied is a parsed proxy request. The name has the form name, name:port or scheme:name:port.
type proxied struct {
	call         *registry.Call
	key          meta.Key
	scheme, port string
	path         string
}

func parseProxied(call *registry.Call) (proxied, error) {
	at := proxied{call: call, key: call.Key, scheme: "http", path: call.Object.String("path")}
	parts := strings.Split(call.Key.Name, ":")
	if len(parts) == 3 {
		if parts[0] != "" {
			at.scheme = parts[0]
		}
		parts = parts[1:]
	}
	if len(parts) == 2 {
		at.port = parts[1]
	}
	at.key.Name = parts[0]
	if len(parts) > 2 || parts[0] == "" || at.scheme != "http" && at.scheme != "https" {
		return at, at.invalid()
	}
	return at, nil
}

func (at proxied) invalid() error {
	return meta.BadRequest("invalid %s request %q", strings.TrimSuffix(at.call.Resource.Resource, "s"), at.call.Key.Name)
}

// target returns the URL for host and port. An empty port means the default of the scheme, or of the
// kubelet.
func (at proxied) target(host, port string) (*registry.Target, error) {
	if strings.Trim(port, "0123456789") != "" {
		return nil, at.invalid()
	}
	t := &registry.Target{CallerChosen: true, URL: url.URL{Scheme: at.scheme, Host: host, Path: at.path}}
	if port != "" {
		t.URL.Host = net.JoinHostPort(host, port)
	} else if strings.Contains(host, ":") {
		t.URL.Host = "[" + host + "]"
	}
	return t, nil
}
