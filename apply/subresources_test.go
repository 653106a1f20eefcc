package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// status performs a write of the subresource status: only the field status of the result is
// stored.
func (a *actor) status(force bool, manager, body string) error {
	w := a.write(manager)
	w.Subresource, w.Force = "status", force
	got, err := a.manager.Apply(a.live, a.body(body), w)
	if err != nil {
		return err
	}
	out := a.live.Clone()
	if s, ok := got.Get("status"); ok {
		out.Set(s, "status")
	} else {
		out.Delete("status")
	}
	if list := got.List("metadata", "managedFields"); list != nil {
		out.Set(list, "metadata", "managedFields")
	}
	a.live = out
	return nil
}

func TestStatusHasItsOwnOwners(t *testing.T) {
	a := listKind(t, object(false, fields{"a": text()}))
	a.apply("m", `{"metadata":{"name":"a"},"spec":{"a":"1"},"status":{"s":"dropped"}}`)
	a.live.Delete("status")
	const v = "x.example.com/v1"
	spec := `m Apply ` + v + ` {"f:spec":{"f:a":{}}}`
	a.want("spec", `{"a":"1"}`, spec)
	require.NoError(t, a.status(false, "m", `{"metadata":{"name":"a","labels":{"l":"1"}},"spec":{"a":"dropped"},"status":{"s":"ok","l":["x"]}}`))
	m := `m Apply ` + v + `/status {"f:status":{"f:l":{"v:\"x\"":{}},"f:s":{}}}`
	a.want("status", `{"s":"ok","l":["x"]}`, spec, m)

	s := statusOf(t, a.status(false, "n", `{"status":{"s":"bad"}}`))
	assert.Equal(t, []meta.StatusCause{{Reason: meta.CauseFieldManager, Field: ".status.s", Message: `conflict with "m" with subresource "status"`}}, s.Details.Causes)
	require.NoError(t, a.status(false, "n", `{"status":{"l":["y"]}}`))
	n := `n Apply ` + v + `/status {"f:status":{"f:l":{"v:\"y\"":{}}}}`
	a.want("status", `{"s":"ok","l":["x","y"]}`, spec, m, n)
	a.apply("m", `{"metadata":{"name":"a"},"spec":{"a":"2"},"status":{"s":"no conflict here"}}`)
	a.live.Set("ok", "status", "s")
	a.want("spec", `{"a":"2"}`, spec, m, n)
	require.NoError(t, a.status(false, "m", `{"status":{}}`))
	empty := `m Apply ` + v + `/status {"f:status":{}}`
	a.want("status", `{"l":["y"]}`, spec, empty, n)

	obj := meta.NewObject(MergePatch(a.live.Tree(), tree(t, `{"metadata":{"managedFields":[{}]},"status":{"s":"new"}}`)))
	w := a.write("u")
	w.Subresource = "status"
	a.store(obj, a.manager.Update(a.live, obj, w))
	a.want("status", `{"l":["y"],"s":"new"}`, spec, empty, n, `u Update `+v+`/status {"f:status":{"f:s":{}}}`)
}

func twoVersions(t *testing.T) *actor {
	s := object(false, fields{"spec": object(false, fields{"a": text(), "b": text()})})
	return newActor(t, Config{Kind: "Widget", Versions: []Version{{APIVersion: "g/v1", Schema: s}, {APIVersion: "g/v2", Schema: s}}})
}

// to changes the version of the live object and of the following writes.
func (a *actor) to(version string) *actor {
	a.version = version
	if a.live != nil {
		a.live.Tree()["apiVersion"] = version
	}
	return a
}

