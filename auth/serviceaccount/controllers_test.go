package serviceaccount_test

import (
	"context"
	"encoding/base64"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

func TestControllersMaintainObjects(t *testing.T) { synctest.Test(t, testControllers) }

func testControllers(t *testing.T) {
	ctx := context.Background()
	key, err := serviceaccount.GenerateKey()
	require.NoError(t, err)
	var tokens *serviceaccount.Tokens
	w := servertest.New(t, func(b *server.Builder) {
		tokens, err = serviceaccount.New(serviceaccount.Config{Keys: []serviceaccount.Key{key}, Client: b.Client(), Names: b.Names})
		require.NoError(t, err)
		b.Controllers = []client.Controller{serviceaccount.DefaultAccounts(), serviceaccount.RootCA(names.Kubernetes, []byte("CA")), tokens.Secrets([]byte("CA"))}
	})
	c := w.Objects()
	put := func(resource string, tree map[string]any) {
		tree["apiVersion"] = "v1"
		_, err := c.Create(ctx, meta.GroupResource{Resource: resource}, meta.NewObject(tree))
		require.NoError(t, err)
	}
	get := func(resource, name string) (*meta.Object, error) {
		w.Settle()
		return c.Get(ctx, meta.GroupResource{Resource: resource}, meta.Key{Namespace: "ns", Name: name})
	}
	drop := func(resource, name string) {
		require.NoError(t, c.Delete(ctx, meta.GroupResource{Resource: resource}, meta.Key{Namespace: "ns", Name: name}, registry.DeleteOptions{}))
	}
	put("namespaces", map[string]any{"kind": "Namespace", "metadata": map[string]any{"name": "ns"}})
	for range 2 { // created, and created again after the deletion
		_, err = get("serviceaccounts", "default")
		require.NoError(t, err)
		ca, err := get("configmaps", "kube-root-ca.crt")
		require.NoError(t, err)
		assert.Equal(t, "CA", ca.String("data", "ca.crt"))
		drop("serviceaccounts", "default")
		drop("configmaps", "kube-root-ca.crt")
	}
	put("secrets", map[string]any{"kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": map[string]any{
		"name": "t", "namespace": "ns", "annotations": map[string]any{"kubernetes.io/service-account.name": "robot"}}})
	_, err = get("secrets", "t")
	require.True(t, meta.IsNotFound(err), "there is no such account: %v", err)
	put("serviceaccounts", map[string]any{"kind": "ServiceAccount", "metadata": map[string]any{"name": "robot", "namespace": "ns"}, "secrets": []any{map[string]any{"name": "t"}}})
	put("secrets", map[string]any{"kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": map[string]any{
		"name": "other", "namespace": "ns", "annotations": map[string]any{"kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": "another"}}})
	_, err = get("secrets", "other")
	require.True(t, meta.IsNotFound(err), "the account is another one: %v", err)
	put("secrets", map[string]any{"kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": map[string]any{
		"name": "t", "namespace": "ns", "annotations": map[string]any{"kubernetes.io/service-account.name": "robot"}}})
	secret, err := get("secrets", "t")
	require.NoError(t, err)
	token, err := base64.StdEncoding.DecodeString(secret.String("data", "token"))
	require.NoError(t, err)
	u, _, err := tokens.AuthenticateToken(ctx, string(token), nil)
	require.NoError(t, err)
	assert.Equal(t, "system:serviceaccount:ns:robot", u.Name)
	assert.Equal(t, "Q0E=", secret.String("data", "ca.crt"))
	assert.Equal(t, "bnM=", secret.String("data", "namespace"))
	drop("secrets", "t")
	account, err := get("serviceaccounts", "robot")
	require.NoError(t, err)
	assert.Empty(t, account.List("secrets"), "the account no longer refers to the deleted secret")
	_, _, err = tokens.AuthenticateToken(ctx, string(token), nil)
	require.Error(t, err, "a token ends with its secret")

	put("secrets", map[string]any{"kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": map[string]any{
		"name": "t2", "namespace": "ns", "annotations": map[string]any{"kubernetes.io/service-account.name": "robot"}}})
	_, err = get("secrets", "t2")
	require.NoError(t, err)
	drop("serviceaccounts", "robot")
	_, err = get("secrets", "t2")
	assert.True(t, meta.IsNotFound(err), "the secret is deleted with its account")
	require.NoError(t, c.Delete(ctx, meta.GroupResource{Resource: "namespaces"}, meta.Key{Name: "ns"}, registry.DeleteOptions{}))
	w.Settle()
	_, err = c.Get(ctx, meta.GroupResource{Resource: "namespaces"}, meta.Key{Name: "ns"})
	assert.True(t, meta.IsNotFound(err), "no object is created in a terminating namespace")
}
