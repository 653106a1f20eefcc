package replicas_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// admits is a webhook that admits every request.
var admits = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	var review struct{ Request struct{ UID string } }
	_ = json.NewDecoder(r.Body).Decode(&review)
	fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, review.Request.UID)
})

// asking returns a server with every kind of authenticator, authorizer and admission plugin, a service
// account token and a bootstrap token. Both tokens may do everything.
func asking(t *testing.T) (a *apitest.Client, account, bootstrap []string) {
	key, err := serviceaccount.GenerateKey()
	require.NoError(t, err)
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s := servertest.New(t, apitest.WithStorage(apitest.CountingStore{SharedStore: apitest.SharedStore{Backend: store}}), func(b *server.Builder) {
		tokens, err := serviceaccount.New(serviceaccount.Config{Keys: []serviceaccount.Key{key}, Client: b.Client(), Names: b.Names})
		require.NoError(t, err)
		methods := b.Authenticators
		b.Authenticators, b.Authorizer = nil, nil
		require.NoError(t, access.Setup(b, access.Config{Tokens: tokens, BootstrapTokens: true, Authenticators: methods}))
		b.ServiceResolver = func(context.Context, server.Service) (server.Endpoint, error) {
			return server.Endpoint{Handler: admits}, nil
		}
	})
	a = apitest.As(t, s, "root", auth.Masters)
	a.Must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", `{"metadata":{"name":"robot"}}`)
	a.Must(201, "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"bound"}}`)
	a.Must(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata":{"name":"all"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:authenticated"}]}`)
	token := apitest.NestedString(a.Must(201, "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token",
		`{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"bound"}}}`).Body, "status", "token")
	a.Must(201, "POST", "/api/v1/namespaces/kube-system/secrets", `{"metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token",
		"stringData":{"token-id":"abcdef","token-secret":"0123456789abcdef","usage-bootstrap-authentication":"true","expiration":"`+
		time.Now().Add(time.Hour).Format(time.RFC3339)+`"}}`)
	a.Must(201, "POST", apitest.DefinitionsPath, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},"subresources":{"status":{},
		"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}}}]}}`)
	for _, name := range []string{"bounded", "policed", "hooked"} {
		a.Must(201, "POST", apitest.NamespacesPath, `{"metadata":{"name":"`+name+`","labels":{"`+name+`":"yes"}}}`)
	}
	a.Must(201, "POST", "/api/v1/namespaces/bounded/limitranges", `{"metadata":{"name":"x"},"spec":{"limits":[{"type":"Container","default":{"cpu":"1"}}]}}`)
	a.Must(201, "POST", "/api/v1/namespaces/bounded/resourcequotas", `{"metadata":{"name":"x"},"spec":{"hard":{"pods":"9","limits.cpu":"9","count/configmaps":"9"}}}`)
	a.Must(201, "POST", "/api/v1/namespaces/bounded/resourcequotas", `{"metadata":{"name":"y"},"spec":{"hard":{"pods":"9"}}}`)
	const registration = "/apis/admissionregistration.k8s.io/v1/"
	rules := `[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]`
	in := func(namespace string) string {
		return `"namespaceSelector":{"matchLabels":{"` + namespace + `":"yes"}}`
	}
	a.Must(201, "POST", registration+"validatingadmissionpolicies", `{"metadata":{"name":"x"},"spec":{"matchConstraints":{"resourceRules":`+strings.Replace(rules, `"resources"`, `"scope":"Namespaced","resources"`, 1)+`,`+in("policed")+`},
		"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"validations":[{"expression":"params.data.allowed == 'yes' && namespaceObject.metadata.name == 'policed'"}]}}`)
	a.Must(201, "POST", "/api/v1/namespaces/default/configmaps", apitest.NewConfigMap("parameter", "allowed", "yes"))
	a.Must(201, "POST", registration+"validatingadmissionpolicybindings", `{"metadata":{"name":"x"},"spec":{"policyName":"x","validationActions":["Deny"],
		"paramRef":{"name":"parameter","namespace":"default","parameterNotFoundAction":"Deny"}}}`)
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		a.Must(201, "POST", registration+resource, `{"metadata":{"name":"x"},"webhooks":[{"name":"x.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
			"clientConfig":{"service":{"namespace":"default","name":"hook"}},"rules":`+rules+`,`+in("hooked")+`}]}`)
	}
	s.Settle()
	return a, []string{"Authorization", "Bearer " + token}, []string{"Authorization", "Bearer abcdef.0123456789abcdef"}
}

