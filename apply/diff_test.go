package apply

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDiff(t *testing.T) {
	live := tree(t, `{"metadata":{"name":"d","managedFields":[{"manager":"m"}],"finalizers":["a","b"]},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"1"}},
		"template":{"spec":{"containers":[{"name":"app","image":"i:1","args":["x"],"ports":[{"containerPort":80}]},{"name":"old"}]}}}}`)
	desired := tree(t, `{"metadata":{"name":"d","finalizers":["b","c"]},"spec":{"replicas":1.0,"revisionHistoryLimit":null,"selector":{"matchLabels":{"a":"2"}},
		"template":{"spec":{"containers":[{"name":"app","image":"i:2","args":["y"],"ports":[{"containerPort":80,"protocol":"TCP"}]},{"name":"new"}]}}}}`)
	const containers = ".spec.template.spec.containers"
	var got []string
	for _, c := range Diff(live, desired, deploymentSchema()) {
		got = append(got, c.String())
	}
	assert.Equal(t, []string{
		`- .metadata.finalizers[="a"]: "a"`,
		`+ .metadata.finalizers[="c"]: "c"`,
		`~ .spec.selector.matchLabels.a: "1" -> "2"`,
		`~ ` + containers + `[name="app"].args: ["x"] -> ["y"]`,
		`~ ` + containers + `[name="app"].image: "i:1" -> "i:2"`,
		`+ ` + containers + `[name="app"].ports[containerPort=80,protocol="TCP"].protocol: "TCP"`,
		`- ` + containers + `[name="old"]: {"name":"old"}`,
		`+ ` + containers + `[name="new"]: {"name":"new"}`,
	}, got)

	order := Diff(tree(t, `{"metadata":{"finalizers":["a","b"]}}`), tree(t, `{"metadata":{"finalizers":["b","a"]}}`), deploymentSchema())
	assert.Equal(t, []Change{{".metadata.finalizers", []any{"a", "b"}, []any{"b", "a"}}}, order)
	assert.Equal(t, []Change{{".l", []any{int64(1)}, []any{int64(2)}}}, Diff(tree(t, `{"l":[1]}`), tree(t, `{"l":[2]}`), nil))
	assert.Empty(t, Diff(nil, tree(t, `{"a":null}`), nil))
}

// TestDiffOfLongPathsIsOneChange checks that the memory of a Diff is bounded.
func TestDiffOfLongPathsIsOneChange(t *testing.T) {
	long := func(v int64) map[string]any {
		m := map[string]any{}
		for i := range 5000 {
			m[fmt.Sprint(i)] = v
		}
		for range 200 {
			m = map[string]any{strings.Repeat("x", 100): m}
		}
		return m
	}
	changes := Diff(long(1), long(2), nil)
	assert.Len(t, changes, 1)
	assert.Empty(t, changes[0].Path)
}
