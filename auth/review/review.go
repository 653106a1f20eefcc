// Package review implements the review kinds, which query the server's authenticator
// and authorizer: TokenReview, SelfSubjectReview and the access reviews.
package review

import (
	"context"
	"errors"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/internal/bearer"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

const badToken = "invalid bearer token"

// Identity returns the kinds TokenReview and SelfSubjectReview. t authenticates the
// tokens of TokenReviews. audiences are the audiences of the API: a TokenReview
// without audiences, and a token whose authenticator returns none, is for them.
func Identity(t auth.TokenAuthenticator, audiences []string) []*registry.Kind {
	return builtin.Reviews(builtin.Answers{TokenReview: token(t, audiences), SelfSubjectReview: selfSubject(time.Now)})
}

// token answers TokenReviews. It does not return an authenticator's internal errors.
func token(t auth.TokenAuthenticator, audiences []string) registry.Act {
	return func(ctx context.Context, call *registry.Call) (*meta.Object, error) {
		text := call.Object.String("spec", "token")
		if text == "" {
			return nil, meta.BadRequest("token is required for TokenReview in authentication")
		}
		asked := call.Object.Strings("spec", "audiences")
		if len(asked) == 0 {
			asked = audiences
		}
		u, good, err := t.AuthenticateToken(ctx, text, asked)
		if u != nil && good == nil {
			good = bearer.Audiences(asked, audiences)
			if len(good) == 0 && len(asked) > 0 {
				u = nil
			}
		}
		answer := call.Object.Clone()
		answer.Delete("status")
		if u == nil {
			answer.Set(map[string]any{"user": map[string]any{}, "error": explain(err)}, "status")
			return answer, nil
		}
		status := map[string]any{"authenticated": true, "user": userInfo(u)}
		if len(good) > 0 {
			status["audiences"] = list(good)
		}
		answer.Set(status, "status")
		return answer, nil
	}
}

// explain returns the status.error of a refused token. It has the reasons of
// auth.TokenError only, because other errors may contain internal details.
func explain(err error) string {
	var why []string
	var walk func(error)
	walk = func(err error) {
		var bad *auth.TokenError
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				walk(e)
			}
		} else if errors.As(err, &bad) {
			why = append(why, bad.Reason)
		}
	}
	walk(err)
	if why == nil {
		return badToken
	}
	text := "[" + badToken
	for _, w := range why {
		text += ", " + w
	}
	return text + "]"
}

// selfSubject answers SelfSubjectReviews with the caller's user info.
func selfSubject(now func() time.Time) registry.Act {
	return func(_ context.Context, call *registry.Call) (*meta.Object, error) {
		if call.User == nil {
			return nil, meta.BadRequest("no user present on request")
		}
		answer := empty(call)
		answer.SetTime(now(), "metadata", "creationTimestamp")
		answer.Set(map[string]any{"userInfo": userInfo(call.User)}, "status")
		return answer, nil
	}
}

// empty returns an object that has only the kind and apiVersion of the request.
func empty(call *registry.Call) *meta.Object {
	return meta.NewObject(map[string]any{
		"apiVersion": call.Object.APIVersion(), "kind": call.Object.Kind(), "metadata": map[string]any{},
	})
}

// userInfo returns the JSON of a user in the API's format.
func userInfo(u *auth.User) map[string]any {
	tree := map[string]any{}
	if u.Name != "" {
		tree["username"] = u.Name
	}
	if u.UID != "" {
		tree["uid"] = u.UID
	}
	if len(u.Groups) > 0 {
		tree["groups"] = list(u.Groups)
	}
	if len(u.Extra) > 0 {
		extra := map[string]any{}
		for k, v := range u.Extra {
			extra[k] = list(v)
		}
		tree["extra"] = extra
	}
	return tree
}

func list(s []string) []any {
	out := make([]any, len(s))
	for i, v := range s {
		out[i] = v
	}
	return out
}
