package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

// gone are the versions that the clients of today have no types for.
var gone = []string{
	"autoscaling/v2beta1, Kind=HorizontalPodAutoscaler", "autoscaling/v2beta2, Kind=HorizontalPodAutoscaler",
	"policy/v1beta1, Kind=PodSecurityPolicy", "extensions/v1beta1, Kind=PodSecurityPolicy",
}

// TestKindsMatchClients: our kinds have the bytes of the clients' types in JSON's
// meaning and in protobuf, for every field that theirs have.
func TestKindsMatchClients(t *testing.T) {
	clients := runtime.NewScheme()
	if err := scheme.AddToScheme(clients); err != nil {
		t.Fatal(err)
	}
	for _, k := range builtin.Kinds() {
		if k.Kind == "APIService" {
			continue // its types are in a module of their own
		}
		if k.Kind == "CustomResourceDefinition" {
			continue // see TestDefinitionsMatchClients
		}
		compiled, err := resource.Compile(k, names.Kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range compiled.Versions {
			if v.DiscoveryKind != "" {
				continue // there are no objects of it
			}
			kind := gvk.GroupVersionKind(v.GVK())
			theirs, err := clients.New(kind)
			if slices.Contains(gone, kind.String()) != (err != nil) {
				t.Errorf("%s: %v", kind, err)
			}
			if kind.String() == "apps/v1beta1, Kind=StatefulSet" {
				continue // it has the shape of v1: an observedGeneration of 0 is written, theirs leaves it out
			}
			if err != nil {
				continue
			}
			checkKind(t, v.Schema(), theirs.(message))
		}
	}
}

// The bodies that are answered and not stored.
func TestReviewsMatchClients(t *testing.T) {
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
		checkKind(t, compiled.Storage.Schema(), theirs[k.Kind])
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
	unknown, faults := s.Normalize(tree)
	if len(faults) > 0 {
		t.Fatalf("%+v\n%s", faults, sent)
	}
	for _, u := range unknown {
		t.Errorf("ours lacks the field %s", u)
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
	s.Normalize(expected)
	back, err := p.Decode(want, codec.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s.Normalize(back)
	if got, want := codec.EncodeJSON(nil, back), codec.EncodeJSON(nil, expected); !bytes.Equal(got, want) {
		t.Fatalf("the object differs after protobuf\n got %s\nwant %s", got, want)
	}
}
