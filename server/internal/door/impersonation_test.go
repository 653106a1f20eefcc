package door_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// personas is an Authorizer that allows alice to impersonate the listed users and attributes, as
// "resource=name", and allows everything else.
type personas []string

func (p personas) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	if a.Verb != "impersonate" {
		return auth.Allow, "", nil
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	for _, ok := range p {
		if ok == resource+"="+a.Name && a.User.Name == "alice" {
			return auth.Allow, "", nil
		}
	}
	return auth.NoOpinion, "no rule", nil
}

// TestImpersonationNeedsPermissionForEachPart checks that impersonation needs a permission for each part of
// the identity.
func TestImpersonationNeedsPermissionForEachPart(t *testing.T) {
	t.Parallel()
	file, err := tokenfile.Parse(strings.NewReader("token,alice,1\n"))
	require.NoError(t, err)
	s := servertest.New(t, func(b *server.Builder) {
		b.Authenticators = []auth.Authenticator{file}
		b.Authorizer = personas{"users=bob", "groups=devs", "uids=1", "userextras/team=blue", "serviceaccounts=robot"}
		b.Register(review.Identity(auth.Union(file), nil)...)
	})
	a := apitest.NewClient(t, s.Host(), s.Client())
	for _, c := range []struct {
		headers string // names and values
		as      string // empty: not allowed
		denied  string
	}{
		{"", "alice", ""},
		{"Impersonate-User bob", "bob", ""},
		{"Impersonate-User bob Impersonate-Group devs Impersonate-Uid 1 Impersonate-Extra-Team blue", "bob", ""},
		{"Impersonate-User system:serviceaccount:ns:robot", "system:serviceaccount:ns:robot", ""},
		{"Impersonate-User carol", "", `"alice" cannot impersonate resource "users"`},
		{"Impersonate-User alice", "", `"alice" cannot impersonate resource "users"`},
		{"Impersonate-User bob Impersonate-Group ops", "", `"alice" cannot impersonate resource "groups"`},
		{"Impersonate-User bob Impersonate-Group system:masters", "", `"alice" cannot impersonate resource "groups"`},
		{"Impersonate-User bob Impersonate-Uid 2", "", `"alice" cannot impersonate resource "uids"`},
		{"Impersonate-User bob Impersonate-Extra-Team red", "", `"alice" cannot impersonate resource "userextras/team"`},
		{"Impersonate-User bob Impersonate-Extra-Other blue", "", `"alice" cannot impersonate resource "userextras/other"`},
		{"Impersonate-User system:serviceaccount:ns:other", "", `"alice" cannot impersonate resource "serviceaccounts"`},
	} {
		got := a.Do("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", map[string]any{},
			append(strings.Fields(c.headers), "Authorization", "Bearer token")...)
		if c.as == "" {
			assert.Equal(t, 403, got.Code, "%s: %s", c.headers, got.Raw)
			assert.Contains(t, got.Body["message"], c.denied)
			assert.Contains(t, got.Body["message"], "no rule")
			continue
		}
		require.Equal(t, 201, got.Code, "%s: %s", c.headers, got.Raw)
		info := got.Body["status"].(map[string]any)["userInfo"].(map[string]any)
		assert.Equal(t, c.as, info["username"], c.headers)
	}
}
