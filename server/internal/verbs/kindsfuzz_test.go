package verbs_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
)

// FuzzKinds: random changes of minimal objects of every built-in kind never cause a 500. A stored object is the same
// in every encoding, and a PUT of it changes nothing.
func FuzzKinds(f *testing.F) {
	s, log := apitest.NewErrorFree(f, func(b *server.Builder) { b.Limits.FutureWait = 1 })
	var kinds []*resource.Type
	for i, k := range builtin.Kinds() {
		typ, err := resource.Compile(k, names.Kubernetes)
		require.NoError(f, err)
		kinds = append(kinds, typ)
		f.Add(uint(i), []byte{}) // the minimal object
		for seed := range uint64(4) {
			f.Add(uint(i), []byte(apitest.NewChooser(uint64(i), seed)))
			f.Add(uint(i), []byte(apitest.NewChooser(uint64(i), seed))[:8<<seed])
		}
	}
	f.Fuzz(func(t *testing.T, i uint, choices []byte) {
		typ, a := kinds[i%uint(len(kinds))], apitest.InProcess(t, s)
		collection := apitest.CollectionPath(typ.Hub)
		say := func(method, path string, body any, headers ...string) apitest.Response {
			got := a.Do(method, path, body, headers...)
			if got.Code >= 500 {
				text, _ := json.Marshal(body)
				t.Fatalf("%s %s: %d %s\nof %s", method, path, got.Code, got.Raw, text)
			}
			return got
		}
		c := apitest.Chooser(choices)
		obj := c.Change(typ.Hub.Schema(), apitest.MinimalObject(t, typ), 0).(map[string]any)
		delete(obj, "apiVersion")
		delete(obj, "kind")
		made := say("POST", collection, obj)
		if log := log.Take(); len(log) > 0 {
			t.Fatalf("logged: %q", log)
		}
		name, _ := apitest.Nested(made.Body, "metadata", "name").(string)
		item := collection + "/" + name
		if made.Code != 201 || typ.Virtual {
			return
		}
		defer a.Do("DELETE", item+"?gracePeriodSeconds=0", nil)
		require.NoError(t, s.Server.Settle(t.Context()))
		read := say("GET", item, nil)
		for field, value := range made.Body {
			if field != "metadata" && field != "status" {
				require.Equal(t, value, read.Body[field], "the stored object must be returned")
			}
		}
		for _, form := range []string{"application/yaml", "application/vnd.kubernetes.protobuf", "application/json;as=Table;g=meta.k8s.io;v=v1"} {
			say("GET", item, nil, "Accept", form)
		}
		again := say("PUT", item, read.Raw)
		require.Equal(t, 200, again.Code, "%s\nof %s", again.Raw, read.Raw)
		require.Equal(t, read.Body, again.Body, "a PUT of the object as it was read must not change it")
		if typ.Hub.Subresource("status") != nil {
			next := c.Change(typ.Hub.Schema(), read.Body, 0).(map[string]any)
			say("PUT", item+"/status", map[string]any{"metadata": read.Body["metadata"], "status": next["status"]})
		}
		next := c.Change(typ.Hub.Schema(), read.Body, 0).(map[string]any)
		say("PATCH", item, map[string]any{"spec": next["spec"]}, "Content-Type", "application/strategic-merge-patch+json")
	})
}
