package conformance

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
)

type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

var kinds = []message{
	&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Namespace{}, &corev1.ServiceAccount{}, &corev1.Event{}, &coordinationv1.Lease{},
	&corev1.Pod{}, &corev1.Node{}, &corev1.Service{}, &corev1.Endpoints{}, &corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{},
	&corev1.ReplicationController{}, &corev1.ResourceQuota{}, &corev1.LimitRange{}, &corev1.PodTemplate{}, &corev1.Binding{},
	&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &appsv1.ReplicaSet{}, &batchv1.Job{}, &batchv1.CronJob{},
	&rbacv1.Role{}, &rbacv1.ClusterRole{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRoleBinding{},
	&storagev1.StorageClass{}, &storagev1.CSIDriver{}, &storagev1.CSINode{}, &storagev1.VolumeAttachment{}, &storagev1.CSIStorageCapacity{},
	&authenticationv1.TokenReview{}, &authenticationv1.TokenRequest{}, &authenticationv1.SelfSubjectReview{},
	&authorizationv1.SubjectAccessReview{}, &authorizationv1.SelfSubjectRulesReview{}, &certificatesv1.CertificateSigningRequest{},
	&networkingv1.Ingress{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}, &policyv1.Eviction{},
	&schedulingv1.PriorityClass{}, &discoveryv1.EndpointSlice{}, &eventsv1.Event{}, &autoscalingv2.HorizontalPodAutoscaler{},
	&metav1.Status{}, &metav1.DeleteOptions{}, &metav1.PartialObjectMetadata{},
}

func protoOf(t *testing.T, typ reflect.Type) *codec.Proto {
	s, err := schema.Go(typ, names.Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := codec.NewProto(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Random objects have identical bytes both ways, and mean the same.
func TestProtobufMatchesClients(t *testing.T) {
	for _, kind := range kinds {
		typ := reflect.TypeOf(kind).Elem()
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			p := protoOf(t, typ)
			r := rand.New(rand.NewPCG(1, uint64(len(typ.String()))))
			for i := range 60 {
				checkBothWays(t, p, typ, newFiller(r, i))
			}
		})
	}
}

func checkBothWays(t *testing.T, p *codec.Proto, typ reflect.Type, f *filler) {
	t.Helper()
	filled := reflect.New(typ)
	f.fill(filled.Elem(), 0)
	// Through JSON first, so that both sides start from what JSON can say.
	asJSON, err := json.Marshal(filled.Interface())
	if err != nil {
		t.Fatal(err)
	}
	obj := reflect.New(typ).Interface().(message)
	if err := json.Unmarshal(asJSON, obj); err != nil {
		t.Fatalf("%v\n%s", err, asJSON)
	}
	want, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	tree, _, err := codec.DecodeJSON(asJSON, codec.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := p.Append(nil, tree)
	if !bytes.Equal(got, want) {
		t.Fatalf("bytes differ at %d\n got %q\nwant %q\n%s", firstDifference(got, want), got, want, asJSON)
	}
	direct, read := reflect.New(typ).Interface().(message), reflect.New(typ).Interface().(message)
	if err := direct.Unmarshal(want); err != nil {
		t.Fatal(err)
	}
	back, err := p.Decode(want, codec.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want, _ = direct.Marshal()
	if again := p.Append(nil, back); !bytes.Equal(again, want) {
		t.Fatalf("bytes differ after decoding at %d\n got %q\nwant %q\n%s", firstDifference(again, want), again, want, asJSON)
	}
	// The tree reads as the same object.
	if err := json.Unmarshal(codec.EncodeJSON(nil, back), read); err != nil {
		t.Fatal(err)
	}
	wantJSON, _ := json.Marshal(direct)
	gotJSON, _ := json.Marshal(read)
	if !bytes.Equal(wantJSON, gotJSON) {
		t.Fatalf("objects differ after decoding\n got %s\nwant %s", gotJSON, wantJSON)
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
