package definitions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
)

// TestConversionWebhookMayReadItsKind: a conversion webhook can read the kind that it converts
// without a deadlock.
func TestConversionWebhookMayReadItsKind(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	for _, name := range []string{"a", "b"} {
		a.Must(201, "POST", barPath("v1", ""), bar("v1", name, `{"length":1}`))
	}
	assert.EqualValues(t, 1, sizeOf(a, "b"))
	hook.does(func(ctx context.Context) {
		assert.EqualValues(t, 1, apitest.Nested(a.Must(200, "GET", barPath("v1", "a"), nil).Body, "spec", "length"))
		assert.Len(t, a.Must(200, "GET", barPath("v1", ""), nil).Names(), 2)
		assert.EqualValues(t, 1, sizeOf(a, "b"), "another object in the requested version")
		a.Must(200, "PATCH", barPath("v1", "b"), `{"metadata":{"labels":{"seen":"yes"}}}`)
		a.Must(504, "GET", barPath("v2", "a")+"?timeout=100ms", nil) // waits for the conversion that is under way
	})
	assert.EqualValues(t, 1, sizeOf(a, "a"))
}

// TestWatchWithSlowConversion: no event is lost, repeated or out of order, and other watches are not delayed.
func TestWatchWithSlowConversion(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	from := "?watch=1&resourceVersion=" + a.Must(200, "GET", barPath("v1", ""), nil).ResourceVersion()
	v1, v2, another := a.Watch(barPath("v1", "")+from), a.Watch(barPath("v2", "")+from), a.Watch(barPath("v2", "")+from)
	release := make(chan struct{})
	hook.does(func(ctx context.Context) {
		select {
		case <-release:
		case <-ctx.Done():
		}
	})
	var want []string
	for i := range 20 {
		name := fmt.Sprint("b", i)
		a.Must(201, "POST", barPath("v1", ""), bar("v1", name, `{"length":1}`))
		a.Must(200, "PATCH", barPath("v1", name), `{"spec":{"length":2}}`)
		want = append(want, "ADDED "+name, "MODIFIED "+name)
	}
	a.Must(200, "DELETE", barPath("v1", "b0"), nil)
	want = append(want, "DELETED b0")
	assert.Equal(t, want, v1.NextN(len(want)), "before any conversion has ended")
	close(release)
	assert.Equal(t, want, v2.NextN(len(want)))
	var last apitest.Event
	for range want {
		last = another.Next()
	}
	assert.Equal(t, "DELETED b0", last.String())

	hook.lies(func(map[string]any) string { return "no" })
	a.Must(200, "PATCH", barPath("v1", "b1"), `{"spec":{"length":3}}`)
	assert.Equal(t, "MODIFIED b1", v1.Next().String())
	for _, w := range []*apitest.Watcher{v2, another} {
		assert.Equal(t, "ERROR", w.Next().Type)
		assert.Empty(t, w.ReadAll())
	}
	hook.lies(nil)
	again := a.Watch(barPath("v2", "") + "?watch=1&resourceVersion=" + last.ResourceVersion())
	a.Must(200, "PATCH", barPath("v1", "b2"), `{"spec":{"length":4}}`)
	for i, name := range []string{"b1", "b2"} {
		e := again.Next()
		assert.Equal(t, "MODIFIED "+name, e.String())
		assert.EqualValues(t, 3+i, apitest.Nested(e.Object, "spec", "size"))
	}
	assert.Equal(t, "MODIFIED b2", v1.Next().String())
}

