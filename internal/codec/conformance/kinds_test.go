package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/builtin/apps"
	"orch.io/controlplane/registry/builtin/certificates"
	"orch.io/controlplane/registry/builtin/coordination"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/discovery"
	"orch.io/controlplane/registry/builtin/roles"
)

type pair struct {
	ours   reflect.Type
	theirs message
}

var pairs = []pair{
	{reflect.TypeFor[core.ConfigMap](), &corev1.ConfigMap{}},
	{reflect.TypeFor[core.Secret](), &corev1.Secret{}},
	{reflect.TypeFor[core.Namespace](), &corev1.Namespace{}},
	{reflect.TypeFor[core.ServiceAccount](), &corev1.ServiceAccount{}},
	{reflect.TypeFor[core.Event](), &corev1.Event{}},
	{reflect.TypeFor[core.Pod](), &corev1.Pod{}},
	{reflect.TypeFor[core.PodTemplate](), &corev1.PodTemplate{}},
	{reflect.TypeFor[core.Service](), &corev1.Service{}},
	{reflect.TypeFor[core.Endpoints](), &corev1.Endpoints{}},
	{reflect.TypeFor[discovery.EndpointSlice](), &discoveryv1.EndpointSlice{}},
	{reflect.TypeFor[apps.Deployment](), &appsv1.Deployment{}},
	{reflect.TypeFor[coordination.Lease](), &coordinationv1.Lease{}},
	{reflect.TypeFor[roles.Role](), &rbacv1.Role{}},
	{reflect.TypeFor[roles.ClusterRole](), &rbacv1.ClusterRole{}},
	{reflect.TypeFor[roles.RoleBinding](), &rbacv1.RoleBinding{}},
	{reflect.TypeFor[roles.ClusterRoleBinding](), &rbacv1.ClusterRoleBinding{}},
	{reflect.TypeFor[certificates.CertificateSigningRequest](), &certificatesv1.CertificateSigningRequest{}},
}

// Our kinds have the bytes of the clients' types in JSON's meaning and in
// protobuf, for every field that ours has.
func TestKindsAsClientsKnowThem(t *testing.T) {
	for _, p := range pairs {
		s, err := schema.Go(p.ours, names.Kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		checkKind(t, s, p.theirs)
	}
}

// The bodies that are answered and not stored.
func TestReviewsAsClientsKnowThem(t *testing.T) {
	echo := func(_ context.Context, call *registry.Call) (*meta.Object, error) { return call.Object, nil }
	theirs := map[string]message{
		"TokenRequest":             &authenticationv1.TokenRequest{},
		"TokenReview":              &authenticationv1.TokenReview{},
		"SelfSubjectReview":        &authenticationv1.SelfSubjectReview{},
		"SubjectAccessReview":      &authorizationv1.SubjectAccessReview{},
		"LocalSubjectAccessReview": &authorizationv1.LocalSubjectAccessReview{},
		"SelfSubjectAccessReview":  &authorizationv1.SelfSubjectAccessReview{},
		"SelfSubjectRulesReview":   &authorizationv1.SelfSubjectRulesReview{},
	}
	kinds := builtin.Reviews(builtin.Answers{
		TokenReview: echo, SelfSubjectReview: echo, SubjectAccessReview: echo, SelfSubjectAccessReview: echo,
		LocalSubjectAccessReview: echo, SelfSubjectRulesReview: echo,
	})
	kinds = append(kinds, builtin.TokenRequest(echo).Body)
	if len(kinds) != len(theirs) {
		t.Fatalf("%d kinds", len(kinds))
	}
	for _, k := range kinds {
		compiled, err := resource.Compile(k, names.Kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		checkKind(t, compiled.Storage.Schema, theirs[k.Kind])
	}
}

func checkKind(t *testing.T, s *schema.Schema, theirs message) {
	t.Helper()
	typ := reflect.TypeOf(theirs).Elem()
	t.Run(typ.String(), func(t *testing.T) {
		t.Parallel()
		proto, err := codec.NewProto(s)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(2, uint64(len(typ.String()))))
		for i := range 60 {
			checkConformed(t, s, proto, typ, newFiller(r, i))
		}
	})
}

func checkConformed(t *testing.T, s *schema.Schema, p *codec.Proto, typ reflect.Type, f *filler) {
	t.Helper()
	filled := reflect.New(typ)
	f.fill(filled.Elem(), 0)
	checkGiven(t, s, p, typ, filled)
}

// checkGiven checks one value of the clients' type.
func checkGiven(t *testing.T, s *schema.Schema, p *codec.Proto, typ reflect.Type, filled reflect.Value) {
	t.Helper()
	sent, err := json.Marshal(filled.Interface())
	if err != nil {
		t.Fatal(err)
	}
	tree, _, err := codec.DecodeJSON(sent, codec.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	unknown, faults := s.Conform(tree)
	if len(faults) > 0 {
		t.Fatalf("%+v\n%s", faults, sent)
	}
	for _, u := range unknown {
		if !isNewer(u) {
			t.Errorf("ours lacks the field %s", u)
		}
	}
	obj := reflect.New(typ).Interface().(message)
	asJSON := codec.EncodeJSON(nil, tree)
	if err := json.Unmarshal(asJSON, obj); err != nil {
		t.Fatalf("%v\n%s", err, asJSON)
	}
	want, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Append(nil, tree); !bytes.Equal(got, want) {
		t.Fatalf("bytes differ at %d\n got %q\nwant %q\n%s", firstDifference(got, want), got, want, asJSON)
	}
	// What comes back is what the clients' type reads from the bytes.
	direct := reflect.New(typ).Interface().(message)
	if err := direct.Unmarshal(want); err != nil {
		t.Fatal(err)
	}
	directJSON, err := json.Marshal(direct)
	if err != nil {
		t.Fatal(err)
	}
	expected, _, err := codec.DecodeJSON(directJSON, codec.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s.Conform(expected)
	back, err := p.Decode(want, codec.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s.Conform(back)
	if got, want := codec.EncodeJSON(nil, back), codec.EncodeJSON(nil, expected); !bytes.Equal(got, want) {
		t.Fatalf("the object differs after protobuf\n got %s\nwant %s", got, want)
	}
}

// newer are fields that the clients' types have and the specification has not,
// by their own and their parent's name; most are behind a feature gate.
var newer = map[string]bool{
	"spec.attestations": true, "volumeMounts.bindMountOptions": true, "spec.evictionResponders": true,
	"configMap.defaultUser": true, "secret.defaultUser": true, "downwardAPI.defaultUser": true, "projected.defaultUser": true,
	"items.user": true, "serviceAccountToken.user": true, "clusterTrustBundle.user": true, "podCertificate.user": true,
	"emptyDir.mode": true, "grpc.mode": true, "httpGet.protocol": true, "status.volumeHealth": true,
	"nodeAllocatableResourceClaimStatuses.mapping": true, "nodeAllocatableResourceClaimStatuses.overhead": true,
}

var index = regexp.MustCompile(`\[[^\]]*\]`)

func isNewer(path string) bool {
	names := strings.Split(index.ReplaceAllString(path, ""), ".")
	return newer[strings.Join(names[max(0, len(names)-2):], ".")]
}
