package admission_test

import (
	"fmt"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
)

// A program can check which requests a rule matches.
func ExampleRule_Matches() {
	scope := map[bool]admission.Scope{true: admission.Namespaced, false: admission.Cluster}
	for _, namespaced := range []bool{true, false} {
		rule := admission.Rule{Resources: []string{"*"}, Scope: scope[namespaced]}
		fmt.Println(rule.Scope, rule.Matches(&admission.Request{
			Operation: admission.Delete, Resource: meta.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Name: "a",
		}))
	}
	// Output:
	// Namespaced false
	// Cluster true
}
