package names_test

import (
	"fmt"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

// A flag of a program selects the profile.
func ExampleParse() {
	p, ok := names.Parse("kubernetes")
	fmt.Println(p.ProductName(), ok)
	_, ok = names.Parse("k8s")
	fmt.Println(ok)
	// Output:
	// Kubernetes true
	// false
}

// A controller copies node labels to their newer names.
func ExampleProfile_OldNodeLabels() {
	labels := map[string]string{"beta.kubernetes.io/arch": "arm64"}
	moved := []names.OldName{}
	for _, l := range names.Kubernetes.OldNodeLabels() {
		if value, ok := labels[l.Before]; ok {
			labels[l.Now] = value
			moved = append(moved, l)
		}
	}
	fmt.Println(moved, labels["kubernetes.io/arch"])
	// Output: [{beta.kubernetes.io/arch kubernetes.io/arch}] arm64
}

// A client requests the OpenAPI document of a server as protobuf.
func ExampleOpenAPIProtobuf() {
	accept, _ := wellknown.OpenAPIProtobuf("3")
	fmt.Println("Accept:", accept)
	// Output: Accept: application/com.github.proto-openapi.spec.v3.v1.0+protobuf
}
