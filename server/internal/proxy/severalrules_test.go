package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
)

// TestServersFollowEachOthersAPIServices: after an APIService is created or deleted through one server, the next
// request to another server is forwarded or served accordingly.
func TestServersFollowEachOthersAPIServices(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	w := apitest.NewPair(t, func(b *server.Builder) {
		b.ServiceResolver, b.Serving.ProxyCertificate = h.find, h.certificate
		if _, is := b.Storage.(*apitest.LaggingStore); is {
			b.RunControllers = []string{"*", "-apiservice-availability"} // it would read the APIServices
		}
	})
	h.leads(server.Endpoint{Handler: h.back()})
	a, b := apitest.As(t, w.Servers[0], "admin", auth.Masters), apitest.As(t, w.Servers[1], "admin", auth.Masters)
	for path, code := range map[string]int{
		berths: 200, berths + "?resourceVersion=0": 200, berths + "?limit=1": 200, berths + "/none": 404, berths + "?watch=1": 200, berthAPI: 200,
	} {
		ask := func() (int, string) {
			res := b.Open(t.Context(), "GET", path, nil)
			defer res.Body.Close()
			return res.StatusCode, res.Header.Get("Content-Type")
		}
		got, of := ask()
		assert.Equal(t, []any{404, "text/plain; charset=utf-8"}, []any{got, of}, path)
		w.Lag()
		a.Must(201, "POST", apiService, h.apiService())
		w.Servers[0].Settle()
		got, of = ask()
		assert.Equal(t, []any{code, "application/json"}, []any{got, of}, path)
		w.Lag()
		a.Must(200, "DELETE", apiService+"/"+harborName, nil)
		got, of = ask()
		assert.Equal(t, []any{404, "text/plain; charset=utf-8"}, []any{got, of}, path)
	}
}

// TestNewAPIServiceCountsTowardsConnectionLimits: a forwarded connection counts towards the limits even if the server
// learns of the APIService only with that request.
func TestNewAPIServiceCountsTowardsConnectionLimits(t *testing.T) {
	t.Parallel()
	const bound = 8
	h := newHarbor(t)
	w := apitest.NewPair(t, func(b *server.Builder) {
		b.ServiceResolver, b.Serving.ProxyCertificate = h.find, h.certificate
		b.Limits.Connections = bound
		if _, is := b.Storage.(*apitest.LaggingStore); is {
			b.RunControllers = []string{"*", "-apiservice-availability"} // it would read the APIServices
		}
	})
	h.listen(serveDiscoveryAnd(func(w http.ResponseWriter, _ *http.Request) {
		conn, rest, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		_, _ = rest.ReadByte() // until the client disconnects
	}))
	a, b := apitest.As(t, w.Servers[0], "admin", auth.Masters), apitest.NewClient(t, w.Servers[1].URL(), http.DefaultClient)
	for n := 0; ; n++ {
		w.Lag()
		a.Must(201, "POST", apiService, h.apiService())
		w.Servers[0].Settle()
		res := b.Open(t.Context(), "POST", berths+"/east/exec", nil, "Connection", "Upgrade", "Upgrade", "SPDY/3.1")
		t.Cleanup(func() { _ = res.Body.Close() })
		if res.StatusCode == http.StatusTooManyRequests {
			assert.Positive(t, n)
			return
		}
		require.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
		require.Less(t, n, bound)
		a.Must(200, "DELETE", apiService+"/"+harborName, nil)
		w.CatchUp()
	}
}

// TestServersFollowEachOthersPolicies: after a policy is created or deleted through one server, the next request to
// another server is refused or allowed accordingly.
func TestServersFollowEachOthersPolicies(t *testing.T) {
	t.Parallel()
	refuses := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct{ Request struct{ UID string } }
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&review))
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":false}}`, review.Request.UID)
	})
	w := apitest.NewPair(t, func(b *server.Builder) {
		b.ServiceResolver = func(context.Context, server.Service) (server.Endpoint, error) {
			return server.Endpoint{Handler: refuses}, nil
		}
	})
	const registration = "/apis/admissionregistration.k8s.io/v1"
	const rules = `[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]`
	const hooks = `{"metadata":{"name":"x"},"webhooks":[{"name":"refuses.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
		"clientConfig":{"service":{"namespace":"default","name":"hook"}},"rules":` + rules + `}]}`
	const policy = registration + "/validatingadmissionpolicies"
	w.A.Must(201, "POST", policy, `{"metadata":{"name":"x"},"spec":{"matchConstraints":{"resourceRules":`+rules+`},
		"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"validations":[{"expression":"params.data.allowed == 'yes'"}]}}`)
	w.A.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("parameter", "allowed", "no"))
	for name, c := range map[string]struct{ path, body string }{
		"validating webhook": {registration + "/validatingwebhookconfigurations", hooks},
		"mutating webhook":   {registration + "/mutatingwebhookconfigurations", hooks},
		"policy": {registration + "/validatingadmissionpolicybindings",
			`{"metadata":{"name":"x"},"spec":{"policyName":"x","validationActions":["Deny"],"paramRef":{"name":"parameter","namespace":"default","parameterNotFoundAction":"Deny"}}}`},
		"quota": {"/api/v1/namespaces/default/resourcequotas", `{"metadata":{"name":"x"},"spec":{"hard":{"count/configmaps":"0"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			post := func() int { return w.B.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap("new")).Code }
			refused := func(code int) { assert.Contains(t, []int{403, 422, 400}, code) }
			w.Lag()
			w.A.Must(201, "POST", c.path, c.body)
			refused(post())
			if name == "policy" { // and what it is told
				w.Lag()
				w.A.Must(200, "PATCH", apitest.ConfigMapsPath+"/parameter", `{"data":{"allowed":"yes"}}`)
				assert.Equal(t, 201, post())
				w.A.Must(200, "DELETE", apitest.ConfigMapsPath+"/new", nil)
				w.Lag()
				w.A.Must(200, "PATCH", apitest.ConfigMapsPath+"/parameter", `{"data":{"allowed":"no"}}`)
				refused(post())
			}
			w.Lag()
			w.A.Must(200, "DELETE", c.path+"/x", nil)
			assert.Equal(t, 201, post())
			w.A.Must(200, "DELETE", apitest.ConfigMapsPath+"/new", nil)
		})
	}
	pod := `{"metadata":{"name":"p"},"spec":{"hostNetwork":true,"containers":[{"name":"c","image":"i"}]}}`
	for level, code := range map[string]int{"baseline": 403, "privileged": 201} {
		w.Lag()
		w.A.Must(200, "PATCH", apitest.NamespacesPath+"/default", `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"`+level+`"}}}`)
		assert.Equal(t, code, w.B.Do("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod).Code, level)
	}
}
