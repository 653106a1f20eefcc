package impersonate_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/internal/impersonate"
)

func header(kv ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Add(kv[i], kv[i+1])
	}
	return h
}

func TestParse(t *testing.T) {
	type check struct{ group, resource, sub, namespace, name string }
	for _, c := range []struct {
		name   string
		h      http.Header
		want   auth.User
		checks []check
	}{
		{"user", header("Impersonate-User", "zoe"),
			auth.User{Name: "zoe", Groups: []string{auth.Authenticated}},
			[]check{{"", "users", "", "", "zoe"}}},
		{"groups", header("Impersonate-User", "zoe", "Impersonate-Group", "g1", "impersonate-group", "g2"),
			auth.User{Name: "zoe", Groups: []string{"g1", "g2", auth.Authenticated}},
			[]check{{"", "users", "", "", "zoe"}, {"", "groups", "", "", "g1"}, {"", "groups", "", "", "g2"}}},
		{"uid", header("Impersonate-User", "zoe", "Impersonate-Uid", "u 7"),
			auth.User{Name: "zoe", UID: "u 7", Groups: []string{auth.Authenticated}},
			[]check{{"", "users", "", "", "zoe"}, {"authentication.k8s.io", "uids", "", "", "u 7"}}},
		{"extras", header("Impersonate-User", "zoe", "Impersonate-Extra-Scopes", "view", "Impersonate-Extra-Scopes", "edit", "Impersonate-Extra-Acme%2fTeam", "blue", "Impersonate-Extra-Bad%zz", "x"),
			auth.User{Name: "zoe", Groups: []string{auth.Authenticated},
				Extra: map[string][]string{"scopes": {"view", "edit"}, "acme/team": {"blue"}, "bad%zz": {"x"}}},
			[]check{{"", "users", "", "", "zoe"},
				{"authentication.k8s.io", "userextras", "acme/team", "", "blue"},
				{"authentication.k8s.io", "userextras", "bad%zz", "", "x"},
				{"authentication.k8s.io", "userextras", "scopes", "", "view"},
				{"authentication.k8s.io", "userextras", "scopes", "", "edit"}}},
		{"service account", header("Impersonate-User", "system:serviceaccount:ns:robot"),
			auth.User{Name: "system:serviceaccount:ns:robot", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ns", auth.Authenticated}},
			[]check{{"", "serviceaccounts", "", "ns", "robot"}}},
		{"service account with groups", header("Impersonate-User", "system:serviceaccount:ns:robot", "Impersonate-Group", "g"),
			auth.User{Name: "system:serviceaccount:ns:robot", Groups: []string{"g", auth.Authenticated}},
			[]check{{"", "serviceaccounts", "", "ns", "robot"}, {"", "groups", "", "", "g"}}},
		{"no name that an account can have", header("Impersonate-User", "system:serviceaccount:NS:Robot"),
			auth.User{Name: "system:serviceaccount:NS:Robot", Groups: []string{auth.Authenticated}},
			[]check{{"", "users", "", "", "system:serviceaccount:NS:Robot"}}},
		{"no service account after all", header("Impersonate-User", "system:serviceaccount:robot"),
			auth.User{Name: "system:serviceaccount:robot", Groups: []string{auth.Authenticated}},
			[]check{{"", "users", "", "", "system:serviceaccount:robot"}}},
		{"anonymous", header("Impersonate-User", auth.Anonymous),
			auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}},
			[]check{{"", "users", "", "", auth.Anonymous}}},
		{"authenticated already", header("Impersonate-User", "zoe", "Impersonate-Group", auth.Authenticated),
			auth.User{Name: "zoe", Groups: []string{auth.Authenticated}},
			[]check{{"", "users", "", "", "zoe"}, {"", "groups", "", "", auth.Authenticated}}},
		{"unauthenticated on request", header("Impersonate-User", "zoe", "Impersonate-Group", auth.Unauthenticated),
			auth.User{Name: "zoe", Groups: []string{auth.Unauthenticated}},
			[]check{{"", "users", "", "", "zoe"}, {"", "groups", "", "", auth.Unauthenticated}}},
	} {
		q, err := impersonate.Parse(c.h, names.Kubernetes)
		require.NoError(t, err, c.name)
		assert.Equal(t, &c.want, q.User, c.name)
		var got []check
		for _, a := range q.Checks {
			assert.Equal(t, "impersonate", a.Verb, c.name)
			assert.Nil(t, a.User)
			got = append(got, check{a.Group, a.Resource, a.Subresource, a.Namespace, a.Name})
		}
		assert.Equal(t, c.checks, got, c.name)
	}
	for _, h := range []http.Header{header("X-Remote-User", "zoe"), header("Impersonate-User", ""), header("Impersonate-Uid", "")} {
		q, err := impersonate.Parse(h, names.Orch)
		assert.Nil(t, q)
		assert.NoError(t, err)
	}
}

