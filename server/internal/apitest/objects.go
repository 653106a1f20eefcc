package apitest

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
)

// NamespacesPath is the path of the namespaces.
const NamespacesPath = "/api/v1/namespaces"

// CollectionPath returns the path of the objects of a version in the namespace default.
func CollectionPath(v *resource.Version) string {
	path := "/apis/"
	if v.Group == "" {
		path = "/api/"
	}
	path += v.GVK().APIVersion()
	if v.Namespaced {
		path += "/namespaces/default"
	}
	return path + "/" + v.Plural
}

// PodsPath is the path of the Pods in the namespace default.
const PodsPath = "/api/v1/namespaces/default/pods"

// RunPod creates a pod that is bound to a node and ready.
func RunPod(a *Client, name string) {
	a.T.Helper()
	a.Must(201, "POST", PodsPath, `{"metadata":{"name":"`+name+`","labels":{"app":"x"}},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`)
	a.Must(200, "PATCH", PodsPath+"/"+name+"/status", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, "Content-Type", "application/merge-patch+json")
}

// Signal is a kind with a field behind a feature gate of the program.
type Signal struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	Color string `json:"color,omitempty"`
	Every *int   `json:"every,omitempty" schema:"gate=Blink,default=3"`
}

// MinimalObject returns an object of a built-in type that can be created. A type without a file in
// testdata/minimal needs only a name.
func MinimalObject(t testing.TB, typ *resource.Type) map[string]any {
	obj := map[string]any{}
	if text, err := ReadMinimal(typ.GroupResource().String()); err == nil {
		require.NoError(t, json.Unmarshal(text, &obj))
	}
	if obj["metadata"] == nil {
		obj["metadata"] = map[string]any{"name": "x"}
	}
	return obj
}

// ConfigMapsPath is the path of the ConfigMaps in the namespace default.
const ConfigMapsPath = "/api/v1/namespaces/default/configmaps"

// NewConfigMap returns a ConfigMap; data are alternating keys and values.
func NewConfigMap(name string, data ...string) map[string]any {
	values := map[string]any{}
	for i := 0; i < len(data); i += 2 {
		values[data[i]] = data[i+1]
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": values}
}

// ApplyPatch is the media type of server-side apply.
const ApplyPatch = "application/apply-patch+yaml"

// ServicesPath is the path of the Services in the namespace default.
const ServicesPath = "/api/v1/namespaces/default/services"

// NewService returns a Service with a port; spec is appended to its JSON spec.
func NewService(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{"ports":[{"port":1}]%s}}`, name, spec)
}

// TableMediaType is the media type of a Table.
const TableMediaType = "application/json;g=meta.k8s.io;v=v1;as=Table"

// Site is a kind with fields that are unique in the namespace and in the cluster.
type Site struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Host    string   `json:"host,omitempty" schema:"unique"`
		Aliases []string `json:"aliases,omitempty" schema:"items.unique=cluster"`
		Slot    *int64   `json:"slot,omitempty" schema:"unique=cluster"`
		Main    bool     `json:"main,omitempty" schema:"unique"`
		Port    int64    `json:"port,omitempty"`
	} `json:"spec"`
	Status struct {
		Address string `json:"address,omitempty" schema:"unique=cluster"`
	} `json:"status,omitzero"`
}

// UntypedSite is Site as a release without unique fields declared it.
type UntypedSite struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            map[string]any `json:"spec"`
}

// SitesPath is the path of the Sites in the namespace default.
const SitesPath = "/apis/example.com/v1/namespaces/default/sites"

// Revision returns a resourceVersion as a number.
func Revision(t testing.TB, version string) int {
	n, err := strconv.Atoi(version)
	require.NoError(t, err)
	return n
}

//go:embed testdata/minimal
var minimalObjects embed.FS

// ReadMinimal returns the JSON of a minimal object of a built-in resource, such as
// "deployments.apps". The error is fs.ErrNotExist for a resource that needs none.
func ReadMinimal(resource string) ([]byte, error) {
	return minimalObjects.ReadFile("testdata/minimal/" + resource + ".json")
}