func TestApplyThroughTwoVersions(t *testing.T) {
	a := twoVersions(t)
	a.apply("m", `{"metadata":{"name":"a"},"spec":{"a":"1","b":"1"}}`)
	a.to("g/v2")
	assert.Equal(t, []string{`.spec.a: conflict with "m"`}, a.conflict("n", `{"spec":{"a":"2"}}`))
	a.apply("m", `{"spec":{"a":"1"}}`)
	a.want("spec", `{"a":"1"}`, `m Apply g/v2 {"f:spec":{"f:a":{}}}`)
	a.apply("n", `{"spec":{"b":"2"}}`)
	a.to("g/v1").merge("u", `{"spec":{"b":"3"}}`)
	a.want("spec", `{"a":"1","b":"3"}`, `m Apply g/v2 {"f:spec":{"f:a":{}}}`, `u Update g/v1 {"f:spec":{"f:b":{}}}`)
	a.to("g/v2").merge("u", `{"spec":{"a":"3"}}`)
	a.want("spec", `{"a":"3","b":"3"}`, `u Update g/v1 {"f:spec":{"f:b":{}}}`, `u Update g/v2 {"f:spec":{"f:a":{}}}`)

	s := object(false, fields{"spec": object(false, fields{"a": text(), "b": text()})})
	a.manager = NewFieldManager(Config{Kind: "Widget", Versions: []Version{{APIVersion: "g/v2", Schema: s}}}) // v1 is gone
	a.apply("m", `{"spec":{"b":"4"}}`)
	a.want("spec", `{"a":"3","b":"4"}`, `u Update g/v2 {"f:spec":{"f:a":{}}}`, `m Apply g/v2 {"f:spec":{"f:b":{}}}`)
}

func TestConvertedVersions(t *testing.T) {
	rename := func(obj map[string]any, version string) map[string]any {
		o := meta.NewObject(obj).Clone()
		o.Tree()["apiVersion"] = version
		from, to := "old", "new"
		if version == "g/v1" {
			from, to = to, from
		}
		if v, ok := o.Get("spec", from); ok {
			o.Delete("spec", from)
			o.Set(v, "spec", to)
		}
		return o.Tree()
	}
	broken := false
	convert := func(version string, objs ...map[string]any) (out []map[string]any, err error) {
		for _, obj := range objs {
			out = append(out, rename(obj, version))
		}
		if broken {
			return nil, errors.New("broken")
		}
		return out, nil
	}
	a := newActor(t, Config{Kind: "Widget", Convert: convert, Versions: []Version{
		{APIVersion: "g/v1", Schema: object(false, fields{"spec": object(false, fields{"old": text(), "x": text()})})},
		{APIVersion: "g/v2", Schema: object(false, fields{"spec": object(false, fields{"new": text(), "x": text()})})},
	}})
	a.apply("m", `{"spec":{"old":"1","x":"1"}}`)
	a.live, a.version = meta.NewObject(rename(a.live.Tree(), "g/v2")), "g/v2"
	assert.Equal(t, []string{`.spec.old: conflict with "m"`}, a.conflict("n", `{"spec":{"new":"2"}}`))
	a.apply("n", `{"spec":{"new":"1"}}`)
	a.apply("m", `{"spec":{"x":"1"}}`)
	a.want("spec", `{"new":"1","x":"1"}`, `m Apply g/v2 {"f:spec":{"f:x":{}}}`, `n Apply g/v2 {"f:spec":{"f:new":{}}}`)
	a.apply("n", `{}`)
	a.want("spec", `{"x":"1"}`, `m Apply g/v2 {"f:spec":{"f:x":{}}}`)

	// If the fields of other managers cannot be converted, an apply fails, and an update keeps
	// their ownership.
	a.live, a.version = meta.NewObject(rename(a.live.Tree(), "g/v1")), "g/v1"
	broken = true
	assert.EqualError(t, a.tryApply(a.write("n"), `{"spec":{"old":"2","x":"2"}}`), "broken")
	a.merge("u", `{"spec":{"x":"3"}}`)
	a.want("spec", `{"x":"3"}`, `m Apply g/v2 {"f:spec":{"f:x":{}}}`, `u Update g/v1 {"f:spec":{"f:x":{}}}`)
	a.merge("u", `{"metadata":{"labels":{"a":"1"}}}`) // which is the same in all versions
	a.apply("n", `{"metadata":{"labels":{"b":"1"}}}`)
}

