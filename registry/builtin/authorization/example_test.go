package authorization_test

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/authorization"
)

func ExampleKinds() {
	yes := func(_ context.Context, call *registry.Call) (*meta.Object, error) {
		call.Object.Set(true, "status", "allowed")
		return call.Object, nil
	}
	for _, k := range authorization.Kinds(authorization.Answers{SelfSubject: yes}) {
		fmt.Println(k.Kind)
	}
	// Output: SelfSubjectAccessReview
}