// storeV2 makes v2 the storage version of bars.
func storeV2(a *apitest.Client) {
	a.Must(200, "PATCH", apitest.DefinitionsPath+"/bars.example.com", `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
		"Content-Type", "application/json-patch+json")
}

// TestObjectsInFormerStorageVersion: every verb works on an object that is stored in a former storage version.
func TestObjectsInFormerStorageVersion(t *testing.T) {
	t.Parallel()
	field := map[string]string{"v1": "length", "v2": "size"}
	for _, version := range []string{"v1", "v2"} {
		a, _, s := barServer(t)
		f := field[version]
		for _, name := range []string{"get", "patch", "apply", "put", "scale", "status", "delete", "watch"} {
			a.Must(201, "POST", barPath("v1", ""), bar("v1", name, `{"length":1}`))
		}
		exact := a.Must(200, "GET", barPath("v1", ""), nil).ResourceVersion()
		storeV2(a)
		s.Restart()
		a = apitest.InProcess(t, s)
		value := func(name string) any {
			return apitest.Nested(a.Must(200, "GET", barPath(version, name), nil).Body, "spec", f)
		}
		w := a.Watch(barPath(version, "") + "?watch=1&resourceVersion=" + exact + "&fieldSelector=metadata.name=watch")
		assert.EqualValues(t, 1, value("get"))
		assert.Len(t, a.Must(200, "GET", barPath(version, ""), nil).Names(), 8)
		a.Must(200, "PATCH", barPath(version, "patch"), `{"spec":{"`+f+`":2}}`)
		a.Must(200, "PATCH", barPath(version, "apply")+"?fieldManager=m&force=1", bar(version, "apply", `{"`+f+`":2}`), "Content-Type", "application/apply-patch+yaml")
		put := a.Must(200, "GET", barPath(version, "put"), nil).Raw
		a.Must(200, "PUT", barPath(version, "put"), strings.Replace(string(put), `"`+f+`":1`, `"`+f+`":2`, 1))
		a.Must(200, "PATCH", barPath(version, "scale")+"/scale", `{"spec":{"replicas":2}}`)
		for _, name := range []string{"patch", "apply", "put", "scale"} {
			assert.EqualValues(t, 2, value(name), name)
		}
		a.Must(200, "PATCH", barPath(version, "status")+"/status", `{"status":{"n":7}}`)
		status := a.Must(200, "GET", barPath(version, "status"), nil).Body
		assert.EqualValues(t, 7, apitest.Nested(status, "status", "n"))
		assert.EqualValues(t, 1, apitest.Nested(status, "spec", f))
		a.Must(200, "DELETE", barPath(version, "delete"), nil)
		a.Must(200, "PATCH", barPath("v1", "watch"), `{"spec":{"length":3}}`)
		a.Must(200, "DELETE", barPath("v2", "watch"), nil)
		for _, kind := range []string{"MODIFIED", "DELETED"} {
			e := w.Next()
			assert.Equal(t, kind+" watch", e.String())
			assert.EqualValues(t, 3, apitest.Nested(e.Object, "spec", f))
		}
		old := a.Must(200, "GET", barPath(version, "")+"?resourceVersionMatch=Exact&resourceVersion="+exact, nil)
		items, _ := old.Body["items"].([]any)
		assert.Len(t, items, 8)
		for _, item := range items {
			assert.EqualValues(t, 1, apitest.Nested(item, "spec", f), "%v", item)
		}
	}
}

// TestObjectsAreCollectedWithoutWebhook: objects are deleted with their namespace or owner, and their dependents are
// released, without the webhook. Objects that are not stored in the present storage version wait for it.
func TestObjectsAreCollectedWithoutWebhook(t *testing.T) {
	t.Parallel()
	for _, stale := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, hook, s := barServer(t)
			a.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`)
			in := strings.Replace(barPath("v1", ""), "default", "n", 1)
			for i := range 3 {
				a.Must(201, "POST", in, bar("v1", fmt.Sprint("n", i), `{"length":1}`))
			}
			ref := func(kind, version string, owner apitest.Response) string {
				return fmt.Sprintf(`[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"blockOwnerDeletion":true}]`, version, kind, apitest.NestedString(owner.Body, "metadata", "name"), apitest.NestedString(owner.Body, "metadata", "uid"))
			}
			owner := a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("owner", "v", "x"))
			owned := a.Must(201, "POST", barPath("v1", ""), strings.Replace(bar("v1", "owned", `{}`), `"metadata":{`, `"metadata":{"ownerReferences":`+ref("ConfigMap", "v1", owner)+`,`, 1))
			a.Must(201, "POST", apitest.ConfigMapsPath, fmt.Sprintf(`{"metadata":{"name":"child","ownerReferences":%s}}`, ref("Bar", "example.com/v2", owned)))
			orphaning := a.Must(201, "POST", barPath("v1", ""), bar("v1", "orphaning", `{}`))
			a.Must(201, "POST", apitest.ConfigMapsPath, fmt.Sprintf(`{"metadata":{"name":"orphan","ownerReferences":%s}}`, ref("Bar", "example.com/v1", orphaning)))
			if stale {
				storeV2(a)
			}
			s.Settle()
			hook.lies(func(map[string]any) string { return "no" })
			a.Must(200, "DELETE", apitest.ConfigMapsPath+"/owner?propagationPolicy=Foreground", nil)
			a.Must(200, "DELETE", "/api/v1/namespaces/n", nil)
			if stale {
				assert.Equal(t, 500, a.Do("DELETE", barPath("v1", "orphaning")+"?propagationPolicy=Orphan", nil).Code)
				s.Settle()
				a.Must(200, "GET", "/api/v1/namespaces/n", nil)
				a.Must(200, "GET", apitest.ConfigMapsPath+"/owner", nil)
				hook.lies(nil)
			}
			a.Must(200, "DELETE", barPath("v1", "orphaning")+"?propagationPolicy=Orphan", nil)
			gone := func(path string) func() bool { return func() bool { return a.Do("GET", path, nil).Code == 404 } }
			for _, path := range []string{"/api/v1/namespaces/n", apitest.ConfigMapsPath + "/owner", apitest.ConfigMapsPath + "/child", barPath("v1", "owned"), barPath("v1", "orphaning")} {
				require.Eventually(t, gone(path), apitest.Timeout, 10*time.Millisecond, path)
			}
			s.Settle()
			assert.Nil(t, apitest.Nested(a.Must(200, "GET", apitest.ConfigMapsPath+"/orphan", nil).Body, "metadata", "ownerReferences"))
		})
	}
}

