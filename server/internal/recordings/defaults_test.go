package recordings_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server/internal/apitest"
)

// The file defaultsAnswers holds creations of objects of the built-in kinds, and the answers of
// kube-apiserver to them, which show the defaults of each field. Some of the objects stand in the
// file defaultsObjects; the others are minimal objects with one further struct that is empty. To
// record the answers again, start a kube-apiserver, and run
//
//	go test ./server/internal/recordings -run TestDefaultsOfBuiltinKinds -reference https://127.0.0.1:PORT
const (
	defaultsAnswers = "testdata/defaults.jsonl.gz"
	defaultsObjects = "testdata/defaults.json"
)

// TestDefaultsOfBuiltinKinds compares the objects that are created with the recorded ones. It fails
// on a difference that testdata/differences.txt does not list, and on a listed difference that no
// longer exists.
func TestDefaultsOfBuiltinKinds(t *testing.T) {
	t.Parallel()
	if *reference != "" {
		recordDefaults(t)
	}
	compareRecorded(t, defaultsAnswers, "defaults", true)
}

// compareRecorded plays the scenarios of a file on a new server and compares the differences with
// those that testdata/differences.txt lists under a name.
func compareRecorded(t *testing.T, path, name string, generated bool, kinds ...*registry.Kind) {
	scenarios := readScenarios(t, path)
	var found []difference
	synctest.Test(t, func(t *testing.T) {
		users := filepath.Join(t.TempDir(), "users.csv")
		require.NoError(t, os.WriteFile(users, []byte("admin-token,admin,admin,system:masters\n"), 0o600))
		p := newPlayer(t, users, false, kinds...)
		p.generated = generated
		for _, sc := range scenarios {
			found = append(found, p.play(t, sc)...)
		}
	})
	compareDifferences(t, readDifferences(t)[name], found)
}

// recordDefaults sends the creations to the reference server and writes its answers.
func recordDefaults(t *testing.T) {
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer insecure.CloseIdleConnections()
	p := &player{client: &http.Client{Transport: insecure}, base: *reference, generated: true}
	listed := listedObjects(t)
	var scenarios []scenario
	seen := map[*schema.Struct]bool{}
	for _, kind := range builtin.Kinds() {
		typ, err := resource.Compile(kind, names.Kubernetes)
		require.NoError(t, err)
		if typ.Virtual || typ.Kind == "ComponentStatus" {
			continue
		}
		for _, v := range typ.Versions {
			if !p.serves(t, apitest.CollectionPath(v)) {
				continue
			}
			sc := scenario{Name: v.GroupResource().String() + "/" + v.Name}
			if typ.Kind == "Pod" {
				sc.Steps = append(sc.Steps, step{Do: "POST /api/v1/namespaces/$ns/serviceaccounts", Body: `{"metadata":{"name":"default"}}`, Quiet: true})
			}
			for _, obj := range append(listed[v.GVK().APIVersion()+" "+v.Kind], withEmptyStructs(apitest.MinimalObject(t, typ), v, seen)...) {
				sc.Steps = append(sc.Steps, creation(t, v, obj))
			}
			scenarios = append(scenarios, sc)
		}
	}
	for i := range scenarios {
		p.record(t, &scenarios[i])
	}
	writeScenarios(t, defaultsAnswers, scenarios)
}

// creation returns a step that creates an object by a dry run.
func creation(t *testing.T, v *resource.Version, obj map[string]any) step {
	obj["apiVersion"], obj["kind"] = v.GVK().APIVersion(), v.Kind
	if v.Kind == "Event" && v.Group == "" {
		obj["involvedObject"] = map[string]any{"namespace": "$ns"}
	}
	text, err := json.Marshal(obj)
	require.NoError(t, err)
	return step{Do: "POST " + strings.Replace(apitest.CollectionPath(v), "/namespaces/default/", "/namespaces/$ns/", 1) + "?dryRun=All", Body: string(text)}
}

// listedObjects returns the objects of defaultsObjects by apiVersion and kind.
func listedObjects(t *testing.T) map[string][]map[string]any {
	text, err := os.ReadFile(defaultsObjects)
	require.NoError(t, err)
	var objs []map[string]any
	require.NoError(t, json.Unmarshal(text, &objs))
	listed := map[string][]map[string]any{}
	for _, tree := range objs {
		of := fmt.Sprint(tree["apiVersion"], " ", tree["kind"])
		listed[of] = append(listed[of], tree)
	}
	return listed
}

// withEmptyStructs returns a minimal object of a version, and copies of it that have one struct, or
// list of structs, in addition: an empty one. Structs that were seen are not descended into, so that
// pod templates are filled in once.
func withEmptyStructs(minimal map[string]any, v *resource.Version, seen map[*schema.Struct]bool) []map[string]any {
	objs := []map[string]any{meta.Clone(minimal).(map[string]any)}
	var walk func(s *schema.Schema, path []any)
	walk = func(s *schema.Schema, path []any) {
		if s.Struct == nil || seen[s.Struct] {
			return
		}
		seen[s.Struct] = true
		for _, f := range s.Struct.Fields {
			if len(path) == 0 && f.Name == "metadata" {
				continue
			}
			below, at := f.Schema, append(path[:len(path):len(path)], f.Name)
			if below.Items != nil {
				below, at = below.Items, append(at, 0)
			}
			if below.Type != schema.Object {
				continue
			}
			obj := meta.Clone(minimal).(map[string]any)
			if obj, ok := withEmptyAt(obj, at).(map[string]any); ok {
				objs = append(objs, obj)
			}
			walk(below, at)
		}
	}
	walk(v.Schema(), nil)
	return objs
}

// withEmptyAt returns v with an empty object at a path of names and indices, if there is none yet.
func withEmptyAt(v any, path []any) any {
	if len(path) == 0 {
		if v == nil {
			return map[string]any{}
		}
		return v
	}
	if name, ok := path[0].(string); ok {
		m, _ := v.(map[string]any)
		if m == nil {
			m = map[string]any{}
		}
		m[name] = withEmptyAt(m[name], path[1:])
		return m
	}
	list, _ := v.([]any)
	if len(list) == 0 {
		list = []any{nil}
	}
	list[0] = withEmptyAt(list[0], path[1:])
	return list
}
