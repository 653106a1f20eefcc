package serviceresolver

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

func TestResolveReturnsAddressOfService(t *testing.T) {
	var client testclient.Client
	for _, text := range []string{
		"{kind: services, metadata: {namespace: a, name: usual}, spec: {clusterIP: 10.0.0.1, ports: [{port: 443}]}}",
		"{kind: services, metadata: {namespace: a, name: six}, spec: {clusterIP: 'fd00::1', ports: [{port: 443}]}}",
		"{kind: services, metadata: {namespace: a, name: away}, spec: {type: ExternalName, externalName: example.com}}",
		"{kind: services, metadata: {namespace: a, name: headless}, spec: {clusterIP: None, ports: [{name: other, port: 80}, {name: https, port: 443}]}}",
		"{kind: services, metadata: {namespace: a, name: old}, spec: {ports: [{port: 443}]}}",
		"{kind: services, metadata: {namespace: a, name: empty}, spec: {clusterIP: None, ports: [{port: 443}]}}",
		"{kind: endpointslices, metadata: {namespace: a, name: s1, labels: {kubernetes.io/service-name: headless}}, ports: [{name: https, port: 9443}], endpoints: [{addresses: [10.1.0.1], conditions: {ready: false}}, {addresses: [10.1.0.2], conditions: {}}]}",
		"{kind: endpointslices, metadata: {namespace: a, name: s2, labels: {kubernetes.io/service-name: usual}}, ports: [{name: https, port: 1}], endpoints: [{addresses: [10.1.0.3]}]}",
		"{kind: endpoints, metadata: {namespace: a, name: old}, subsets: [{addresses: [{ip: 10.1.0.4}], ports: [{port: 8443}]}]}",
	} {
		var tree map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &tree))
		body, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		whole, err := meta.ParseJSON(body)
		require.NoError(t, err)
		r := meta.GroupResource{Resource: tree["kind"].(string)}
		if r.Resource == "endpointslices" {
			r.Group = names.Kubernetes.Group(wellknown.GroupEndpoints)
		}
		_, err = client.Create(t.Context(), r, meta.NewObject(whole.(map[string]any)))
		require.NoError(t, err)
	}
	s := New(names.Kubernetes, &client, nil)
	of := func(name string, port int32) services.Service {
		return services.Service{Namespace: "a", Name: name, Port: port}
	}
	for service, want := range map[services.Service]string{
		of("usual", 443): "10.0.0.1:443", of("six", 443): "[fd00::1]:443", of("away", 8443): "example.com:8443",
		of("headless", 443): "10.1.0.2:9443", of("old", 443): "10.1.0.4:8443",
	} {
		e, err := s.Resolve(t.Context(), service)
		require.NoError(t, err)
		assert.Equal(t, services.Endpoint{Address: want}, e)
	}
	for service, want := range map[services.Service]string{
		of("usual", 80): "service a/usual has no port 80", of("headless", 80): `no endpoints available for service "headless"`,
		of("empty", 443): `no endpoints available for service "empty"`, of("missing", 443): `services "missing" not found`,
	} {
		_, err := s.Resolve(t.Context(), service)
		assert.EqualError(t, err, want)
	}

	slice := meta.GroupResource{Group: names.Kubernetes.Group(wellknown.GroupEndpoints), Resource: "endpointslices"}
	_, err := client.Update(t.Context(), slice, meta.Key{Namespace: "a", Name: "s2"}, "", func(o *meta.Object) error {
		o.Set("empty", "metadata", "labels", names.Kubernetes.Wire(wellknown.ServiceName))
		o.Objects("ports")[0].Set("", "name")
		return nil
	})
	require.NoError(t, err)
	e, err := s.Resolve(t.Context(), of("empty", 443))
	require.NoError(t, err)
	assert.Equal(t, "10.1.0.3:1", e.Address, "a slice is another service's now")
	require.NoError(t, client.Delete(t.Context(), slice, meta.Key{Namespace: "a", Name: "s2"}, registry.DeleteOptions{}))
	_, err = s.Resolve(t.Context(), of("empty", 443))
	assert.EqualError(t, err, `no endpoints available for service "empty"`)

	s.override = func(_ context.Context, of services.Service) (services.Endpoint, error) {
		switch of.Name {
		case "usual":
			return services.Endpoint{}, nil
		case "away":
			return services.Endpoint{}, errors.New("no way")
		}
		return services.Endpoint{Handler: http.NotFoundHandler()}, nil
	}
	e, err = s.Resolve(t.Context(), of("usual", 443))
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.1:443", e.Address)
	e, err = s.Resolve(t.Context(), of("missing", 443))
	require.NoError(t, err)
	assert.NotNil(t, e.Handler)
	_, err = s.Resolve(t.Context(), of("away", 443))
	assert.EqualError(t, err, "no way")
}
