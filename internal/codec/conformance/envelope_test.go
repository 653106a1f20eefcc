package conformance

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

// theirs writes and reads as the clients do.
func theirs(t *testing.T) (*runtime.Scheme, *protobuf.Serializer) {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	s.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	return s, protobuf.NewSerializer(s, s)
}

func written(t *testing.T, s *protobuf.Serializer, obj runtime.Object) []byte {
	var b bytes.Buffer
	if err := s.Encode(obj, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"}, Data: map[string]string{"k": name}}
}

func TestEnvelopeMatchesClients(t *testing.T) {
	_, s := theirs(t)
	p := protoOf(t, reflect.TypeFor[corev1.ConfigMap]())
	body := p.Append(nil, map[string]any{"metadata": map[string]any{"name": "a", "resourceVersion": "7"}, "data": map[string]any{"k": "a"}})
	want := written(t, s, configMap("a"))
	if got := codec.Envelope(nil, "v1", "ConfigMap", body); !bytes.Equal(got, want) {
		t.Fatalf("\n got %q\nwant %q", got, want)
	}
	apiVersion, kind, back, err := codec.OpenEnvelope(want)
	if err != nil || apiVersion != "v1" || kind != "ConfigMap" || !bytes.Equal(back, body) {
		t.Fatal(apiVersion, kind, back, err)
	}
}

func TestListMatchesClients(t *testing.T) {
	_, s := theirs(t)
	n := int64(12)
	want := written(t, s, &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "token", RemainingItemCount: &n},
		Items:    []corev1.ConfigMap{*configMap("a"), *configMap("b")}})
	var bodies [][]byte
	for _, name := range []string{"a", "b"} {
		b, err := configMap(name).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, b)
	}
	got := codec.ProtoList(nil, "v1", "ConfigMapList", codec.ListMeta{ResourceVersion: "9", Continue: "token", Remaining: &n}, slices.Values(bodies))
	if !bytes.Equal(got, want) {
		t.Fatalf("\n got %q\nwant %q", got, want)
	}
}

func TestFrameMatchesClients(t *testing.T) {
	object := bytes.Repeat([]byte("x"), 300)
	want, err := (&metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	want = append(binary.BigEndian.AppendUint32(nil, uint32(len(want))), want...)
	if got := codec.ProtoFrame(nil, "MODIFIED", object); !bytes.Equal(got, want) {
		t.Fatalf("\n got %q\nwant %q", got, want)
	}
}

func TestStatusMatchesClients(t *testing.T) {
	_, s := theirs(t)
	st := meta.Invalid(meta.GroupKind{Kind: "K"}, "n", []meta.StatusCause{{Reason: meta.CauseInvalid, Message: "m", Field: "f"}})
	got, err := codec.EncodeStatus(nil, st, codec.Protobuf)
	if err != nil {
		t.Fatal(err)
	}
	obj, _, err := s.Decode(got, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	read := obj.(*metav1.Status)
	if read.Code != 422 || read.Reason != metav1.StatusReasonInvalid || len(read.Details.Causes) != 1 || read.Details.Causes[0].Field != "f" || read.Message != st.Message {
		t.Fatalf("%+v", read)
	}
	read.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if want := written(t, s, read); !bytes.Equal(got, want) {
		t.Fatalf("\n got %q\nwant %q", got, want)
	}
}

func TestPartialMatchesClients(t *testing.T) {
	full, err := configMap("a").Marshal()
	if err != nil {
		t.Fatal(err)
	}
	want, err := (&metav1.PartialObjectMetadata{ObjectMeta: configMap("a").ObjectMeta}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if got := codec.ProtoPartial(full); !bytes.Equal(got, want) {
		t.Fatalf("\n got %q\nwant %q", got, want)
	}
}

func TestDeleteOptionsMatchClients(t *testing.T) {
	var grace int64
	uid, policy, orphan := "u", metav1.DeletePropagationForeground, true
	o := metav1.DeleteOptions{GracePeriodSeconds: &grace, PropagationPolicy: &policy, OrphanDependents: &orphan, DryRun: []string{"All"}}
	o.Preconditions = metav1.NewUIDPreconditions(uid)
	sent, err := o.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := codec.Metas().DeleteOptions.Decode(sent, codec.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"dryRun":["All"],"gracePeriodSeconds":0,"orphanDependents":true,"preconditions":{"uid":"u"},"propagationPolicy":"Foreground"}`
	if got := string(codec.EncodeJSON(nil, tree)); got != want {
		t.Fatal(got)
	}
}
