package builtin_test

import (
	"math/rand/v2"
	"testing"

	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/builtin/apiextensions"
	"orch.io/controlplane/registry/builtin/discovery"
	"orch.io/controlplane/registry/registrytest"
)

func TestRoundTrip(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, in one goroutine")
	}
	// A node is shown in the topology as well, also where only the field names it.
	options := registrytest.Options{Generators: []registrytest.Generator{
		registrytest.ForField[discovery.EndpointV1beta1]("nodeName", func(*rand.Rand) *string { return nil }),
		registrytest.ForType(definitionV1beta1),
	}}
	options.RoundTrip(t, builtin.Kinds()...)
}

// definitionV1beta1 makes a definition that says in one place alone what versions share,
// as the version wants it.
func definitionV1beta1(r *rand.Rand) apiextensions.CustomResourceDefinitionSpecV1beta1 {
	preserve := r.IntN(2) == 0
	s := apiextensions.CustomResourceDefinitionSpecV1beta1{
		Group: "example.com", Version: "v1", Scope: "Cluster", PreserveUnknownFields: &preserve,
		Names:    apiextensions.CustomResourceDefinitionNames{Plural: "as", Kind: "A"},
		Versions: []apiextensions.CustomResourceDefinitionVersionV1beta1{{Name: "v1", Served: true}, {Name: "v2", Storage: true}},
	}
	columns := []apiextensions.CustomResourceColumnDefinitionV1beta1{{Name: "n", Type: "string", JSONPath: ".a", Priority: r.Int32N(2)}}
	status := &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}}
	if r.IntN(2) == 0 {
		s.AdditionalPrinterColumns = columns
	} else {
		s.Versions[r.IntN(2)].AdditionalPrinterColumns = columns
	}
	switch r.IntN(3) {
	case 0:
		s.Subresources = status
	case 1:
		s.Versions[r.IntN(2)].Subresources = status
	}
	schema := &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object"}}
	if r.IntN(2) == 0 {
		s.Validation = schema
	} else {
		s.Versions[0].Schema = schema
	}
	if r.IntN(2) == 0 {
		s.Conversion = &apiextensions.CustomResourceConversionV1beta1{Strategy: "Webhook", ConversionReviewVersions: []string{"v1beta1"}}
	}
	return s
}
