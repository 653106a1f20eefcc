package conformance

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"testing"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"orch.io/controlplane/server/servertest"
)

// Discovery in protobuf is, byte by byte, what clients' own code writes for the
// document that they read in JSON.
func TestDiscoveryMatchesClients(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := discoveryv2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	theirs := protobuf.NewSerializer(scheme, scheme)
	s := servertest.New(t)
	get := func(path, accept string) []byte {
		r, err := http.NewRequest("GET", s.Host()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		res, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != accept {
			t.Fatal(path, res.Status, res.Header, err)
		}
		return body
	}
	const aggregated = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, c := range []struct {
		path, params string
		into         func() runtime.Object
		filled       func(runtime.Object) bool
	}{
		{"/api", "", func() runtime.Object { return &metav1.APIVersions{} }, func(o runtime.Object) bool { return len(o.(*metav1.APIVersions).Versions) == 1 }},
		{"/apis", "", func() runtime.Object { return &metav1.APIGroupList{} }, func(o runtime.Object) bool { return len(o.(*metav1.APIGroupList).Groups) > 2 }},
		{"/apis/apps", "", func() runtime.Object { return &metav1.APIGroup{} }, func(o runtime.Object) bool { return o.(*metav1.APIGroup).PreferredVersion.Version == "v1" }},
		{"/api/v1", "", func() runtime.Object { return &metav1.APIResourceList{} }, func(o runtime.Object) bool { return len(o.(*metav1.APIResourceList).APIResources) > 10 }},
		{"/apis/apps/v1", "", func() runtime.Object { return &metav1.APIResourceList{} }, func(o runtime.Object) bool {
			return o.(*metav1.APIResourceList).APIResources[0].StorageVersionHash != ""
		}},
		{"/api", aggregated, func() runtime.Object { return &discoveryv2.APIGroupDiscoveryList{} }, func(o runtime.Object) bool {
			return len(o.(*discoveryv2.APIGroupDiscoveryList).Items[0].Versions[0].Resources) > 5
		}},
		{"/apis", aggregated, func() runtime.Object { return &discoveryv2.APIGroupDiscoveryList{} }, func(o runtime.Object) bool {
			return len(o.(*discoveryv2.APIGroupDiscoveryList).Items) > 2
		}},
	} {
		fromJSON, fromProto := c.into(), c.into()
		if err := json.Unmarshal(get(c.path, "application/json"+c.params), fromJSON); err != nil {
			t.Fatal(c.path, err)
		}
		if !c.filled(fromJSON) {
			t.Fatalf("%s%s: %+v", c.path, c.params, fromJSON)
		}
		got := get(c.path, protobufType+c.params)
		if _, _, err := theirs.Decode(got, nil, fromProto); err != nil {
			t.Fatal(c.path, err)
		}
		fromJSON.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		fromProto.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		if !reflect.DeepEqual(fromJSON, fromProto) {
			t.Fatalf("%s%s:\n%+v\n%+v", c.path, c.params, fromJSON, fromProto)
		}
		message, err := fromJSON.(interface{ Marshal() ([]byte, error) }).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(got, message) {
			t.Errorf("%s%s: other bytes", c.path, c.params)
		}
	}
}
