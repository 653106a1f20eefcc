// Package authentication holds the kinds that ask who someone is, and that ask
// for a service account's token. Nothing of them is stored: a POST is answered
// with the filled-in object.
package authentication

import (
	"context"
	"reflect"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

const version = "v1"

// Answers are the functions that answer reviews. A kind without a function is
// not there.
type Answers struct{ Token, SelfSubject registry.Act }

// Kinds returns the kinds of the group that a knows to answer. TokenRequest is
// none of them: it is the body of a sub-resource.
func Kinds(a Answers) []*registry.Kind {
	var kinds []*registry.Kind
	if a.Token != nil {
		kinds = append(kinds, kind[TokenReview](tokenGiven(a.Token), registry.Lifetime{},
			older.Same[TokenReview]("v1beta1", "1.4", "1.19", "1.22", names.GroupAuthentication+"/v1")))
	}
	if a.SelfSubject != nil {
		kinds = append(kinds, kind[SelfSubjectReview](a.SelfSubject, registry.Lifetime{Introduced: "1.28"}))
	}
	return kinds
}

func kind[T any](act registry.Act, life registry.Lifetime, former ...registry.VersionOf[T]) *registry.Kind {
	return registry.Of(registry.Definition[T]{
		Group: names.GroupAuthentication, Version: version, Kind: reflect.TypeFor[T]().Name(), Scope: registry.Cluster,
		Lifetime: life, Versions: former,
		Behavior: registry.Behavior{Act: act},
	})
}

// tokenGiven refuses a review without a token.
func tokenGiven(act registry.Act) registry.Act {
	return func(ctx context.Context, call *registry.Call) (*meta.Object, error) {
		if call.Object.String("spec", "token") == "" {
			return nil, meta.BadRequest("token is required for %s in authentication", call.Object.Kind())
		}
		return act(ctx, call)
	}
}