func TestServicePortsByPortAndProtocol(t *testing.T) {
	a := newActor(t, Config{Kind: "Service", Versions: []Version{{APIVersion: "v1", Schema: serviceSchema()}}})
	a.apply("m", `{"spec":{"clusterIP":"None","selector":{"app":"x"},"ports":[{"name":"web","port":80},{"name":"dns","port":53,"protocol":"UDP"}]}}`)
	a.live.List("spec", "ports")[0].(map[string]any)["protocol"] = "TCP"
	m := `m Apply v1 {"f:spec":{"f:clusterIP":{},"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{}},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}},"f:selector":{}}}`
	a.apply("n", `{"spec":{"ports":[{"name":"dnst","port":53,"protocol":"TCP"}]}}`)
	a.want("spec.ports", `[{"name":"web","port":80,"protocol":"TCP"},{"name":"dns","port":53,"protocol":"UDP"},{"name":"dnst","port":53,"protocol":"TCP"}]`,
		m, `n Apply v1 {"f:spec":{"f:ports":{"k:{\"port\":53,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{}}}}}`)
	assert.Equal(t, []string{`.spec.ports[port=80,protocol="TCP"].name: conflict with "m"`}, a.conflict("n", `{"spec":{"ports":[{"name":"other","port":80}]}}`))
	for _, ports := range []string{`[{"name":"x","port":90},{"name":"y","port":90}]`, `[{"name":"x","port":90},{"name":"y","port":90,"protocol":"TCP"}]`} {
		assert.Equal(t, 422, statusOf(t, a.tryApply(a.write("n"), `{"spec":{"ports":`+ports+`}}`)).Code)
	}
	a.apply("n", `{"spec":{"ports":[{"name":"noport"}]}}`)
	a.want("spec.ports", `[{"name":"web","port":80,"protocol":"TCP"},{"name":"dns","port":53,"protocol":"UDP"},{"name":"noport"}]`,
		m, `n Apply v1 {"f:spec":{"f:ports":{"k:{\"port\":0,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}}`)
}

func TestApplyOfMetadata(t *testing.T) {
	a := configMaps(t)
	a.apply("m", `{"metadata":{"name":"a","finalizers":["e/a"],"labels":{"x":"1"},"annotations":{"n":"1"},"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"u"}]}}`)
	m := `m Apply v1 {"f:metadata":{"f:annotations":{"f:n":{}},"f:finalizers":{"v:\"e/a\"":{}},"f:labels":{"f:x":{}},"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}}}`
	a.want("metadata.finalizers", `["e/a"]`, m)
	a.apply("n", `{"metadata":{"name":"a","finalizers":["e/b"],"labels":{"x":"1","y":"2"}}}`)
	a.want("metadata.finalizers", `["e/a","e/b"]`, m, `n Apply v1 {"f:metadata":{"f:finalizers":{"v:\"e/b\"":{}},"f:labels":{"f:x":{},"f:y":{}}}}`)
	a.apply("m", `{"metadata":{"name":"a","finalizers":["e/b"]}}`)
	a.want("metadata", `{"name":"a","uid":"1","finalizers":["e/b"],"labels":{"x":"1","y":"2"},"managedFields":`+managed(t, a)+`}`,
		`m Apply v1 {"f:metadata":{"f:finalizers":{"v:\"e/b\"":{}}}}`, `n Apply v1 {"f:metadata":{"f:finalizers":{"v:\"e/b\"":{}},"f:labels":{"f:x":{},"f:y":{}}}}`)
}

func managed(t *testing.T, a *actor) string {
	t.Helper()
	b, err := json.Marshal(a.live.List("metadata", "managedFields"))
	require.NoError(t, err)
	return string(b)
}

func TestNullsAndEmptyMaps(t *testing.T) {
	a := configMaps(t)
	a.apply("m", `{"data":{"a":null,"b":"x"}}`)
	a.want("data", `{"a":null,"b":"x"}`, `m Apply v1 {"f:data":{"f:a":{},"f:b":{}}}`)
	a.apply("m", `{"data":{}}`)
	a.want("data", `null`, `m Apply v1 {"f:data":{}}`)
	a.apply("m", `{"data":null}`)
	a.want("data", `null`, `m Apply v1 {"f:data":{}}`)
	a.apply("m", `{"data":{"k":"one"}}`)
	a.want("data", `{"k":"one"}`, `m Apply v1 {"f:data":{"f:k":{}}}`)
}

