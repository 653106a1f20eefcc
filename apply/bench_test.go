package apply

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply/internal/ownership"
)

func configMapManager() *FieldManager {
	return NewFieldManager(Config{Kind: "ConfigMap", Versions: []Version{{APIVersion: "v1", Schema: configMapSchema()}}, LastAppliedAnnotation: lastAppliedName})
}

func deploymentManager() *FieldManager {
	return NewFieldManager(Config{Kind: "Deployment", Versions: []Version{{APIVersion: "apps/v1", Schema: deploymentSchema(), Status: true}}})
}

func configMapBody(n int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","labels":{"app":"x"}},"data":{"a":"%d","b":"2","c":"3","d":"some more text"}}`, n)
}

// deploymentBody has three containers with ten variables each.
func deploymentBody(n int) string {
	var containers []string
	for c := range 3 {
		var env []string
		for e := range 10 {
			env = append(env, fmt.Sprintf(`{"name":"VAR_%d","value":"value-%d"}`, e, e))
		}
		containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"img:%d","ports":[{"containerPort":%d,"protocol":"TCP"}],"env":[%s],"resources":{"limits":{"cpu":"1","memory":"1Gi"}}}`, c, n, 80+c, strings.Join(env, ",")))
	}
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"n","labels":{"app":"x"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[` + strings.Join(containers, ",") + `]}}}}`
}

// applied is an object that a manager applied, with the defaults of a server.
func applied(b *testing.B, t *FieldManager, body, version string) *meta.Object {
	obj, err := t.Apply(nil, meta.NewObject(tree(b, body)), Options{Manager: "m", APIVersion: version, Now: start})
	require.NoError(b, err)
	obj.SetUID("0b9f9b4e-0000-4000-8000-000000000000")
	obj.SetResourceVersion("12")
	obj.SetTime(start, "metadata", "creationTimestamp")
	if obj.Kind() == "Deployment" {
		obj.Set(tree(b, `{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}`), "spec", "strategy")
		obj.Set(int64(10), "spec", "revisionHistoryLimit")
		for _, c := range obj.List("spec", "template", "spec", "containers") {
			c.(map[string]any)["imagePullPolicy"] = "IfNotPresent"
			c.(map[string]any)["terminationMessagePath"] = "/dev/termination-log"
			c.(map[string]any)["terminationMessagePolicy"] = "File"
		}
		obj.Set("Always", "spec", "template", "spec", "restartPolicy")
		obj.Set(tree(b, `{"replicas":3}`), "status")
		withStatus := obj.Clone()
		withStatus.Set(int64(3), "status", "replicas")
	}
	return obj
}

func benchmarkApply(b *testing.B, t *FieldManager, body func(int) string, version string) {
	live := applied(b, t, body(1), version)
	now := start
	b.Run("same", func(b *testing.B) {
		patch := meta.NewObject(tree(b, body(1)))
		b.ReportAllocs()
		for b.Loop() {
			_, err := t.Apply(live, patch, Options{Manager: "m", APIVersion: version, Now: now})
			require.NoError(b, err)
		}
	})
	b.Run("changed", func(b *testing.B) {
		patch := meta.NewObject(tree(b, body(2)))
		b.ReportAllocs()
		for b.Loop() {
			now = now.Add(time.Second)
			_, err := t.Apply(live, patch, Options{Manager: "m", APIVersion: version, Now: now})
			require.NoError(b, err)
		}
	})
	b.Run("create", func(b *testing.B) {
		patch := meta.NewObject(tree(b, body(2)))
		b.ReportAllocs()
		for b.Loop() {
			_, err := t.Apply(nil, patch, Options{Manager: "m", APIVersion: version, Now: now})
			require.NoError(b, err)
		}
	})
	b.Run("second manager", func(b *testing.B) {
		patch := meta.NewObject(tree(b, body(2)))
		b.ReportAllocs()
		for b.Loop() {
			_, err := t.Apply(live, patch, Options{Manager: "n", APIVersion: version, Now: now, Force: true})
			require.NoError(b, err)
		}
	})
	b.Run("update", func(b *testing.B) {
		next := meta.NewObject(MergePatch(live.Tree(), tree(b, body(2))))
		b.ReportAllocs()
		for b.Loop() {
			obj := meta.NewObject(next.Tree())
			obj.Metadata()["managedFields"] = live.List("metadata", "managedFields")
			require.NoError(b, t.Update(live, obj, Options{Manager: "u", APIVersion: version, Now: now}))
		}
	})
}

func BenchmarkApplyConfigMap(b *testing.B) {
	benchmarkApply(b, configMapManager(), configMapBody, "v1")
}

func BenchmarkApplyDeployment(b *testing.B) {
	benchmarkApply(b, deploymentManager(), deploymentBody, "apps/v1")
}

// BenchmarkFieldsOfLargeMap shows that the time is linear in the number of entries.
func BenchmarkFieldsOfLargeMap(b *testing.B) {
	for _, n := range []int{10_000, 20_000, 40_000, 80_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			data := make(map[string]any, n)
			for i := range n {
				data[fmt.Sprint("k", i)] = int64(1)
			}
			typ := ownership.Compile(nil)
			for b.Loop() {
				if _, err := typ.Fields(map[string]any{"spec": data}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkManyOwners changes many values, each below a map of its own, in an
// object of which hundreds of others own a field.
func BenchmarkManyOwners(b *testing.B) {
	const values, owners = 50_000, 900
	t := NewFieldManager(Config{Kind: "Widget", Versions: []Version{{APIVersion: "g/v1"}}})
	body := func(values int, value int64) *meta.Object {
		spec := map[string]any{}
		for i := range values {
			group := fmt.Sprint("g", i/200)
			if spec[group] == nil {
				spec[group] = map[string]any{}
			}
			spec[group].(map[string]any)[fmt.Sprint(i)] = map[string]any{"a": value}
		}
		return meta.NewObject(map[string]any{"apiVersion": "g/v1", "kind": "Widget", "spec": spec})
	}
	by := Options{Manager: "m", APIVersion: "g/v1", Now: start}
	live, err := t.Apply(nil, body(values, 1), by)
	require.NoError(b, err)
	entries := live.List("metadata", "managedFields")
	for i := range owners {
		entries = append(entries, map[string]any{
			"apiVersion": "g/v1", "fieldsType": "FieldsV1", "manager": fmt.Sprint("o", i), "operation": "Apply", "time": "2000-01-01T00:00:00Z",
			"fieldsV1": map[string]any{"f:other": map[string]any{"f:" + fmt.Sprint(i): map[string]any{}}},
		})
	}
	live.Metadata()["managedFields"] = entries
	patch := body(values, 2)
	for b.Loop() {
		if _, err := t.Apply(live, patch, by); err != nil {
			b.Fatal(err)
		}
	}
}
