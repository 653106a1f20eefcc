package clients

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// Widget is a custom kind of the test.
type Widget struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            WidgetSpec   `json:"spec"`
	Status          WidgetStatus `json:"status,omitzero"`
}

// WidgetSpec is the desired state of a widget.
type WidgetSpec struct {
	Size  int64    `json:"size" schema:"min=1,default=3"`
	Parts []string `json:"parts,omitempty"`
}

// WidgetStatus is the observed state of a widget.
type WidgetStatus struct {
	Ready bool `json:"ready,omitempty"`
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func withWidgets(b *server.Builder) {
	b.Register(registry.Of(registry.Definition[Widget]{
		Group: "example.com", Version: "v1", Status: true, ShortNames: []string{"wd"}, Categories: []string{"all"},
	}))
}

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "spec": map[string]any{"parts": []any{"a"}},
	}}
}

func TestDynamicClient(t *testing.T) {
	ctx := patience(t)
	s := servertest.New(t, withWidgets)
	for name, c := range map[string]*rest.Config{"in process": inProcess(s), "TLS": overTLS(t, s)} {
		t.Run(name, func(t *testing.T) {
			dyn, err := dynamic.NewForConfig(c)
			require.NoError(t, err)
			client := dyn.Resource(widgets).Namespace("default")
			made, err := client.Create(ctx, widget("a"), metav1.CreateOptions{})
			require.NoError(t, err)
			size, _, err := unstructured.NestedInt64(made.Object, "spec", "size")
			require.NoError(t, err)
			require.EqualValues(t, 3, size, "the default of the schema")
			require.EqualValues(t, 1, made.GetGeneration())

			require.NoError(t, unstructured.SetNestedField(made.Object, true, "status", "ready"))
			done, err := client.UpdateStatus(ctx, made, metav1.UpdateOptions{})
			require.NoError(t, err)
			ready, _, err := unstructured.NestedBool(done.Object, "status", "ready")
			require.NoError(t, err)
			require.True(t, ready)
			require.EqualValues(t, 1, done.GetGeneration())

			_, err = client.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":-1}}`), metav1.PatchOptions{})
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			list, err := client.List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			require.Equal(t, "WidgetList", list.GetKind())
			require.NoError(t, client.Delete(ctx, "a", metav1.DeleteOptions{}))
		})
	}
}

func TestDynamicInformer(t *testing.T) {
	ctx := patience(t)
	s := servertest.New(t, withWidgets)
	dyn, err := dynamic.NewForConfig(inProcess(s))
	require.NoError(t, err)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
	informer := factory.ForResource(widgets)
	informer.Informer()
	defer start(ctx, factory)()
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced))
	_, err = dyn.Resource(widgets).Namespace("default").Create(ctx, widget("b"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := informer.Lister().ByNamespace("default").Get("b")
		return err == nil
	}, patienceSpan, tick)
}

func TestMetadataClient(t *testing.T) {
	everyWay(t, func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config) {
		set := typed(t, c)
		client, err := metadata.NewForConfig(c)
		require.NoError(t, err)
		maps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
		w, err := maps.Watch(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		m := configMap("a", "k", "v")
		m.Labels = map[string]string{"l": "1"}
		made, err := set.CoreV1().ConfigMaps("default").Create(ctx, m, metav1.CreateOptions{})
		require.NoError(t, err)

		got, err := maps.Get(ctx, "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, made.UID, got.UID)
		require.Equal(t, "1", got.Labels["l"])
		list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "l"})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		e := next(t, ctx, w)
		require.Equal(t, watch.Added, e.Type)
		require.Equal(t, "a", e.Object.(*metav1.PartialObjectMetadata).Name)
		_, err = maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"l":"2"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, maps.Delete(ctx, "a", metav1.DeleteOptions{}))
	})
}

func TestDiscovery(t *testing.T) {
	s := servertest.New(t, withWidgets)
	calls := &recorder{next: s.Transport()}
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: s.Host(), Transport: calls, QPS: -1})
	require.NoError(t, err)

	info, err := client.ServerVersion()
	require.NoError(t, err)
	require.NotEmpty(t, info.GitVersion)

	calls.reset()
	groups, lists, err := client.ServerGroupsAndResources()
	require.NoError(t, err)
	require.LessOrEqual(t, len(calls.requests()), 2, "aggregated discovery is one request for each root")
	aggregated := byName(t, lists)
	require.Contains(t, aggregated, "example.com/v1 widgets")
	require.Contains(t, aggregated, "example.com/v1 widgets/status")
	require.Contains(t, aggregated, "v1 configmaps")
	require.Equal(t, []string{"wd"}, aggregated["example.com/v1 widgets"].ShortNames)
	require.NotEmpty(t, groups)

	legacy := client.WithLegacy()
	_, lists, err = legacy.ServerGroupsAndResources()
	require.NoError(t, err)
	one := byName(t, lists)
	require.Len(t, one, len(aggregated), "both ways name the same resources")
	for name, r := range aggregated {
		require.Equal(t, r.Verbs, one[name].Verbs, name)
		require.Equal(t, r.Kind, one[name].Kind, name)
	}
}

func byName(t *testing.T, lists []*metav1.APIResourceList) map[string]metav1.APIResource {
	t.Helper()
	all := map[string]metav1.APIResource{}
	for _, l := range lists {
		for _, r := range l.APIResources {
			all[l.GroupVersion+" "+r.Name] = r
		}
	}
	return all
}

func TestRESTMapper(t *testing.T) {
	s := servertest.New(t, withWidgets)
	client, err := discovery.NewDiscoveryClientForConfig(inProcess(s))
	require.NoError(t, err)
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	for short, want := range map[string]string{"wd": "widgets", "widget": "widgets", "cm": "configmaps", "ns": "namespaces", "secret": "secrets"} {
		got, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: short})
		require.NoError(t, err)
		require.Equal(t, want, got.Resource)
	}
	m, err := mapper.RESTMapping(schema.GroupKind{Kind: "Namespace"})
	require.NoError(t, err)
	require.Equal(t, apimeta.RESTScopeNameRoot, m.Scope.Name())
	m, err = mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"})
	require.NoError(t, err)
	require.Equal(t, widgets, m.Resource)
	require.Equal(t, apimeta.RESTScopeNameNamespace, m.Scope.Name())
}