func TestScaleConflictsWithOwnerOfReplicas(t *testing.T) {
	a := deployments(t)
	const selector = `"selector":{"matchLabels":{"app":"x"}}`
	a.apply("m", `{"spec":{`+selector+`}}`)
	a.live.Set(int64(1), "spec", "replicas")
	scale := func(force bool, n int) error {
		w := a.write("sc")
		w.Subresource, w.Force = "scale", force
		return a.tryApply(w, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
	}
	require.NoError(t, scale(true, 4))
	m := `m Apply apps/v1 {"f:spec":{"f:selector":{}}}`
	sc := `sc Apply apps/v1/scale {"f:spec":{"f:replicas":{}}}`
	a.want("spec.replicas", `4`, m, sc)
	assert.NotContains(t, a.live.List("metadata", "managedFields")[0], "time")
	assert.Equal(t, []string{`.spec.replicas: conflict with "sc" with subresource "scale"`}, a.conflict("m", `{"spec":{"replicas":2,`+selector+`}}`))
	a.apply("m", `{"spec":{"replicas":4,`+selector+`}}`)
	a.want("spec.replicas", `4`, `m Apply apps/v1 {"f:spec":{"f:replicas":{},"f:selector":{}}}`, sc)
	assert.Equal(t, []meta.StatusCause{{Reason: meta.CauseFieldManager, Field: ".spec.replicas", Message: `conflict with "m"`}}, statusOf(t, scale(false, 6)).Details.Causes)
	require.NoError(t, scale(true, 6))
	a.want("spec.replicas", `6`, m, sc)
	a.merge("u", `{"spec":{"replicas":7}}`)
	require.NoError(t, scale(true, 8))
	a.want("spec.replicas", `8`, m, sc)
}

func TestUpdatersAreCapped(t *testing.T) {
	a := configMaps(t)
	a.put("u00", `{"metadata":{"name":"a"},"data":{"k00":"1"}}`)
	for i := 1; i <= 14; i++ {
		a.merge(fmt.Sprintf("u%02d", i), fmt.Sprintf(`{"data":{"k%02d":"1"}}`, i))
	}
	owners := a.owners()
	assert.Len(t, owners, 10)
	assert.Equal(t, `ancient-changes Update v1 {"f:data":{".":{},"f:k00":{},"f:k01":{},"f:k02":{},"f:k03":{},"f:k04":{},"f:k05":{}}}`, owners[0])
	assert.Equal(t, `u06 Update v1 {"f:data":{"f:k06":{}}}`, owners[1])
	for i := range 12 {
		a.apply(fmt.Sprintf("applier%d", i), fmt.Sprintf(`{"data":{"a%02d":"1"}}`, i))
	}
	assert.Len(t, a.owners(), 22, "appliers are not capped")
}

func TestTimesChangeWithTheObjectOnly(t *testing.T) {
	a := configMaps(t)
	a.apply("m", `{"data":{"a":"1"}}`)
	before := a.live.Clone()
	a.apply("m", `{"data":{"a":"1"}}`)
	assert.Equal(t, before, a.live)
	a.merge("u", `{"data":{"a":"1"}}`)
	assert.Equal(t, before, a.live)
	a.apply("m", `{"data":{"a":"2"}}`)
	assert.NotEqual(t, before, a.live)
	last := meta.NewObject(a.live.List("metadata", "managedFields")[0].(map[string]any))
	assert.Equal(t, a.now, last.Time("time"))
}

func TestValidateManager(t *testing.T) {
	assert.Equal(t, meta.CauseTooLong, ValidateManager(strings.Repeat("x", 129), "fieldManager", false)[0].Reason)
	assert.Equal(t, meta.CauseInvalid, ValidateManager("bad\nname", "fieldManager", true)[0].Reason)
	assert.Equal(t, meta.CauseRequired, ValidateManager("", "fieldManager", true)[0].Reason)
	assert.Nil(t, ValidateManager("my manager", "fieldManager", true))
}
