package operator_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"orch.io/controlplane/server/servertest"
)

// Buoy is the hub version, which is stored.
type Buoy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Depth             int `json:"depth,omitempty"`
}

func (*Buoy) Hub() {}

func (b *Buoy) DeepCopyObject() runtime.Object { c := *b; return &c }

// OldBuoy is the spoke version.
type OldBuoy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Fathoms           int `json:"fathoms,omitempty"`
}

func (b *OldBuoy) DeepCopyObject() runtime.Object { c := *b; return &c }

func (b *OldBuoy) ConvertTo(hub conversion.Hub) error {
	h := hub.(*Buoy)
	h.ObjectMeta, h.Depth = b.ObjectMeta, 2*b.Fathoms
	return nil
}

func (b *OldBuoy) ConvertFrom(hub conversion.Hub) error {
	h := hub.(*Buoy)
	b.ObjectMeta, b.Fathoms = h.ObjectMeta, h.Depth/2
	return nil
}

// TestConversionOfControllerRuntime: the conversion webhook of controller-runtime, with a hub and a
// spoke, runs in process.
func TestConversionOfControllerRuntime(t *testing.T) {
	crd := fstest.MapFS{"buoys.yaml": {Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buoys.sea.example.com}
spec:
  group: sea.example.com
  names: {kind: Buoy, plural: buoys}
  scope: Cluster
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: buoys, namespace: default, path: /convert}}}
  versions:
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {fathoms: {type: integer}}}}}
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {depth: {type: integer}}}}}
`)}}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "Buoy"}, &OldBuoy{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "sea.example.com", Version: "v2", Kind: "Buoy"}, &Buoy{})
	for _, version := range []string{"v1", "v2"} {
		metav1.AddToGroupVersion(scheme, schema.GroupVersion{Group: "sea.example.com", Version: version})
	}
	s := servertest.New(t)
	s.InstallCRDs(crd)
	s.InstallWebhooks(crd, webhook.NewWebhookHandler(scheme, webhook.NewRegistry()))
	c, err := client.New(&rest.Config{Host: s.Host(), Transport: s.Transport()}, client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), &OldBuoy{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Fathoms: 3}))
	hub, spoke := &Buoy{}, &OldBuoy{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "b"}, hub))
	require.Equal(t, 6, hub.Depth)
	hub.Depth = 8
	require.NoError(t, c.Update(t.Context(), hub))
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "b"}, spoke))
	require.Equal(t, 4, spoke.Fathoms)
}
