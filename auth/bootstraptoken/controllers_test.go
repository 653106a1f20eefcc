package bootstraptoken_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth/bootstraptoken"
	"orch.io/controlplane/client"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// TestSignerAndCleaner checks the signatures in cluster-info and the deletion of
// expired tokens.
func TestSignerAndCleaner(t *testing.T) {
	ctx, p := context.Background(), names.Kubernetes
	w := servertest.New(t, func(b *server.Builder) {
		b.Controllers = []client.Controller{bootstraptoken.Signer(p, nil), bootstraptoken.Cleaner(p, nil)}
	})
	token := func(id, end, signing string) {
		data := map[string]any{"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": signing}
		if end != "" {
			data["expiration"] = end
		}
		_, err := w.Objects().Create(ctx, meta.GroupResource{Resource: "secrets"}, meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "Secret",
			"type": "bootstrap.kubernetes.io/token", "metadata": map[string]any{"name": "bootstrap-token-" + id, "namespace": "kube-system"}, "stringData": data}))
		require.NoError(t, err)
	}
	token("aaaaaa", "", "true")
	token("bbbbbb", meta.FormatTime(time.Now().Add(time.Hour)), "true")
	token("cccccc", "", "false")
	token("dddddd", meta.FormatTime(time.Now().Add(-time.Hour)), "true")
	token("short", "", "true") // not a valid token
	info := func() *meta.Object {
		w.Settle()
		o, err := w.Objects().Get(ctx, meta.GroupResource{Resource: "configmaps"}, meta.Key{Namespace: "kube-public", Name: "cluster-info"})
		require.NoError(t, err)
		return o
	}
	_, err := w.Objects().Create(ctx, meta.GroupResource{Resource: "configmaps"}, meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "cluster-info", "namespace": "kube-public"}, "data": map[string]any{"kubeconfig": "one", "jws-kubeconfig-zzzzzz": "x", "other": "y"}}))
	require.NoError(t, err)
	o := info()
	keys := []string{}
	for k := range o.Map("data") {
		keys = append(keys, k)
	}
	assert.ElementsMatch(t, []string{"kubeconfig", "other", "jws-kubeconfig-aaaaaa", "jws-kubeconfig-bbbbbb"}, keys)
	a := bootstraptoken.Token{ID: "aaaaaa", Secret: "0123456789abcdef"}
	signature := o.String("data", "jws-kubeconfig-aaaaaa")
	assert.True(t, bootstraptoken.Verify([]byte("one"), signature, a))
	assert.False(t, bootstraptoken.Verify([]byte("two"), signature, a))
	assert.False(t, bootstraptoken.Verify([]byte("one"), signature, bootstraptoken.Token{ID: "aaaaaa", Secret: "0123456789abcdee"}))
	assert.Equal(t, 2, strings.Count(signature, "."))
	assert.Contains(t, signature, "..")
	_, err = w.Objects().Update(ctx, meta.GroupResource{Resource: "configmaps"}, meta.Key{Namespace: "kube-public", Name: "cluster-info"}, "", func(o *meta.Object) error {
		o.Set("two", "data", "kubeconfig")
		return nil
	})
	require.NoError(t, err)
	assert.True(t, bootstraptoken.Verify([]byte("two"), info().String("data", "jws-kubeconfig-aaaaaa"), a), "a changed document is signed again")
	list, err := w.Objects().List(ctx, meta.GroupResource{Resource: "secrets"}, "kube-system")
	require.NoError(t, err)
	assert.Len(t, list, 4, "the expired token is deleted")
}

func FuzzVerify(f *testing.F) {
	t := bootstraptoken.Token{ID: "aaaaaa", Secret: "0123456789abcdef"}
	f.Add([]byte("y"), bootstraptoken.Sign([]byte("x"), t))
	f.Fuzz(func(tt *testing.T, document []byte, s string) {
		if string(document) != "x" {
			assert.False(tt, bootstraptoken.Verify(document, s, t))
		}
	})
}
