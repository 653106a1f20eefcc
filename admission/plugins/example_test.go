package plugins_test

import (
	"context"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
)

// The program adds a plugin of its own, which sees the changes of the plugins before it.
func ExampleTable() {
	table := plugins.Table(admission.Plugin{Name: "NoAttic"})
	fmt.Println(table[0].Name)
	fmt.Println(slices.ContainsFunc(table, func(p admission.Plugin) bool { return p.Name == "NoAttic" }))
	// Output:
	// AlwaysAdmit
	// true
}

// Options enable and configure plugins by name. Pass them to a server as server.Builder.AdmissionOptions.
func Example_configuration() {
	options := admission.Options{
		Enable: []string{"PodNodeSelector", "PodTolerationRestriction"},
		Config: map[string]any{
			"DefaultTolerationSeconds": plugins.TolerationSeconds{NotReady: 30, Unreachable: 60},
			"PodNodeSelector":          plugins.NodeSelectors{Selectors: map[string]string{"clusterDefaultNodeSelector": "pool=shared"}},
			"PodTolerationRestriction": plugins.Tolerations{Whitelist: []map[string]any{{"key": "team", "operator": "Exists"}}},
		},
	}
	_, err := admission.New(plugins.Table(), options, admission.PluginContext{})
	fmt.Println(err)
	// Output: <nil>
}

// Pods of the highest priority class need a quota with that scope.
func ExampleQuotaConfig() {
	config := plugins.QuotaConfig{LimitedResources: []plugins.LimitedResource{{
		Resource:    "pods",
		MatchScopes: []plugins.QuotaScope{{ScopeName: "PriorityClass", Operator: "In", Values: []string{"highest"}}},
	}}}
	b := &server.Builder{Authorizer: auth.AllowAll, AdmissionOptions: admission.Options{Config: map[string]any{"ResourceQuota": config}}}
	s, err := b.Build(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Shutdown(context.Background()))
	// Output: <nil>
}

// All volumes of this server are in the same zone.
func ExampleVolumeLabels() {
	b := &server.Builder{Authorizer: auth.AllowAll, AdmissionOptions: admission.Options{
		Enable: []string{"PersistentVolumeLabel"},
		Config: map[string]any{"PersistentVolumeLabel": plugins.VolumeLabels(func(context.Context, *meta.Object) (map[string]string, error) {
			return map[string]string{"topology.orch.io/zone": "north"}, nil
		})},
	}}
	b.Register(core.Kinds()...)
	s, err := b.Build(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(context.Background())
	volume, err := s.Objects().Create(context.Background(), meta.GroupResource{Resource: "persistentvolumes"}, meta.NewObject(map[string]any{
		"metadata": map[string]any{"name": "v"},
		"spec": map[string]any{"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"},
			"csi": map[string]any{"driver": "example.com", "volumeHandle": "h"}},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(volume.Labels())
	// Output: map[topology.orch.io/zone:north]
}
