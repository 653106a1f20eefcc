package authentication_test

import (
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry/builtin/authentication"
)

func ExampleTokenRequestFaults() {
	r := meta.NewObject(map[string]any{})
	r.Set(int64(60), "spec", "expirationSeconds")
	for _, c := range authentication.TokenRequestFaults(r) {
		fmt.Println(c.Field, c.Message)
	}
	// Output: spec.expirationSeconds Invalid value: 60: may not specify a duration less than 10 minutes
}
