package fairqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/flowcontrol"
)

func newController(t *testing.T, seats int, config flowcontrol.Config) *Controller {
	t.Helper()
	c, err := New(Options{Seats: seats, MaxWait: 15 * time.Second}, config)
	require.NoError(t, err)
	return c
}

// TestDefaultClassification checks the schema, level and flow of requests under the default
// configuration, as on the field's servers.
func TestDefaultClassification(t *testing.T) {
	user := func(name string, groups ...string) *auth.User {
		return &auth.User{Name: name, Groups: append(groups, auth.Authenticated)}
	}
	account := func(namespace, name string) *auth.User {
		return user(auth.ServiceAccountUser(namespace, name), auth.ServiceAccountGroups(namespace)...)
	}
	anonymous := &auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}}
	controllers, scheduler := user("system:kube-controller-manager"), user("system:kube-scheduler")
	node := user("system:node:n1", "system:nodes")
	in := func(verb, group, resource, namespace string) auth.Attributes {
		return auth.Attributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace}
	}
	path := func(verb, path string) auth.Attributes { return auth.Attributes{Verb: verb, Path: path} }
	sub := func(a auth.Attributes, name string) auth.Attributes { a.Subresource = name; return a }
	const leases = "coordination.k8s.io"

	c := newController(t, 600, flowcontrol.Default(names.Kubernetes))
	for _, test := range []struct {
		user                *auth.User
		action              auth.Attributes
		schema, level, flow string
	}{
		{user("root", auth.Masters), in("list", "", "secrets", ""), "exempt", "exempt", ""},
		{user("root", auth.Masters), path("get", "/healthz"), "exempt", "exempt", ""},
		{anonymous, path("get", "/healthz"), "probes", "exempt", ""},
		{anonymous, path("get", "/readyz"), "probes", "exempt", ""},
		{node, path("get", "/livez"), "probes", "exempt", ""},
		{anonymous, path("post", "/livez"), "global-default", "global-default", auth.Anonymous},
		{anonymous, path("get", "/livez/ping"), "global-default", "global-default", auth.Anonymous},
		{anonymous, path("get", "/version"), "global-default", "global-default", auth.Anonymous},
		{controllers, in("update", leases, "leases", "kube-system"), "system-leader-election", "leader-election", controllers.Name},
		{scheduler, in("get", leases, "leases", "other"), "system-leader-election", "leader-election", scheduler.Name},
		{account("kube-system", "x"), in("create", leases, "leases", "kube-system"), "system-leader-election", "leader-election", "system:serviceaccount:kube-system:x"},
		{account("other", "x"), in("update", leases, "leases", "kube-system"), "service-accounts", "workload-low", "system:serviceaccount:other:x"},
		{controllers, in("patch", leases, "leases", "kube-system"), "kube-controller-manager", "workload-high", "kube-system"},
		{controllers, in("list", leases, "leases", ""), "kube-controller-manager", "workload-high", ""},
		{controllers, in("get", "", "leases", "kube-system"), "kube-controller-manager", "workload-high", "kube-system"},
		{node, in("get", "", "nodes", ""), "system-node-high", "node-high", node.Name},
		{node, sub(in("patch", "", "nodes", ""), "status"), "system-node-high", "node-high", node.Name},
		{node, sub(in("get", "", "nodes", ""), "proxy"), "system-nodes", "system", node.Name},
		{node, in("update", leases, "leases", "kube-node-lease"), "system-node-high", "node-high", node.Name},
		{node, in("list", leases, "leases", ""), "system-nodes", "system", node.Name},
		{node, in("list", "", "pods", ""), "system-nodes", "system", node.Name},
		{node, path("get", "/api"), "system-nodes", "system", node.Name},
		{scheduler, in("create", "", "events", "a"), "kube-scheduler", "workload-high", "a"},
		{scheduler, path("get", "/version"), "kube-scheduler", "workload-high", ""},
		{account("kube-system", "x"), in("list", "", "pods", "a"), "kube-system-service-accounts", "workload-high", "a"},
		{account("a", "x"), in("list", "", "pods", "a"), "service-accounts", "workload-low", "system:serviceaccount:a:x"},
		{account("a", "x"), path("get", "/api"), "service-accounts", "workload-low", "system:serviceaccount:a:x"},
		{user("alice"), in("list", "", "pods", "a"), "global-default", "global-default", "alice"},
		{user("alice"), in("", "", "pods", "a"), "global-default", "global-default", "alice"},
		{&auth.User{Name: "odd"}, in("list", "", "pods", "a"), "catch-all", "catch-all", "odd"},
	} {
		a := test.action
		a.User = test.user
		f := c.Classify(&a)
		schema, flow := f.key()
		assert.Equal(t, []string{test.schema, test.level, test.flow}, []string{schema, f.schema.level.config.Name, flow}, "%s %+v", test.user.Name, test.action)
		assert.Equal(t, test.level == "exempt", f.Exempt())
	}
}