// TestAdmissionInAConvertedVersion: webhooks and policies see the version that their rules specify.
func TestAdmissionInAConvertedVersion(t *testing.T) {
	t.Parallel()
	a, hook, s := barServer(t)
	const rules = `"apiGroups":["example.com"],"apiVersions":["v2"],"resources":["bars"],"operations":["CREATE","UPDATE"]`
	var seen []any
	s.InstallWebhooks(fstest.MapFS{"w.yaml": {Data: []byte(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"w"},"webhooks":[{
		"name":"w.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","matchPolicy":"Equivalent","rules":[{` + rules + `}],
		"clientConfig":{"service":{"name":"admission","namespace":"default"}}}]}`)}}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		_ = json.NewDecoder(r.Body).Decode(&review)
		seen = append(seen, apitest.NestedString(review, "request", "object", "apiVersion"), apitest.NestedString(review, "request", "kind", "version"), apitest.NestedString(review, "request", "requestKind", "version"), apitest.Nested(review, "request", "object", "spec", "size"))
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": review["kind"], "apiVersion": review["apiVersion"], "response": map[string]any{
			"uid": apitest.NestedString(review, "request", "uid"), "allowed": true, "patchType": "JSONPatch", "patch": []byte(`[{"op":"add","path":"/spec/color","value":"blue"}]`),
		}})
	}))
	const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
	a.Must(201, "POST", policies+"ies", `{"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{`+rules+`}]},"validations":[{"expression":"object.spec.size < 10 && object.spec.color == 'blue'"}]}}`)
	a.Must(201, "POST", policies+"ybindings", `{"metadata":{"name":"p"},"spec":{"policyName":"p","validationActions":["Deny"]}}`)
	made := a.Must(201, "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
	assert.Equal(t, map[string]any{"length": 1.0, "color": "blue"}, made.Body["spec"])
	assert.Equal(t, []any{"example.com/v2", "v2", "v1", 1.0}, seen)
	assert.Contains(t, apitest.NestedString(a.Must(422, "POST", barPath("v1", ""), bar("v1", "b", `{"length":10}`)).Body, "message"), "object.spec.size < 10")
	assert.Contains(t, apitest.NestedString(a.Must(422, "PATCH", barPath("v1", "a"), `{"spec":{"length":10}}`).Body, "message"), "object.spec.size < 10")
	a.Must(200, "PATCH", barPath("v1", "a"), `{"spec":{"length":9}}`)
	hook.lies(func(map[string]any) string { return "no" })
	assert.Equal(t, 500, a.Do("POST", barPath("v1", ""), bar("v1", "c", `{"length":1}`)).Code, "the policy cannot be evaluated")
}

// TestConvertedObjectsArePruned: the result of a webhook is pruned, even if the server has just started and has not
// read the schema yet. A field that the webhook removed gets no default.
func TestConvertedObjectsArePruned(t *testing.T) {
	t.Parallel()
	a, hook, s := barServer(t)
	a.Must(201, "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
	hook.lies(func(review map[string]any) string {
		object := apitest.Nested(review, "request", "objects").([]any)[0].(map[string]any)
		object["apiVersion"] = apitest.NestedString(review, "request", "desiredAPIVersion")
		object["spec"], object["junk"] = map[string]any{"size": 1, "length": 1, "junk": []any{}}, true
		answer, _ := json.Marshal(map[string]any{"kind": review["kind"], "apiVersion": review["apiVersion"], "response": map[string]any{
			"uid": apitest.NestedString(review, "request", "uid"), "result": map[string]any{"status": "Success"}, "convertedObjects": []any{object},
		}})
		return string(answer)
	})
	s.Restart()
	a = apitest.InProcess(t, s)
	got := a.Must(200, "GET", barPath("v2", "a"), nil).Body
	assert.Equal(t, map[string]any{"size": 1.0}, got["spec"])
	assert.NotContains(t, got, "junk")
}

// TestHangingConversionsEnd: a definition can be deleted and a server stopped while a webhook hangs, and no goroutine
// remains.
func TestHangingConversionsEnd(t *testing.T) {
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			hook := &barWebhook{}
			b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll, ServiceResolver: func(context.Context, server.Service) (server.Endpoint, error) {
				return server.Endpoint{Handler: hook}, nil
			}}
			b.Register(builtin.Kinds()...)
			if !deleted {
				b.Register(registry.FromCRD([]byte(barDefinition(barService))))
			}
			s, err := b.Build(t.Context())
			require.NoError(t, err)
			ran := make(chan error)
			go func() { ran <- s.Run(t.Context()) }()
			<-s.Running()
			do := func(ctx context.Context, method, path, body string) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				return w
			}
			if deleted {
				require.Equal(t, 201, do(t.Context(), "POST", apitest.DefinitionsPath, barDefinition(barService)).Code)
				require.NoError(t, s.Settle(t.Context()))
			}
			made := do(t.Context(), "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
			require.Equal(t, 201, made.Code, made.Body)
			assert.Equal(t, 200, do(t.Context(), "GET", barPath("v2", "a"), "").Code)
			require.Equal(t, 201, do(t.Context(), "POST", barPath("v1", ""), bar("v1", "b", `{"length":1}`)).Code)
			hook.does(func(ctx context.Context) { <-ctx.Done() })
			var calls sync.WaitGroup
			left, leave := context.WithCancel(t.Context())
			calls.Go(func() {
				got := do(left, "GET", barPath("v2", "b"), "")
				assert.Equal(t, 504, got.Code, got.Body)
			})
			synctest.Wait()
			calls.Go(func() {
				got := do(t.Context(), "GET", barPath("v2", "b"), "")
				assert.Contains(t, []int{404, 500}, got.Code, got.Body)
			})
			calls.Go(func() {
				do(t.Context(), "GET", barPath("v2", "")+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "")
			})
			synctest.Wait()
			leave()
			synctest.Wait()
			if deleted {
				require.Equal(t, 200, do(t.Context(), "DELETE", apitest.DefinitionsPath+"/bars.example.com", "").Code)
				require.NoError(t, s.Settle(t.Context()))
				assert.Equal(t, 404, do(t.Context(), "GET", barPath("v2", "a"), "").Code)
			}
			began := time.Now()
			require.NoError(t, s.Shutdown(t.Context()))
			assert.LessOrEqual(t, time.Since(began), 30*time.Second, "the time limit of a call")
			require.NoError(t, <-ran)
			calls.Wait()
		})
	}
}
