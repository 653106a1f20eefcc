package webhook_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/webhook"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/servertest"
)

// BenchmarkUnmatched measures the overhead of both plugins for concurrent writes that match no webhook.
func BenchmarkUnmatched(b *testing.B) {
	for name, writes := range map[string]bool{"quiet": false, "busy": true} {
		b.Run(name, func(b *testing.B) {
			client := servertest.New(b).Objects()
			served := &registry.Type{}
			chain, err := admission.New([]admission.Plugin{webhook.Mutating(), webhook.Validating()}, admission.Options{}, admission.PluginContext{
				Names: names.Kubernetes, Client: client, Type: func(meta.GroupResource) *registry.Type { return served },
			})
			require.NoError(b, err)
			b.Cleanup(chain.Close)
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; writes; i++ {
					select {
					case <-stop:
						return
					default:
					}
					obj := meta.NewObject(map[string]any{"metadata": map[string]any{"generateName": "x", "namespace": "default"}})
					_, _ = client.Create(context.Background(), meta.GroupResource{Resource: "configmaps"}, obj)
				}
			}()
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				r := &admission.Request{Operation: admission.Update, Resource: meta.GroupVersionResource{Version: "v1", Resource: "pods"},
					Namespace: "default", Name: "x", Object: meta.NewObject(nil), Old: meta.NewObject(nil)}
				for pb.Next() {
					if chain.Mutate(context.Background(), r) != nil || chain.Validate(context.Background(), r) != nil {
						b.Error("refused")
					}
				}
			})
			close(stop)
			<-done
		})
	}
}