func TestUIDs(t *testing.T) {
	uids := func(seats int) []string {
		config := flowcontrol.Default(names.Orch)
		config.Schemas[10].UID = "given"
		f := newController(t, seats, config).Classify(&auth.Attributes{User: &auth.User{Name: "odd"}})
		g := newController(t, seats, config).Classify(&auth.Attributes{User: &auth.User{Name: "a", Groups: []string{auth.Authenticated}}})
		return []string{f.SchemaUID(), f.LevelUID(), g.SchemaUID(), g.LevelUID()}
	}
	got := uids(600)
	assert.Equal(t, got, uids(20), "UIDs do not depend on the server or the configuration")
	assert.Equal(t, "given", got[0])
	assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`, got[1])
	assert.NotContains(t, got[1:2], got[2])
	assert.NotEqual(t, got[2], got[3])
}

// TestDefaultLimits compares the limits of the default levels for 600 seats with the field's.
func TestDefaultLimits(t *testing.T) {
	c := newController(t, 600, flowcontrol.Default(names.Kubernetes))
	got := map[string][3]int{}
	for _, l := range c.levels {
		got[l.config.Name] = [3]int{l.nominal, l.kept, l.maxWidth}
	}
	assert.Equal(t, map[string][3]int{
		"exempt": {0, 0, 0}, "system": {74, 50, 10}, "node-high": {98, 73, 10}, "leader-election": {25, 25, 4}, "workload-high": {98, 49, 10},
		"workload-low": {245, 24, 10}, "global-default": {49, 24, 8}, "catch-all": {13, 13, 2},
	}, got)
	assert.Equal(t, 602, c.capacity)
}

func TestShuffleShardHandsAreDistinct(t *testing.T) {
	seen := map[[2]int]int{}
	for n := range uint64(12) {
		hand := shuffleShard(n, 4, 2)
		seen[[2]int(hand)]++
	}
	assert.Len(t, seen, 12, "each number has a different hand")
	for i := range 1000 {
		hand := shuffleShard(hash("schema", string(rune(i))), 128, 6)
		distinct := map[int]bool{}
		for _, card := range hand {
			assert.GreaterOrEqual(t, card, 0)
			assert.Less(t, card, 128)
			distinct[card] = true
		}
		assert.Len(t, distinct, 6)
	}
	assert.Equal(t, []int{0, 1, 2}, shuffleShard(0, 3, 3))
}

func TestSubjectsAndRules(t *testing.T) {
	alice := &auth.User{Name: "alice", Groups: []string{"devs"}}
	robot := &auth.User{Name: "system:serviceaccount:a:robot"}
	all := []string{flowcontrol.All}
	schema := func(r flowcontrol.Rule) *flowcontrol.FlowSchema {
		return &flowcontrol.FlowSchema{Rules: []flowcontrol.Rule{r}}
	}
	anything := []flowcontrol.ResourceRule{{Verbs: all, Groups: all, Resources: all, Cluster: true, Namespaces: all}}
	for _, test := range []struct {
		subject      flowcontrol.Subject
		alice, robot bool
	}{
		{flowcontrol.Subject{User: "alice"}, true, false},
		{flowcontrol.Subject{User: flowcontrol.All}, true, true},
		{flowcontrol.Subject{Group: "devs"}, true, false},
		{flowcontrol.Subject{Group: flowcontrol.All}, true, true},
		{flowcontrol.Subject{Namespace: "a", ServiceAccount: "robot"}, false, true},
		{flowcontrol.Subject{Namespace: "a", ServiceAccount: flowcontrol.All}, false, true},
		{flowcontrol.Subject{Namespace: "b", ServiceAccount: flowcontrol.All}, false, false},
		{flowcontrol.Subject{}, false, false},
	} {
		s := schema(flowcontrol.Rule{Subjects: []flowcontrol.Subject{test.subject}, Resources: anything})
		assert.Equal(t, test.alice, s.Match(&auth.Attributes{User: alice, Verb: "get", Resource: "pods"}), "%+v", test.subject)
		assert.Equal(t, test.robot, s.Match(&auth.Attributes{User: robot, Verb: "get", Resource: "pods"}), "%+v", test.subject)
		assert.False(t, s.Match(&auth.Attributes{User: alice, Verb: "get", Path: "/x"}), "paths need a rule of their own")
	}
	rule := flowcontrol.Rule{Subjects: []flowcontrol.Subject{{User: "alice"}},
		Resources: []flowcontrol.ResourceRule{{Verbs: []string{"get"}, Groups: []string{"apps"}, Resources: []string{"deployments", "deployments/status"}, Namespaces: []string{"a"}}},
		Paths:     []flowcontrol.PathRule{{Verbs: []string{"get"}, Paths: []string{"/exact", "/below/*"}}}}
	for _, test := range []struct {
		action auth.Attributes
		want   bool
	}{
		{auth.Attributes{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "a"}, true},
		{auth.Attributes{Verb: "list", Group: "apps", Resource: "deployments", Namespace: "a"}, false},
		{auth.Attributes{Verb: "get", Group: "", Resource: "deployments", Namespace: "a"}, false},
		{auth.Attributes{Verb: "get", Group: "apps", Resource: "daemonsets", Namespace: "a"}, false},
		{auth.Attributes{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "b"}, false},
		{auth.Attributes{Verb: "get", Group: "apps", Resource: "deployments"}, false},
		{auth.Attributes{Verb: "get", Group: "apps", Resource: "deployments", Subresource: "status", Namespace: "a"}, true},
		{auth.Attributes{Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "a"}, false},
		{auth.Attributes{Verb: "get", Path: "/exact"}, true},
		{auth.Attributes{Verb: "get", Path: "/exact/not"}, false},
		{auth.Attributes{Verb: "get", Path: "/below/it"}, true},
		{auth.Attributes{Verb: "post", Path: "/below/it"}, false},
	} {
		test.action.User = alice
		assert.Equal(t, test.want, schema(rule).Match(&test.action), "%+v", test.action)
	}
}

func TestInvalidConfigs(t *testing.T) {
	negative := -1
	queues := func(q, hand, length int) *flowcontrol.Queuing {
		return &flowcontrol.Queuing{Queues: q, HandSize: hand, QueueLength: length}
	}
	for _, level := range []flowcontrol.PriorityLevel{
		{Name: ""}, {Name: "a", Shares: -1}, {Name: "a", Shares: 1 << 30}, {Name: "a", Lendable: 101}, {Name: "a", Lendable: -1}, {Name: "a", Borrowing: &negative},
		{Name: "a", Queuing: queues(0, 1, 1)}, {Name: "a", Queuing: queues(1, 2, 1)}, {Name: "a", Queuing: queues(1, 0, 1)}, {Name: "a", Queuing: queues(1, 1, 0)},
		{Name: "a", Queuing: queues(128, 10, 1)}, {Name: "a", Queuing: queues(1<<30, 1, 1)},
	} {
		config := flowcontrol.Config{Levels: []flowcontrol.PriorityLevel{level}, Schemas: []flowcontrol.FlowSchema{{Name: "s", Level: level.Name}}}
		_, err := New(Options{Seats: 1}, config)
		assert.Error(t, err, "%+v", level)
	}
	good := flowcontrol.PriorityLevel{Name: "a", Shares: 1}
	for _, config := range []flowcontrol.Config{
		{Levels: []flowcontrol.PriorityLevel{good}},
		{Levels: []flowcontrol.PriorityLevel{good, good}, Schemas: []flowcontrol.FlowSchema{{Name: "s", Level: "a"}}},
		{Levels: []flowcontrol.PriorityLevel{good}, Schemas: []flowcontrol.FlowSchema{{Name: "s", Level: "b"}}},
		{Levels: []flowcontrol.PriorityLevel{good}, Schemas: []flowcontrol.FlowSchema{{Name: "s", Level: "a"}, {Name: "s", Level: "a"}}},
		{Levels: []flowcontrol.PriorityLevel{good}, Schemas: []flowcontrol.FlowSchema{{Level: "a"}}},
	} {
		_, err := New(Options{Seats: 1}, config)
		assert.Error(t, err)
	}
	for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
		newController(t, 1, flowcontrol.Default(p))
	}
}
