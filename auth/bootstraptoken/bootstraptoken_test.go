package bootstraptoken_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/bootstraptoken"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/server"
)

func secret(change func(m map[string]any, data map[string]string)) map[string]any {
	data := map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
		"auth-extra-groups": "system:bootstrappers:workers,system:bootstrappers:a"}
	m := map[string]any{"type": "bootstrap.kubernetes.io/token",
		"metadata": map[string]any{"name": "bootstrap-token-abcdef", "namespace": "kube-system"}}
	if change != nil {
		change(m, data)
	}
	encoded := map[string]any{}
	for k, v := range data {
		encoded[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	if m["data"] == nil {
		m["data"] = encoded
	}
	return m
}

func TestTokenOfSecretAuthenticates(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	good := &auth.User{Name: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:workers"}}
	set := func(k, v string) func(map[string]any, map[string]string) {
		return func(_ map[string]any, d map[string]string) { d[k] = v }
	}
	for name, c := range map[string]struct {
		change func(map[string]any, map[string]string)
		want   *auth.User
	}{
		"good":             {nil, good},
		"expires later":    {set("expiration", "2030-01-01T00:00:01Z"), good},
		"no groups":        {set("auth-extra-groups", ""), &auth.User{Name: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers"}}},
		"expired":          {set("expiration", "2030-01-01T00:00:00Z"), nil},
		"bad expiration":   {set("expiration", "tomorrow"), nil},
		"other secret":     {set("token-secret", "0123456789abcdee"), nil},
		"longer secret":    {set("token-secret", "0123456789abcdef0"), nil},
		"no secret":        {set("token-secret", ""), nil},
		"other id":         {set("token-id", "abcdee"), nil},
		"no usage":         {set("usage-bootstrap-authentication", ""), nil},
		"usage True":       {set("usage-bootstrap-authentication", "True"), nil},
		"foreign group":    {set("auth-extra-groups", "system:bootstrappers:a,system:masters"), nil},
		"bare group":       {set("auth-extra-groups", "system:bootstrappers:"), nil},
		"space at a comma": {set("auth-extra-groups", "system:bootstrappers:a, system:bootstrappers:b"), nil},
		"trailing comma":   {set("auth-extra-groups", "system:bootstrappers:a,"), nil},
		"group with space": {set("auth-extra-groups", "system:bootstrappers:a b"), nil},
		"longest group": {set("auth-extra-groups", "system:bootstrappers:"+strings.Repeat("a", 256)),
			&auth.User{Name: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", "system:bootstrappers:" + strings.Repeat("a", 256)}}},
		"group too long":  {set("auth-extra-groups", "system:bootstrappers:"+strings.Repeat("a", 257)), nil},
		"other type":      {func(m map[string]any, _ map[string]string) { m["type"] = "Opaque" }, nil},
		"other namespace": {func(m map[string]any, _ map[string]string) { m["metadata"].(map[string]any)["namespace"] = "default" }, nil},
		"terminating": {func(m map[string]any, _ map[string]string) {
			m["metadata"].(map[string]any)["deletionTimestamp"] = "2029-12-31T23:59:59Z"
		}, nil},
		"data is no base64": {func(m map[string]any, _ map[string]string) { m["data"] = map[string]any{"token-id": "%"} }, nil},
	} {
		client := &testclient.Client{}
		client.Put("secrets", secret(c.change))
		a := bootstraptoken.New(client, names.Kubernetes, func() time.Time { return now })
		u, _, err := a.AuthenticateToken(context.Background(), "abcdef.0123456789abcdef", nil)
		assert.Equal(t, c.want, u, name)
		if c.want == nil {
			assert.ErrorIs(t, err, auth.ErrBadToken, name)
		} else {
			assert.NoError(t, err, name)
		}
	}
}

func TestOtherTokensAreIgnored(t *testing.T) {
	client := &testclient.Client{}
	a := bootstraptoken.New(client, names.Kubernetes, nil)
	for _, token := range []string{"", "abcdef", "abcdef.", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcde", "abcdef.0123456789abcdef0",
		"abcdef.0123456789abcdef\n", "../../.0123456789abcdef", "a.b.c"} {
		u, _, err := a.AuthenticateToken(context.Background(), token, nil)
		assert.Nil(t, u)
		assert.NoError(t, err, "%q is not a bootstrap token", token)
	}
	_, _, err := a.AuthenticateToken(context.Background(), "abcdef.0123456789abcdef", nil)
	assert.ErrorIs(t, err, auth.ErrBadToken)
	client.Fail(errors.New("boom"))
	_, _, err = a.AuthenticateToken(context.Background(), "abcdef.0123456789abcdef", nil)
	assert.EqualError(t, err, "boom")
}

func FuzzAuthenticateToken(f *testing.F) {
	client := &testclient.Client{}
	client.Put("secrets", secret(nil))
	a := bootstraptoken.New(client, names.Kubernetes, nil)
	f.Add("abcdef.0123456789abcdef")
	f.Add("abcdef.0123456789abcdee")
	f.Fuzz(func(t *testing.T, token string) {
		u, _, _ := a.AuthenticateToken(context.Background(), token, nil)
		assert.Equal(t, token == "abcdef.0123456789abcdef", u != nil)
	})
}

// Bootstrap tokens authenticate machines and sign cluster-info. Expired tokens are
// deleted.
func ExampleNew() {
	cl := &testclient.Client{}
	cl.Put("secrets", secret(nil))
	a := bootstraptoken.New(cl, names.Kubernetes, nil)
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer abcdef.0123456789abcdef")
	u, _ := a.Authenticate(r)
	fmt.Println(u.Name)
	b := &server.Builder{Controllers: []client.Controller{
		bootstraptoken.Signer(names.Kubernetes, nil), bootstraptoken.Cleaner(names.Kubernetes, nil),
	}}
	for _, c := range b.Controllers {
		fmt.Println(c.Name)
	}
	// Output:
	// system:bootstrap:abcdef
	// bootstrapsigner
	// tokencleaner
}

func TestReadParsesSecret(t *testing.T) {
	_, ok := bootstraptoken.Read(meta.NewObject(nil), names.Orch)
	require.False(t, ok)
	token, ok := bootstraptoken.Read(meta.NewObject(secret(nil)), names.Kubernetes)
	require.True(t, ok)
	require.Equal(t, "abcdef.0123456789abcdef", token.String())
	require.True(t, token.Authentication)
	require.False(t, token.Signing)
}