// TestRequestReadsNewestRevisionOnce: a request reads the newest revision of the store at most
// once, no matter how many authenticators, authorizers and admission plugins use it.
func TestRequestReadsNewestRevisionOnce(t *testing.T) {
	t.Parallel()
	a, account, bootstrap := asking(t)
	const (
		in      = "/api/v1/namespaces/"
		pods    = in + "default/pods"
		widget  = apitest.WidgetsPath + "/w"
		pod     = `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
		reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	)
	robot := []string{"Impersonate-User", "system:serviceaccount:default:robot"}
	ssa := []string{"Content-Type", apitest.ApplyPatch}
	for _, c := range []struct {
		asked, code        int
		method, path, body string
		headers            []string
	}{
		{1, 201, "POST", apitest.ConfigMapsPath, `{"metadata":{"name":"c"}}`, nil},
		{1, 409, "POST", apitest.ConfigMapsPath, `{"metadata":{"name":"c"}}`, nil},
		{1, 201, "POST", apitest.ConfigMapsPath, `{"metadata":{"generateName":"c-"}}`, nil},
		{1, 201, "POST", apitest.ConfigMapsPath + "?dryRun=All", `{"metadata":{"name":"d"}}`, nil},
		{1, 404, "POST", in + "none/configmaps", `{"metadata":{"name":"c"}}`, nil},
		{1, 200, "GET", apitest.ConfigMapsPath + "/c", "", nil},
		{1, 404, "GET", apitest.ConfigMapsPath + "/none", "", nil},
		{0, 200, "GET", apitest.ConfigMapsPath + "/c?resourceVersion=0", "", nil},
		{1, 200, "GET", apitest.ConfigMapsPath + "/c?resourceVersion=1", "", nil},
		{1, 200, "GET", apitest.ConfigMapsPath, "", nil},
		{1, 200, "GET", apitest.ConfigMapsPath + "?limit=1", "", nil},
		{0, 200, "GET", apitest.ConfigMapsPath + "?resourceVersion=0", "", nil},
		{1, 200, "GET", apitest.ConfigMapsPath + "?resourceVersion=1&resourceVersionMatch=NotOlderThan", "", nil},
		{1, 200, "GET", apitest.ConfigMapsPath + "?watch=1", "", nil},
		{1, 200, "GET", apitest.ConfigMapsPath + "?watch=1&resourceVersion=0", "", nil},
		{1, 200, "GET", apitest.ConfigMapsPath + "?watch=1&resourceVersion=1", "", nil},
		{1, 200, "GET", apitest.ConfigMapsPath + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "", nil},
		{1, 200, "PUT", apitest.ConfigMapsPath + "/c", `{"metadata":{"name":"c"},"data":{"a":"1"}}`, nil},
		{1, 200, "PATCH", apitest.ConfigMapsPath + "/c", `{"data":{"a":"2"}}`, nil},
		{1, 200, "PATCH", apitest.ConfigMapsPath + "/c?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","data":{"b":"1"}}`, ssa},
		{1, 201, "PATCH", apitest.ConfigMapsPath + "/applied?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"b":"1"}}`, ssa},
		{1, 200, "DELETE", apitest.ConfigMapsPath + "/c", "", nil},
		{1, 404, "DELETE", apitest.ConfigMapsPath + "/c", "", nil},
		{1, 200, "DELETE", apitest.ConfigMapsPath + "?fieldSelector=metadata.name!%3Dparameter", "", nil},

		{1, 201, "POST", pods, pod, nil},
		{1, 200, "PATCH", pods + "/p/status", `{"status":{"message":"m"}}`, nil},
		{1, 201, "POST", pods + "/p/binding", `{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`, nil},
		{1, 201, "POST", pods + "/p/eviction", `{"metadata":{"name":"p"}}`, nil},
		{1, 201, "POST", "/apis/apps/v1/namespaces/default/deployments", `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
			"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, nil},
		{1, 200, "GET", "/apis/apps/v1/namespaces/default/deployments/d/scale", "", nil},
		{1, 200, "PATCH", "/apis/apps/v1/namespaces/default/deployments/d/scale", `{"spec":{"replicas":2}}`, nil},
		{1, 201, "POST", in + "default/services", `{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`, nil},
		{1, 200, "PATCH", in + "default/services/s", `{"spec":{"type":"ClusterIP"}}`, nil},
		{1, 200, "DELETE", in + "default/services/s", "", nil},
		{1, 201, "POST", reviews, `{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`, nil},
		{1, 201, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"` + strings.TrimPrefix(account[1], "Bearer ") + `"}}`, nil},
		{1, 201, "POST", in + "default/serviceaccounts/robot/token", `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"bound"}}}`, nil},

		{1, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"n":1}`), nil},
		{1, 200, "GET", widget, "", nil},
		{1, 200, "PATCH", widget, `{"spec":{"x":1}}`, nil},
		{1, 200, "PATCH", widget + "/status", `{"status":{"n":1}}`, nil},
		{1, 200, "PATCH", widget + "/scale", `{"spec":{"replicas":3}}`, nil},
		{1, 200, "DELETE", widget, "", nil},

		{1, 201, "POST", in + "bounded/pods", pod, nil},
		{1, 201, "POST", in + "bounded/configmaps", `{"metadata":{"name":"c"}}`, nil},
		{1, 200, "DELETE", in + "bounded/pods/p?gracePeriodSeconds=0", "", nil},
		{1, 201, "POST", in + "policed/configmaps", `{"metadata":{"name":"c"}}`, nil},
		{1, 200, "PATCH", in + "policed/configmaps/c", `{"data":{"a":"1"}}`, nil},
		{1, 200, "DELETE", in + "policed/configmaps/c", "", nil},
		{1, 201, "POST", in + "hooked/configmaps", `{"metadata":{"name":"c"}}`, nil},
		{1, 200, "PUT", in + "hooked/configmaps/c", `{"metadata":{"name":"c"},"data":{"a":"1"}}`, nil},
		{1, 200, "DELETE", in + "hooked/configmaps/c", "", nil},

		{1, 200, "GET", apitest.ConfigMapsPath, "", account},
		{1, 200, "GET", apitest.ConfigMapsPath + "?resourceVersion=0", "", account}, // who calls is looked up all the same
		{1, 200, "GET", apitest.ConfigMapsPath + "?watch=1", "", account},
		{1, 201, "POST", in + "hooked/configmaps", `{"metadata":{"name":"c"}}`, account},
		{1, 200, "GET", apitest.ConfigMapsPath, "", bootstrap},
		{1, 201, "POST", apitest.ConfigMapsPath, `{"metadata":{"name":"c"}}`, bootstrap},
		{1, 200, "GET", apitest.ConfigMapsPath, "", robot},
		{1, 201, "POST", in + "policed/configmaps", `{"metadata":{"name":"c"}}`, append(robot, account...)},
		{1, 200, "GET", "/api", "", nil},
		{1, 200, "GET", "/api", "", account},
		{1, 200, "GET", "/openapi/v3", "", nil},
		{1, 200, "GET", "/version", "", nil},
	} {
		code, asked := apitest.CountRevisions(t, a, c.method, c.path, c.body, c.headers...)
		assert.Equal(t, c.code, code, "%s %s", c.method, c.path)
		assert.Len(t, asked, c.asked, "%s %s %s", c.method, c.path, c.headers)
	}
}

// TestConflictRetryWaitsForTheConflictingRevision: a write retried after a conflict waits until
// the cache has the conflicting revision. It asks the store for the newest revision only if the
// conflict does not name one.
func TestConflictRetryWaitsForTheConflictingRevision(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	other := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.SharedStore{Backend: store})))
	slow := faultinject.Wrap(store, nil)
	var commits atomic.Int64
	tries := 1
	var between func()
	s := servertest.New(t, apitest.WithStorage(apitest.CountingStore{SharedStore: apitest.SharedStore{Backend: slow}}), func(b *server.Builder) {
		b.Admission = append(b.Admission, admission.Plugin{Name: "Between", Validate: func(_ context.Context, r *admission.Request) error {
			if r.Name != "c" || r.Namespace != "n" {
				return nil
			}
			if tries++; tries == 1 {
				slow.SetPlan(func(call faultinject.Call) (f faultinject.Fault) {
					switch {
					case call.Op == faultinject.OpEvent:
						f.Delay = 50 * time.Millisecond
					case call.Op == faultinject.OpCommit && strings.HasSuffix(call.Writes[0].Key, "/n/c"):
						commits.Add(1)
					}
					return f
				})
				between()
			}
			return nil
		}})
	})
	a := apitest.InProcess(t, s)
	const in, c = apitest.NamespacesPath + "/n", apitest.NamespacesPath + "/n/configmaps/c"
	a.Must(201, "POST", apitest.NamespacesPath, `{"metadata":{"name":"n"}}`)
	a.Must(201, "POST", in+"/configmaps", apitest.NewConfigMap("c"))
	s.Settle()
	for _, test := range []struct {
		between                     []string // what another server is asked for meanwhile
		code, asked, tries, commits int
		method, path, body          string
	}{
		{[]string{"PATCH", c, `{"data":{"other":"1"}}`}, 200, 1, 2, 2, "PATCH", c, `{"data":{"own":"1"}}`},
		{[]string{"PATCH", c, `{"data":{"other":"2"}}`}, 200, 1, 2, 2, "PUT", c, `{"metadata":{"name":"c"},"data":{"own":"2"}}`},
		{[]string{"DELETE", c, ""}, 404, 2, 1, 1, "PATCH", c, `{"data":{"own":"3"}}`},
		{[]string{"POST", in + "/configmaps", `{"metadata":{"name":"c"}}`}, 409, 1, 2, 1, "POST", in + "/configmaps", `{"metadata":{"name":"c"}}`},
		{[]string{"PATCH", c, `{"data":{"other":"4"}}`}, 200, 1, 2, 2, "DELETE", c, ""},
		{[]string{"PATCH", in, `{"metadata":{"labels":{"a":"b"}}}`}, 201, 1, 1, 2, "POST", in + "/configmaps", `{"metadata":{"name":"c"}}`},
	} {
		commits.Store(0)
		tries, between = 0, func() {
			code := other.Do(test.between[0], test.between[1], test.between[2]).Code
			assert.Contains(t, []int{200, 201}, code, "%s", test.between)
		}
		code, asked := apitest.CountRevisions(t, a, test.method, test.path, test.body)
		slow.SetPlan(nil)
		assert.Equal(t, test.code, code, "%s %s", test.method, test.path)
		assert.Len(t, asked, test.asked, "%s %s", test.method, test.path)
		assert.Equal(t, test.tries, tries, "%s %s", test.method, test.path)
		assert.EqualValues(t, test.commits, commits.Load(), "%s %s", test.method, test.path)
	}
}

// TestAdmissionPluginReadsAreLinearizable: a read by an admission plugin is as new as the call,
// even if the request of its context began earlier.
func TestAdmissionPluginReadsAreLinearizable(t *testing.T) {
	t.Parallel()
	var between func()
	var read error
	w := apitest.NewPair(t, func(b *server.Builder) {
		if _, is := b.Storage.(*apitest.LaggingStore); !is {
			return
		}
		b.Admission = append(b.Admission, admission.Plugin{Name: "Reads", Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			p.Validate = func(ctx context.Context, r *admission.Request) error {
				if r.Name == "c" {
					between()
					_, read = env.Accounting.Get(ctx, meta.GroupResource{Resource: "configmaps"}, meta.Key{Namespace: "default", Name: "other"})
				}
				return nil
			}
			return nil
		}})
	})
	between = func() {
		w.LaggingStore.Lag()
		w.A.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("other"))
	}
	w.B.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"))
	assert.NoError(t, read)
}

// TestCallbacksMayReadOtherServers: code of the program that runs within a request can read from
// another server, over another store or the same store.
func TestCallbacksMayReadOtherServers(t *testing.T) {
	t.Parallel()
	other := servertest.New(t, apitest.WithStorage(apitest.SharedStore{Backend: memstore.New(memstore.Options{})}))
	there := apitest.InProcess(t, other)
	store := apitest.SharedStore{Backend: memstore.New(memstore.Options{})}
	second := servertest.New(t, apitest.WithStorage(store))
	var read func(ctx context.Context) error
	one := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), func(b *server.Builder) {
		b.Admission = append(b.Admission, admission.Plugin{Name: "Reads", Setup: func(p *admission.Plugin, _ admission.PluginContext) error {
			p.Validate = func(ctx context.Context, r *admission.Request) error {
				if r.Name != "asks" || r.Operation != admission.Create {
					return nil
				}
				return read(ctx)
			}
			return nil
		}})
	}))
	maps := meta.GroupResource{Resource: "configmaps"}
	for i := range 20 { // so that revisions of this store are not there in the other one
		one.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("n", i)))
	}
	inner, err := http.NewRequest("GET", second.Host()+apitest.ConfigMapsPath+"/latest", nil)
	require.NoError(t, err)
	for name, by := range map[string]func(ctx context.Context) error{
		"another store": func(ctx context.Context) error {
			there.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("latest"))
			_, err := other.Objects().Get(ctx, maps, meta.Key{Namespace: "default", Name: "latest"})
			return err
		},
		"the same store": func(ctx context.Context) error {
			one.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("latest"))
			_, err := second.Objects().Get(ctx, maps, meta.Key{Namespace: "default", Name: "latest"})
			return err
		},
		"a request": func(ctx context.Context) error {
			one.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("latest"))
			res, err := second.Client().Do(inner.WithContext(ctx))
			if err == nil {
				_ = res.Body.Close()
				assert.Equal(t, 200, res.StatusCode)
			}
			return err
		},
	} {
		read = func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, apitest.Timeout)
			defer cancel()
			return by(ctx)
		}
		one.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("asks"))
		one.Must(200, "DELETE", apitest.ConfigMapsPath+"/asks", nil)
		if name != "another store" {
			one.Must(200, "DELETE", apitest.ConfigMapsPath+"/latest", nil)
		}
	}
}
