package access_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// keepOpen is a store that stays open when its server closes it.
type keepOpen struct{ storage.Backend }

func (keepOpen) Close() error { return nil }

// TestStartWithUnreadableObjects checks that a server starts although standard objects in the store cannot be
// read: the other objects are served, the unreadable objects can be deleted, and the next start creates them again.
func TestStartWithUnreadableObjects(t *testing.T) {
	const roles = "/apis/rbac.authorization.k8s.io/v1/"
	paths := map[string]string{
		"namespaces/":       "/api/v1/namespaces/",
		"clusterroles.":     roles + "clusterroles/",
		"clusterrolebindin": roles + "clusterrolebindings/",
		"rolebindings.":     roles + "namespaces/kube-public/rolebindings/",
		"configmaps/":       "/api/v1/namespaces/kube-system/configmaps/",
	}
	bad := []string{"namespaces//kube-system", "namespaces//default",
		"clusterroles.rbac.authorization.k8s.io//view", "clusterrolebindings.rbac.authorization.k8s.io//cluster-admin",
		"rolebindings.rbac.authorization.k8s.io/kube-public/system:controller:bootstrap-signer",
		"configmaps/kube-system/extension-apiserver-authentication"}
	mem := memstore.New(memstore.Options{})
	users, err := tokenfile.Parse(strings.NewReader("root,root,1,system:masters\n"))
	require.NoError(t, err)
	start := func(t *testing.T, plan faultinject.Plan) guarded {
		return guarded{t: t, Server: servertest.New(t, func(b *server.Builder) {
			b.Authorizer, b.Storage = nil, faultinject.Wrap(keepOpen{mem}, plan)
			require.NoError(t, access.Setup(b, access.Config{
				Authenticators: []auth.Authenticator{users}, Publish: access.Publish{Authentication: access.Authentication{ClientCAs: []byte("x")}},
			}))
		})}
	}
	root := []string{"Authorization", "Bearer root"}
	each := func(g guarded, method string, want int) {
		for _, key := range bad {
			for resource, path := range paths {
				if strings.HasPrefix(key, resource) {
					code, body := g.send(method, path+key[strings.LastIndex(key, "/")+1:], "", root...)
					require.Equal(g.t, want, code, "%s %s: %v", method, key, body)
				}
			}
		}
	}
	t.Run("first", func(t *testing.T) {
		g := start(t, nil)
		g.Settle()
		each(g, "GET", 200)
	})
	t.Run("damaged", func(t *testing.T) {
		g := start(t, func(c faultinject.Call) faultinject.Fault {
			for _, key := range bad {
				if c.Op == faultinject.OpRecord && c.Key == key {
					return faultinject.Fault{Err: &storage.DamagedError{Key: c.Key, Revision: c.At, Err: errors.New("spoilt")}}
				}
			}
			return faultinject.Fault{}
		})
		each(g, "GET", 500)
		code, _ := g.send("GET", "/api/v1/namespaces/kube-public", "", root...)
		require.Equal(t, 200, code)
		code, body := g.send("POST", "/api/v1/namespaces/kube-public/configmaps", `{"metadata":{"name":"new"}}`, root...)
		require.Equal(t, 201, code, "%v", body)
		each(g, "DELETE", 200)
	})
	t.Run("anew", func(t *testing.T) {
		g := start(t, nil)
		g.Settle()
		each(g, "GET", 200)
	})
}
