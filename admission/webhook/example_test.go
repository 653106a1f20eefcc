package webhook_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/webhook"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// paints handles reviews: it sets the color of objects without a color to green.
func paints(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Kind       string         `json:"kind"`
		APIVersion string         `json:"apiVersion"`
		Request    map[string]any `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": review.Kind, "apiVersion": review.APIVersion, "response": map[string]any{
		"uid": review.Request["uid"], "allowed": true, "patchType": "JSONPatch",
		"patch": base64.StdEncoding.EncodeToString([]byte(`[{"op": "add", "path": "/spec/color", "value": "green"}]`)),
	}})
}

// A chain with a webhook in the same process. A server has both plugins already; use Builder.ServiceResolver
// for the last part.
func ExampleMutating() {
	var client testclient.Client
	group := names.Kubernetes.Group(wellknown.GroupRegistration)
	_, err := client.Create(context.Background(), meta.GroupResource{Group: group, Resource: "mutatingwebhookconfigurations"}, meta.NewObject(map[string]any{
		"metadata": map[string]any{"name": "painter"},
		"webhooks": []any{map[string]any{
			"name":                    "paint.example.com",
			"clientConfig":            map[string]any{"service": map[string]any{"namespace": "shop", "name": "painter"}},
			"rules":                   []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{"example.com"}, "apiVersions": []any{"v1"}, "resources": []any{"lamps"}}},
			"admissionReviewVersions": []any{"v1"}, "sideEffects": "None",
		}},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	var services services.Resolver = func(_ context.Context, s services.Service) (services.Endpoint, error) {
		fmt.Println("asking", s.Address())
		return services.Endpoint{Handler: http.HandlerFunc(paints)}, nil
	}
	chain, err := admission.New([]admission.Plugin{webhook.Mutating(), webhook.Validating()}, admission.Options{}, admission.PluginContext{
		Names: names.Kubernetes, Client: &client, Services: services,
		Type: func(meta.GroupResource) *registry.Type { return &registry.Type{} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer chain.Close()
	lamp := meta.NewObject(map[string]any{"spec": map[string]any{}})
	err = chain.Mutate(context.Background(), &admission.Request{
		Operation: admission.Create, Object: lamp, Name: "desk",
		Resource:        meta.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lamps"},
		RequestResource: meta.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lamps"},
		Warn:            func(string) {}, Annotate: func(key, _ string) { fmt.Println(key) },
		AnnotateExternal: func(key, _ string) bool { fmt.Println(key); return true },
	})
	fmt.Println(lamp.String("spec", "color"), err)
	// Output:
	// asking painter.shop.svc:443
	// patch.webhook.admission.k8s.io/round_0_index_0
	// mutation.webhook.admission.k8s.io/round_0_index_0
	// green <nil>
}

// Every server has this plugin. The options configure the credentials for webhooks.
func ExampleValidating() {
	p := webhook.Validating()
	_, err := admission.New([]admission.Plugin{p}, admission.Options{
		Config: map[string]any{p.Name: webhook.Config{KubeConfigFile: "/missing"}},
	}, admission.PluginContext{})
	fmt.Println(err)
	// Output: admission plugin ValidatingAdmissionWebhook: kubeconfig: open /missing: no such file or directory
}