// TestParseFirst checks that the first of several values of a header is checked and used.
func TestParseFirst(t *testing.T) {
	q, err := impersonate.Parse(header("Impersonate-User", "zoe", "Impersonate-User", "admin", "Impersonate-Uid", "1", "Impersonate-Uid", "2"), names.Orch)
	require.NoError(t, err)
	assert.Equal(t, "zoe", q.User.Name)
	assert.Equal(t, "1", q.User.UID)
	require.Len(t, q.Checks, 2)
	assert.Equal(t, "zoe", q.Checks[0].Name)
	assert.Equal(t, "1", q.Checks[1].Name)
}

// TestRightsOfARequestAreBounded checks the largest request, and a request with another group.
func TestRightsOfARequestAreBounded(t *testing.T) {
	h := header("Impersonate-User", "zoe")
	for i := range 499 {
		h.Add("Impersonate-Group", fmt.Sprint(i))
	}
	q, err := impersonate.Parse(h, names.Orch)
	require.NoError(t, err)
	assert.Len(t, q.Checks, 500)
	h.Add("Impersonate-Group", "more")
	_, err = impersonate.Parse(h, names.Orch)
	assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
}

func TestParseRejectsInvalidHeaders(t *testing.T) {
	many := header("Impersonate-User", "zoe")
	for i := range 1000 {
		many.Add("Impersonate-Group", fmt.Sprint(i))
	}
	for name, h := range map[string]http.Header{
		"group alone":      header("Impersonate-Group", "g"),
		"uid alone":        header("Impersonate-Uid", "7"),
		"extra alone":      header("Impersonate-Extra-Scopes", "x"),
		"raw extra alone":  {"impersonate-extra-scopes": {"x"}},
		"empty user group": header("Impersonate-User", "", "Impersonate-Group", "g"),
		"too many":         many,
	} {
		q, err := impersonate.Parse(h, names.Orch)
		assert.Nil(t, q, name)
		assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err), name)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("Impersonate-User", "zoe", "Impersonate-Extra-A%2fb", "c")
	f.Add("Impersonate-User", "system:serviceaccount::", "Impersonate-Extra-", "")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		h := http.Header{k1: {v1}}
		h[k2] = append(h[k2], v2)
		q, err := impersonate.Parse(h, names.Kubernetes)
		if err != nil {
			assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
			return
		}
		if q == nil {
			for k := range h {
				assert.False(t, k == impersonate.UserHeader && h.Get(k) != "")
			}
			return
		}
		assert.NotEmpty(t, q.User.Name)
		assert.NotEmpty(t, q.Checks)
		assert.NotEmpty(t, q.User.Groups)
	})
}

func ExampleParse() {
	h := http.Header{}
	h.Set("Impersonate-User", "bob")
	h.Set("Impersonate-Group", "devs")
	q, _ := impersonate.Parse(h, names.Orch)
	for _, a := range q.Checks {
		fmt.Println(a.Verb, a.Resource, a.Name)
	}
	fmt.Println(q.User.Name, q.User.Groups)
	// Output:
	// impersonate users bob
	// impersonate groups devs
	// bob [devs system:authenticated]
}
