package apply

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

const pod = `{"spec":{"template":{"spec":`

func podSpec(s string) string { return pod + s + `}}}` }

func TestStrategicMergeTable(t *testing.T) {
	s := deploymentSchema()
	for name, c := range map[string]struct{ live, patch, want string }{
		"containers and env by name, plain lists replaced": {
			podSpec(`{"containers":[{"name":"c","image":"i:1","args":["a","b"],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"e"}]}`),
			podSpec(`{"containers":[{"name":"c","args":["z"],"env":[{"name":"B","value":"20"},{"name":"C","value":"3"}]}]}`),
			podSpec(`{"containers":[{"name":"c","image":"i:1","args":["z"],"env":[{"name":"A","value":"1"},{"name":"B","value":"20"},{"name":"C","value":"3"}]},{"name":"e"}]}`),
		},
		"delete an item; a new one comes first": {
			podSpec(`{"containers":[{"name":"c"},{"name":"e"}]}`),
			podSpec(`{"containers":[{"name":"e","$patch":"delete"},{"name":"f"}]}`),
			podSpec(`{"containers":[{"name":"f"},{"name":"c"}]}`),
		},
		"replace a list": {
			podSpec(`{"containers":[{"name":"c"},{"name":"e"}]}`),
			podSpec(`{"containers":[{"$patch":"replace"},{"name":"only"}]}`),
			podSpec(`{"containers":[{"name":"only"}]}`),
		},
		"merge is what happens anyway": {
			podSpec(`{"containers":[{"name":"c","image":"1"}],"securityContext":{"runAsUser":1}}`),
			podSpec(`{"containers":[{"$patch":"merge","name":"c","image":"2"}],"securityContext":{"$patch":"merge","runAsGroup":2}}`),
			podSpec(`{"containers":[{"name":"c","image":"2"}],"securityContext":{"runAsUser":1,"runAsGroup":2}}`),
		},
		"replace and delete an object": {
			`{"spec":{"strategy":{"type":"a","rollingUpdate":{"maxSurge":1}}},"status":{"replicas":1}}`,
			`{"spec":{"strategy":{"$patch":"replace","type":"b"}},"status":{"$patch":"delete"}}`,
			`{"spec":{"strategy":{"type":"b"}},"status":{}}`,
		},
		"retain keys": {
			`{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}},"template":{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}}}`,
			`{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"},"template":{"spec":{"volumes":[{"name":"v","$retainKeys":["name","configMap"],"configMap":{"name":"c"}}]}}}}`,
			`{"spec":{"strategy":{"type":"Recreate"},"template":{"spec":{"volumes":[{"name":"v","configMap":{"name":"c"}}]}}}}`,
		},
		"order of items": {
			podSpec(`{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}`),
			podSpec(`{"$setElementOrder/containers":[{"name":"c"},{"name":"d"},{"name":"a"}],"containers":[{"name":"d"}]}`),
			podSpec(`{"containers":[{"name":"b"},{"name":"c"},{"name":"d"},{"name":"a"}]}`),
		},
		"scalars of a merged list": {
			`{"metadata":{"finalizers":["a","b"]}}`,
			`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":["c","b"],"finalizers":["c"]}}`,
			`{"metadata":{"finalizers":["c","b"]}}`,
		},
		"null removes, also where nothing is": {
			podSpec(`{"securityContext":{"runAsUser":1}}`),
			podSpec(`{"securityContext":{"runAsUser":null,"runAsGroup":7},"nodeSelector":null,"volumes":[{"name":"v","emptyDir":null}]}`),
			podSpec(`{"securityContext":{"runAsGroup":7},"volumes":[{"name":"v"}]}`),
		},
		"fields that the schema does not know": {
			`{"x":{"a":1},"l":[1]}`, `{"x":{"b":2},"l":[2]}`, `{"x":{"a":1,"b":2},"l":[2]}`,
		},
	} {
		live, patch := tree(t, c.live), tree(t, c.patch)
		got, err := StrategicMerge(live, patch, s)
		require.NoError(t, err, name)
		assert.Equal(t, tree(t, c.want), got, name)
		assert.Equal(t, tree(t, c.live), live, name)
		assert.Equal(t, tree(t, c.patch), patch, name)
	}
}

