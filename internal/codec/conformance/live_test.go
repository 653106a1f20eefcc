package conformance

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"orch.io/controlplane/server/servertest"
)

const protobufType = "application/vnd.kubernetes.protobuf"

func config(s *servertest.Server) *rest.Config {
	return &rest.Config{Host: s.Host(), Transport: s.Transport(), QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: protobufType, AcceptContentTypes: protobufType}}
}

// A client that speaks nothing but protobuf writes, reads, lists and watches.
func TestProtobufClientReadsAndWrites(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := servertest.New(t)
	c, err := kubernetes.NewForConfig(config(s))
	if err != nil {
		t.Fatal(err)
	}
	maps := c.CoreV1().ConfigMaps("default")
	events, err := maps.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	obj, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "1"}},
		Data: map[string]string{"k": "<v>"}, BinaryData: map[string][]byte{"b": {0, 255}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if obj.UID == "" || obj.ResourceVersion == "" || obj.CreationTimestamp.IsZero() || obj.BinaryData["b"][1] != 255 {
		t.Fatalf("%+v", obj)
	}
	obj.Data["k"] = "w"
	if obj, err = maps.Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if obj, err = maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"p":"1"}}`), metav1.PatchOptions{}); err != nil || obj.Data["p"] != "1" {
		t.Fatal(obj, err)
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "l=1"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Data["k"] != "w" || list.ResourceVersion == "" {
		t.Fatal(list, err)
	}
	grace := int64(0)
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: metav1.NewUIDPreconditions(string(obj.UID))}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Deleted} {
		for {
			e, ok := <-events.ResultChan()
			if !ok {
				t.Fatal("the watch ended")
			}
			if e.Object.(*corev1.ConfigMap).Name != "a" {
				continue
			}
			if e.Type != want {
				t.Fatalf("%s, want %s", e.Type, want)
			}
			break
		}
	}
}

// The metadata client asks for PartialObjectMetadata in protobuf.
func TestMetadataClientReadsProtobuf(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := servertest.New(t)
	c, err := metadata.NewForConfig(config(s))
	if err != nil {
		t.Fatal(err)
	}
	namespaces := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	one, err := namespaces.Get(ctx, "default", metav1.GetOptions{})
	if err != nil || one.UID == "" {
		t.Fatal(one, err)
	}
	all, err := namespaces.List(ctx, metav1.ListOptions{})
	if err != nil || len(all.Items) == 0 || all.Items[0].Name == "" {
		t.Fatal(all, err)
	}
	events, err := namespaces.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	e := <-events.ResultChan()
	if got, ok := e.Object.(*metav1.PartialObjectMetadata); !ok || e.Type != watch.Added || got.Name == "" {
		t.Fatalf("%+v", e)
	}
}
