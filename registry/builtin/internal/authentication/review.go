// Package authentication defines the review kinds of the authentication group and the body of the
// subresource token. Objects of these kinds are not stored: the answer to a POST is the completed
// object.
package authentication

import (
	"context"
	"reflect"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

const version = "v1"

// Answers are the functions that complete reviews. A kind with a nil function is not served.
type Answers struct{ Token, SelfSubject registry.Act }

// Kinds returns the kinds that a has functions for. TokenRequest is not among them: it is only the body
// of a subresource.
func Kinds(a Answers) []*registry.Kind {
	var kinds []*registry.Kind
	if a.Token != nil {
		kinds = append(kinds, kind[TokenReview](tokenGiven(a.Token), registry.Lifetime{},
			older.Same[TokenReview]("v1beta1", "1.4", "1.19", "1.22", wellknown.GroupAuthentication+"/v1")))
	}
	if a.SelfSubject != nil {
		kinds = append(kinds, kind[SelfSubjectReview](a.SelfSubject, registry.Lifetime{Introduced: "1.28"}))
	}
	return kinds
}

func kind[T any](act registry.Act, life registry.Lifetime, former ...registry.VersionOf[T]) *registry.Kind {
	return registry.Of(registry.Definition[T]{
		Group: wellknown.GroupAuthentication, Version: version, Kind: reflect.TypeFor[T]().Name(), Scope: registry.Cluster,
		Lifetime: life, Versions: former,
		Behavior: registry.Behavior{Act: act},
	})
}

// tokenGiven wraps act and refuses reviews without a token.
func tokenGiven(act registry.Act) registry.Act {
	return func(ctx context.Context, call *registry.Call) (*meta.Object, error) {
		if call.Object.String("spec", "token") == "" {
			return nil, meta.BadRequest("token is required for %s in authentication", call.Object.Kind())
		}
		return act(ctx, call)
	}
}
