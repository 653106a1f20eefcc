package servertest_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

const reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

func whoami(t *testing.T, c *http.Client, host string) (name string, groups []string) {
	t.Helper()
	res := send(t, t.Context(), c, "POST", host+reviews, `{}`)
	defer res.Body.Close()
	var review struct {
		Status struct {
			UserInfo struct {
				Username string
				Groups   []string
			}
		}
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&review))
	return review.Status.UserInfo.Username, review.Status.UserInfo.Groups
}

func TestAsSendsRequestsAsUser(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.RBAC)
	name, groups := whoami(t, s.As("jane", "devs").Client(), s.Host())
	assert.Equal(t, "jane", name)
	assert.Equal(t, []string{"devs", "system:authenticated"}, groups)
	name, groups = whoami(t, s.As("system:serviceaccount:default:operator").Client(), s.Host())
	assert.Equal(t, "system:serviceaccount:default:operator", name)
	assert.Contains(t, groups, "system:serviceaccounts:default")

	admin := s.As("admin", auth.Masters)
	s.Load(fstest.MapFS{"roles.yaml": {Data: []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: devs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: devs}]
`)}})
	assert.Equal(t, "404", outcome(t, s.As("jane", "devs").Client(), "GET", s.Host()+maps+"/x", ""))
	assert.Equal(t, "403", outcome(t, s.As("jane").Client(), "GET", s.Host()+maps+"/x", ""))
	assert.Equal(t, "403", outcome(t, s.Client(), "GET", s.Host()+maps+"/x", ""), "a request without a user has no rights")

	// Headers and names that a client chooses do not authenticate it.
	socket := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(socket.CloseIdleConnections)
	for token, want := range map[string]int{"jane": 401, "": 403, s.As("jane", "devs").Token(): 404} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+maps+"/x", nil)
		require.NoError(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := socket.Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, want, res.StatusCode, token)
	}

	review := fmt.Sprintf(`{"spec":{"token":%q}}`, s.As("jane").Token())
	res := send(t, t.Context(), admin.Client(), "POST", s.Host()+"/apis/authentication.k8s.io/v1/tokenreviews", review)
	defer res.Body.Close()
	var answer struct{ Status struct{ Authenticated bool } }
	require.NoError(t, json.NewDecoder(res.Body).Decode(&answer))
	assert.True(t, answer.Status.Authenticated, "token reviews know users")
}

// TestConfiguredAuthenticatorsWork checks that configured authenticators work beside the users of As.
func TestConfiguredAuthenticatorsWork(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) {
		b.Authenticators = []auth.Authenticator{auth.AuthenticatorFunc(func(r *http.Request) (*auth.User, error) {
			if r.Header.Get("X-User") == "" {
				return nil, nil
			}
			return &auth.User{Name: r.Header.Get("X-User")}, nil
		})}
	})
	assert.Equal(t, "401", outcome(t, s.Client(), "GET", s.Host()+maps, ""))
	assert.Equal(t, "200", outcome(t, s.As("jane").Client(), "GET", s.Host()+maps, ""))
}

// TestKubeconfig uses the file as a client does.
func TestKubeconfig(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	text, err := os.ReadFile(s.As("jane").Kubeconfig())
	require.NoError(t, err)
	find := func(pattern string) string { return string(regexp.MustCompile(pattern).FindSubmatch(text)[1]) }
	ca, err := base64.StdEncoding.DecodeString(find(`certificate-authority-data: (\S+)}`))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca))
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer tr.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), "GET", find(`server: "(\S+)"`)+maps, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+find(`token: (\S+)}`))
	res, err := tr.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, 200, res.StatusCode)
	assert.Contains(t, s.Requests(), "jane list configmaps default/ → 200")
}

// TestLoadAcceptsOutputOfKubectl loads the output of kubectl get.
func TestLoadAcceptsOutputOfKubectl(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	s.Load(fstest.MapFS{
		"a/objects.json": {Data: []byte(`{"apiVersion":"v1","kind":"List","items":[
			{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"part","namespace":"team","resourceVersion":"77","uid":"2","creationTimestamp":"2020-01-01T00:00:00Z",
			 "ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"whole","uid":"1"}]}},
			{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"whole","namespace":"team","uid":"1"}},
			{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"held","namespace":"team","finalizers":["example.com/x"],"deletionTimestamp":"2020-01-01T00:00:00Z"}}]}`)},
		"a/pod.yaml": {Data: []byte(`
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: team}
spec: {containers: [{name: web, image: web}]}
status: {phase: Running, podIP: 10.0.0.7}
---
apiVersion: sea.example.com/v1
kind: Ship
metadata: {name: pequod}
spec: {captain: Ahab}
status: {at: sea}
`)},
		"b/first.yaml": {Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  names: {kind: Ship, plural: ships}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {captain: {type: string}}}, status: {type: object, properties: {at: {type: string}}}}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {a: b}}
`)},
	})
	get := func(r meta.GroupResource, namespace, name string) *meta.Object {
		o, err := s.Objects().Get(t.Context(), r, meta.Key{Namespace: namespace, Name: name})
		require.NoError(t, err)
		return o
	}
	whole, part := get(configMaps, "team", "whole"), get(configMaps, "team", "part")
	assert.Equal(t, whole.UID(), part.OwnerReferences()[0].UID)
	assert.True(t, get(configMaps, "team", "held").Terminating())
	assert.Equal(t, "10.0.0.7", get(meta.GroupResource{Resource: "pods"}, "team", "web").String("status", "podIP"))
	ship := get(meta.GroupResource{Group: "sea.example.com", Resource: "ships"}, "default", "pequod")
	assert.Equal(t, []string{"Ahab", "sea"}, []string{ship.String("spec", "captain"), ship.String("status", "at")})
	assert.Equal(t, "b", get(meta.GroupResource{Resource: "namespaces"}, "", "default").Labels()["a"])
	assert.Empty(t, s.Requests(), "requests of Load are not recorded")
}

// TestFaultyFixtures checks that invalid fixtures end the test.
func TestFaultyFixtures(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		`loading ConfigMap x: `: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"daat":{}}`,
		`loading Ship pequod: kind Ship in sea.example.com/v1 is not served`: `{"apiVersion":"sea.example.com/v1","kind":"Ship","metadata":{"name":"pequod"}}`,
		`the files contain no objects`:                                       `# nothing`,
	} {
		w := &watched{TB: t}
		s := servertest.New(w)
		func() {
			defer func() { assert.Equal(t, "fatal", recover(), want) }()
			s.Load(fstest.MapFS{"x.yaml": {Data: []byte(text)}})
		}()
		assert.Contains(t, w.end(), want)
	}
}

func (w *watched) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	panic("fatal")
}
func (w *watched) Fatal(args ...any) { w.Fatalf("%s", fmt.Sprint(args...)) }