func TestStrategicMergeFaults(t *testing.T) {
	const live = `{"metadata":{"name":"d"},"spec":{"strategy":{"type":"x"},"template":{"spec":{"containers":[{"name":"c"}],"securityContext":{"runAsUser":1}}}}}`
	const containers = "spec.template.spec.containers"
	for patch, want := range map[string]struct {
		code  int
		field string
	}{
		`{"spec":{"strategy":{"$retainKeys":"type"}}}`:                                         {400, ""},
		`{"spec":{"strategy":{"$retainKeys":[1]}}}`:                                            {400, ""},
		`{"spec":{"strategy":{"$retainKeys":["type"],"rollingUpdate":{}}}}`:                    {400, ""},
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":"a"}}`:                             {400, ""},
		podSpec(`{"$setElementOrder/containers":{}}`):                                          {400, ""},
		podSpec(`{"containers":[{"image":"i"}]}`):                                              {422, containers},
		podSpec(`{"containers":[{"name":{}}]}`):                                                {422, containers},
		podSpec(`{"containers":["text"]}`):                                                     {422, containers},
		podSpec(`{"containers":[[]]}`):                                                         {422, containers},
		podSpec(`{"containers":[{"$patch":"delete"}]}`):                                        {422, containers},
		podSpec(`{"containers":[{"$patch":"frob","name":"c"}]}`):                               {422, containers},
		podSpec(`{"containers":[{"$patch":{},"name":"c"}]}`):                                   {422, containers},
		podSpec(`{"securityContext":{"$patch":"frob"}}`):                                       {422, "spec.template.spec.securityContext"},
		podSpec(`{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"name":"x"}]}`):  {422, containers},
		podSpec(`{"$setElementOrder/containers":[{"nokey":"c"}],"containers":[{"name":"c"}]}`): {422, containers},
		podSpec(`{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"image":"c"}]}`): {422, containers},
		podSpec(`{"$setElementOrder/securityContext":[{"name":"c"}]}`):                         {422, "spec.template.spec.securityContext"},
	} {
		_, err := StrategicMerge(tree(t, live), tree(t, patch), deploymentSchema())
		require.Error(t, err, patch)
		s := statusOf(t, err)
		assert.Equal(t, want.code, s.Code, patch)
		if want.field != "" {
			require.NotNil(t, s.Details, patch)
			assert.Equal(t, want.field, s.Details.Causes[0].Field, patch)
		}
	}
}

func FuzzStrategicMerge(f *testing.F) {
	f.Add(podSpec(`{"containers":[{"name":"c","env":[{"name":"A"}]}]}`), podSpec(`{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"name":"c","$patch":"delete"},{"$patch":"replace"}]}`))
	f.Add(`{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a",1],"finalizers":[{}]}}`)
	f.Add(`{"spec":{"strategy":{"a":1}}}`, `{"spec":{"strategy":{"$retainKeys":["a"],"$patch":"x"}}}`)
	s := deploymentSchema()
	f.Fuzz(func(t *testing.T, doc, patch string) {
		d, err1 := meta.ParseJSON([]byte(doc))
		p, err2 := meta.ParseJSON([]byte(patch))
		obj, ok1 := d.(map[string]any)
		change, ok2 := p.(map[string]any)
		if err1 != nil || err2 != nil || !ok1 || !ok2 {
			return
		}
		before := meta.Clone(change)
		if _, err := StrategicMerge(obj, change, s); err != nil {
			statusOf(t, err)
		}
		if !meta.Equal(before, p) {
			t.Error("the patch has changed")
		}
	})
}

// TestStrategicMergeIsBounded checks a patch that has the same item a thousand times. Each
// merges the item's lists, up to a limit of items in total.
func TestStrategicMergeIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, in one goroutine")
	}
	s := deploymentSchema()
	repeat := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	live := tree(t, podSpec(`{"containers":[{"name":"c","env":[`+numbered(10_000, `{"name":"E%d"}`)+`],"args":["a"]}]}`))
	for name, item := range map[string]string{
		"lists":  `{"name":"c","env":[{"name":"E1","value":"x"}]}`,
		"orders": `{"name":"c","$setElementOrder/env":[]}`,
		"spared": `{"name":"c","$deleteFromPrimitiveList/env":["x"]}`,
	} {
		_, err := StrategicMerge(live, tree(t, podSpec(`{"containers":[`+repeat(1000, item)+`]}`)), s)
		assert.Equal(t, 413, statusOf(t, err).Code, name)
		_, err = StrategicMerge(live, tree(t, podSpec(`{"containers":[`+repeat(10, item)+`]}`)), s)
		assert.NoError(t, err, name)
	}
}

func numbered(n int, item string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(item, i)
	}
	return strings.Join(list, ",")
}
