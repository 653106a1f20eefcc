// Package review answers the kinds that ask who somebody is and what they may do:
// TokenReview, SelfSubjectReview and the access reviews.
package review

import (
	"context"
	"errors"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/internal/bearer"
	"orch.io/controlplane/registry"
)

const badToken = "invalid bearer token"

// Token returns the function that answers a TokenReview: it asks t whose the
// token is. audiences are those of the API, which tokens without audiences are
// for.
func Token(t auth.TokenAuthenticator, audiences []string) registry.Act {
	return func(ctx context.Context, call *registry.Call) (*meta.Object, error) {
		token := call.Object.String("spec", "token")
		if token == "" {
			return nil, meta.BadRequest("token is required for TokenReview in authentication")
		}
		asked := call.Object.Strings("spec", "audiences")
		if len(asked) == 0 {
			asked = audiences
		}
		u, good, err := t.AuthenticateToken(ctx, token, asked)
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
		status := map[string]any{"authenticated": true, "user": UserInfo(u)}
		if len(good) > 0 {
			status["audiences"] = list(good)
		}
		answer.Set(status, "status")
		return answer, nil
	}
}

// explain says why a token is not good, as far as the asker may know.
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

// SelfSubject returns the function that answers a SelfSubjectReview: the caller.
// now is the clock; nil is time.Now.
func SelfSubject(now func() time.Time) registry.Act {
	if now == nil {
		now = time.Now
	}
	return func(_ context.Context, call *registry.Call) (*meta.Object, error) {
		if call.User == nil {
			return nil, meta.BadRequest("nobody is asking")
		}
		answer := empty(call)
		answer.SetTime(now(), "metadata", "creationTimestamp")
		answer.Set(map[string]any{"userInfo": UserInfo(call.User)}, "status")
		return answer, nil
	}
}

// empty returns an object of the kind of the call's; what else the caller sent
// is no part of the answer.
func empty(call *registry.Call) *meta.Object {
	return meta.NewObject(map[string]any{
		"apiVersion": call.Object.APIVersion(), "kind": call.Object.Kind(), "metadata": map[string]any{},
	})
}

// UserInfo returns the JSON tree of a user as the API writes it.
func UserInfo(u *auth.User) map[string]any {
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
