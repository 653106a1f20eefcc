package apply

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
)

const lastAppliedName = "kubectl.kubernetes.io/last-applied-configuration"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// actor performs a sequence of writes on an object like a server.
type actor struct {
	t       *testing.T
	manager *FieldManager
	version string
	now     time.Time
	live    *meta.Object
}

func newActor(t *testing.T, c Config) *actor {
	return &actor{t: t, manager: NewFieldManager(c), version: c.Versions[0].APIVersion, now: start}
}

func configMaps(t *testing.T) *actor {
	return newActor(t, Config{Kind: "ConfigMap", Versions: []Version{{APIVersion: "v1", Schema: configMapSchema()}}, LastAppliedAnnotation: lastAppliedName})
}

func deployments(t *testing.T) *actor {
	return newActor(t, Config{Kind: "Deployment", LastAppliedAnnotation: lastAppliedName,
		Versions: []Version{{APIVersion: "apps/v1", Schema: deploymentSchema(), Status: true}}})
}

func (a *actor) write(manager string) Options {
	a.now = a.now.Add(time.Second)
	return Options{Manager: manager, APIVersion: a.version, Now: a.now}
}

func (a *actor) body(text string) *meta.Object {
	obj := meta.NewObject(tree(a.t, text))
	if obj.APIVersion() == "" {
		obj.Tree()["apiVersion"] = a.version
	}
	if obj.Kind() == "" {
		obj.Tree()["kind"] = a.manager.config.Kind
	}
	return obj
}

// store keeps obj, with the uid that an existing object has.
func (a *actor) store(obj *meta.Object, err error) {
	a.t.Helper()
	require.NoError(a.t, err)
	obj.SetUID("1")
	a.live = obj
}

func (a *actor) tryApply(w Options, body string) error {
	before := a.live.Clone()
	got, err := a.manager.Apply(a.live, a.body(body), w)
	assert.Equal(a.t, before, a.live, "Apply must not change the live object")
	if err == nil {
		got.SetUID("1")
		a.live = got
	}
	return err
}

func (a *actor) apply(manager, body string) {
	a.t.Helper()
	require.NoError(a.t, a.tryApply(a.write(manager), body))
}

func (a *actor) force(manager, body string) {
	a.t.Helper()
	w := a.write(manager)
	w.Force = true
	require.NoError(a.t, a.tryApply(w, body))
}

// conflict applies and returns the causes of the conflict as "field: message".
func (a *actor) conflict(manager, body string) []string {
	a.t.Helper()
	err := a.tryApply(a.write(manager), body)
	require.Error(a.t, err)
	s := statusOf(a.t, err)
	require.Equal(a.t, 409, s.Code, s.Message)
	var out []string
	for _, c := range s.Details.Causes {
		assert.Equal(a.t, meta.CauseFieldManager, c.Reason)
		out = append(out, c.Field+": "+c.Message)
	}
	return out
}

func (a *actor) merge(manager, body string) {
	a.t.Helper()
	obj := meta.NewObject(MergePatch(a.live.Tree(), tree(a.t, body)))
	a.store(obj, a.manager.Update(a.live, obj, a.write(manager)))
}

func (a *actor) put(manager, body string) {
	a.t.Helper()
	obj := a.body(body)
	a.store(obj, a.manager.Update(a.live, obj, a.write(manager)))
}

// owners returns managedFields without times as "manager Operation version[/subresource] fields".
func (a *actor) owners() []string {
	var out []string
	for _, v := range a.live.List("metadata", "managedFields") {
		e := meta.NewObject(v.(map[string]any))
		b, _ := json.Marshal(v.(map[string]any)["fieldsV1"])
		where := e.String("apiVersion")
		if s := e.String("subresource"); s != "" {
			where += "/" + s
		}
		out = append(out, fmt.Sprintf("%s %s %s %s", e.String("manager"), e.String("operation"), where, b))
	}
	slices.Sort(out)
	return out
}

func (a *actor) want(path string, value string, owners ...string) {
	a.t.Helper()
	v, _ := a.live.Get(strings.Split(path, ".")...)
	b, _ := json.Marshal(v)
	assert.JSONEq(a.t, value, string(b), path)
	slices.Sort(owners)
	assert.Equal(a.t, owners, a.owners())
}

func TestUpdateOwners(t *testing.T) {
	a := configMaps(t)
	a.put("tool", `{"metadata":{"name":"a"},"data":{"a":"1","b":"1"}}`)
	a.want("data", `{"a":"1","b":"1"}`, `tool Update v1 {"f:data":{".":{},"f:a":{},"f:b":{}}}`)
	a.merge("other", `{"data":{"b":"2"}}`)
	a.want("data", `{"a":"1","b":"2"}`, `other Update v1 {"f:data":{"f:b":{}}}`, `tool Update v1 {"f:data":{".":{},"f:a":{}}}`)
	a.put("xput", `{"metadata":{"name":"a","uid":"1"},"data":{"a":"1","c":"3"}}`)
	a.want("data", `{"a":"1","c":"3"}`, `tool Update v1 {"f:data":{".":{},"f:a":{}}}`, `xput Update v1 {"f:data":{"f:c":{}}}`)
	a.merge("unknown", `{"data":{"d":"4"}}`)
	a.merge("tool", `{"data":{"a":null}}`)
	a.want("data", `{"c":"3","d":"4"}`, `tool Update v1 {"f:data":{}}`, `unknown Update v1 {"f:data":{"f:d":{}}}`, `xput Update v1 {"f:data":{"f:c":{}}}`)
}

// TestCommonFieldsByLookupAndWalkAreEqual checks that lookups of paths and a walk over the set have the same result.
func TestCommonFieldsByLookupAndWalkAreEqual(t *testing.T) {
	many := fieldpath.NewSet(fieldpath.MakePathOrDie("a"), fieldpath.MakePathOrDie("a", "b"))
	for i := range 1000 {
		many.Insert(fieldpath.MakePathOrDie("m", fmt.Sprint(i)))
	}
	for _, few := range []*fieldpath.Set{
		fieldpath.NewSet(),
		fieldpath.NewSet(fieldpath.MakePathOrDie("m")),
		fieldpath.NewSet(fieldpath.MakePathOrDie("m", "7"), fieldpath.MakePathOrDie("m", "x"), fieldpath.MakePathOrDie("m", "7", "y")),
		fieldpath.NewSet(fieldpath.MakePathOrDie("a"), fieldpath.MakePathOrDie("a", "b"), fieldpath.MakePathOrDie("z")),
		many,
	} {
		assert.True(t, few.Intersection(many).Equals(intersection(few, many, many.Size())), "%s", few)
	}
}
