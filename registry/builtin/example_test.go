package builtin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

// A program that serves only a few kinds selects them from the list.
func ExampleKinds() {
	kinds := slices.DeleteFunc(builtin.Kinds(), func(k *registry.Kind) bool {
		return k.Kind != "Namespace" && k.Kind != "ConfigMap"
	})
	for _, k := range kinds {
		fmt.Println(k.Kind)
	}
	// Unordered output:
	// ConfigMap
	// Namespace
}

// A program issues tokens of service accounts and answers a review itself.
func Example_reviews() {
	token := builtin.TokenRequest(func(_ context.Context, call *registry.Call) (*meta.Object, error) {
		call.Object.Set("secret-of-"+call.Key.Name, "status", "token")
		return call.Object, nil
	})
	kinds := builtin.Reviews(builtin.Answers{TokenReview: func(_ context.Context, call *registry.Call) (*meta.Object, error) {
		account, known := strings.CutPrefix(call.Object.String("spec", "token"), "secret-of-")
		call.Object.Set(known, "status", "authenticated")
		call.Object.Set(account, "status", "user", "username")
		return call.Object, nil
	}})

	robot := &registry.Call{Key: meta.Key{Namespace: "default", Name: "robot"}, Object: meta.NewObject(nil)}
	issued, _ := token.Act(context.Background(), robot)
	question := meta.NewObject(map[string]any{"spec": map[string]any{"token": issued.String("status", "token")}})
	answer, _ := kinds[0].Act(context.Background(), &registry.Call{Object: question})
	fmt.Println(kinds[0].Kind, answer.String("status", "user", "username"))
	// Output: TokenReview robot
}
