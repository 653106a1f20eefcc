package review_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/registry"
)

// strict accepts a single token, for the audience vault.
type strict struct{ auth.Authenticator }

func (strict) AuthenticateToken(_ context.Context, token string, audiences []string) (*auth.User, []string, error) {
	switch {
	case token == "broken":
		return nil, nil, errors.New("secret detail")
	case token != "v":
		return nil, nil, nil
	case !strings.Contains(strings.Join(audiences, ","), "vault"):
		return nil, nil, auth.BadToken("not for %v", audiences)
	}
	return &auth.User{Name: "robot", Extra: map[string][]string{"k": {"v"}}}, []string{"vault"}, nil
}

func TestTokenReviewReturnsUser(t *testing.T) {
	file, err := tokenfile.Parse(strings.NewReader("a,alice,1,devs\n"))
	require.NoError(t, err)
	answer := review.Token(auth.Union(file, strict{}), []string{"api"})
	for _, c := range []struct{ spec, status string }{
		{`{"token":"a"}`, `{"authenticated":true,"user":{"username":"alice","uid":"1","groups":["devs","system:authenticated"]},"audiences":["api"]}`},
		{`{"token":"a","audiences":["x","api"]}`, `{"authenticated":true,"user":{"username":"alice","uid":"1","groups":["devs","system:authenticated"]},"audiences":["api"]}`},
		{`{"token":"a","audiences":["elsewhere"]}`, `{"user":{},"error":"invalid bearer token"}`},
		{`{"token":"wrong"}`, `{"user":{},"error":"invalid bearer token"}`},
		{`{"token":"broken"}`, `{"user":{},"error":"invalid bearer token"}`},
		{`{"token":"v"}`, `{"user":{},"error":"[invalid bearer token, not for [api]]"}`},
		{`{"token":"v","audiences":["vault","x"]}`, `{"authenticated":true,"user":{"username":"robot","groups":["system:authenticated"],"extra":{"k":["v"]}},"audiences":["vault"]}`},
	} {
		var tree map[string]any
		require.NoError(t, json.Unmarshal([]byte(`{"spec":`+c.spec+`,"status":{"authenticated":true,"user":{"username":"admin"}}}`), &tree))
		o, err := answer(context.Background(), &registry.Call{Object: meta.NewObject(tree)})
		require.NoError(t, err)
		got, err := json.Marshal(o.Map("status"))
		require.NoError(t, err)
		assert.JSONEq(t, c.status, string(got), c.spec)
	}
	_, err = answer(context.Background(), &registry.Call{Object: meta.NewObject(nil)})
	assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
}

func TestSelfSubjectReviewReturnsCaller(t *testing.T) {
	answer := review.SelfSubject(func() time.Time { return time.Unix(0, 0) })
	o, err := answer(context.Background(), &registry.Call{Object: meta.NewObject(map[string]any{"apiVersion": "x/v1", "kind": "SelfSubjectReview",
		"metadata": map[string]any{"name": "n", "labels": map[string]any{"a": "b"}}}),
		User: &auth.User{Name: "alice", UID: "1", Groups: []string{"g"}}})
	require.NoError(t, err)
	got, err := json.Marshal(o.Tree())
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"x/v1","kind":"SelfSubjectReview","metadata":{"creationTimestamp":"1970-01-01T00:00:00Z"},
		"status":{"userInfo":{"username":"alice","uid":"1","groups":["g"]}}}`, string(got))
	_, err = review.SelfSubject(time.Now)(context.Background(), &registry.Call{Object: meta.NewObject(nil)})
	assert.Error(t, err)
}

// A TokenReview that a token file answers.
func ExampleIdentity() {
	file, _ := tokenfile.Parse(strings.NewReader("secret,alice,1\n"))
	for _, k := range review.Identity(auth.Union(file), []string{"api"}) {
		if k.Kind != "TokenReview" {
			continue
		}
		o, _ := k.Act(context.Background(), &registry.Call{Object: meta.NewObject(map[string]any{"spec": map[string]any{"token": "secret"}})})
		fmt.Println(o.Bool("status", "authenticated"), o.String("status", "user", "username"), o.Strings("status", "audiences"))
	}
	// Output: true alice [api]
}

// A SubjectAccessReview that an authorizer answers.
func ExampleAccess() {
	for _, k := range review.Access(auth.Superuser("ops")) {
		if k.Kind != "SubjectAccessReview" {
			continue
		}
		o, _ := k.Act(context.Background(), &registry.Call{Object: meta.NewObject(map[string]any{"spec": map[string]any{
			"user": "bob", "groups": []any{"ops"}, "resourceAttributes": map[string]any{"verb": "delete", "resource": "pods"},
		}})})
		fmt.Println(o.Bool("status", "allowed"))
	}
	// Output: true
}
