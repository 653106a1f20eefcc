package flowcontrol

import (
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
)

// Default returns the levels and schemas of kube-apiserver.
func Default(p names.Profile) Config {
	return Config{Levels: defaultLevels(), Schemas: defaultSchemas(p)}
}

func defaultLevels() []PriorityLevel {
	queues := func(n, hand int) *Queuing { return &Queuing{Queues: n, HandSize: hand, QueueLength: 50} }
	return []PriorityLevel{
		{Name: "exempt", Exempt: true},
		{Name: "system", Shares: 30, Lendable: 33, Queuing: queues(64, 6)},
		{Name: "node-high", Shares: 40, Lendable: 25, Queuing: queues(64, 6)},
		{Name: "leader-election", Shares: 10, Queuing: queues(16, 4)},
		{Name: "workload-high", Shares: 40, Lendable: 50, Queuing: queues(128, 6)},
		{Name: "workload-low", Shares: 100, Lendable: 90, Queuing: queues(128, 6)},
		{Name: "global-default", Shares: 20, Lendable: 50, Queuing: queues(128, 6)},
		{Name: "catch-all", Shares: 5},
	}
}

func defaultSchemas(p names.Profile) []FlowSchema {
	all := []string{All}
	everything := ResourceRule{Verbs: all, Groups: all, Resources: all, Cluster: true, Namespaces: all}
	leases := func(verbs ...string) ResourceRule {
		return ResourceRule{Verbs: verbs, Groups: []string{p.Group(wellknown.GroupCoordination)}, Resources: []string{"leases"}, Namespaces: all}
	}
	whole := func(subjects ...Subject) []Rule {
		return []Rule{{Subjects: subjects, Resources: []ResourceRule{everything}, Paths: []PathRule{{Verbs: all, Paths: all}}}}
	}
	controllers, scheduler := Subject{User: p.Wire(wellknown.UserControllerManager)}, Subject{User: p.Wire(wellknown.UserScheduler)}
	accounts := Subject{Namespace: p.SystemNamespace("system"), ServiceAccount: All}
	nodes := Subject{Group: "system:nodes"}
	everybody := []Subject{{Group: auth.Unauthenticated}, {Group: auth.Authenticated}}
	return []FlowSchema{
		{Name: "exempt", Precedence: 1, Level: "exempt", Rules: whole(Subject{Group: auth.Masters})},
		{Name: "probes", Precedence: 2, Level: "exempt", Rules: []Rule{{
			Subjects: everybody, Paths: []PathRule{{Verbs: []string{"get"}, Paths: []string{"/healthz", "/readyz", "/livez"}}},
		}}},
		{Name: "system-leader-election", Precedence: 100, Level: "leader-election", Distinguisher: ByUser, Rules: []Rule{{
			Subjects: []Subject{controllers, scheduler, accounts}, Resources: []ResourceRule{leases("get", "create", "update")},
		}}},
		{Name: "system-node-high", Precedence: 400, Level: "node-high", Distinguisher: ByUser, Rules: []Rule{{
			Subjects: []Subject{nodes}, Resources: []ResourceRule{
				{Verbs: all, Groups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Cluster: true, Namespaces: all}, leases(All),
			},
		}}},
		{Name: "system-nodes", Precedence: 500, Level: "system", Distinguisher: ByUser, Rules: whole(nodes)},
		{Name: p.Wire(wellknown.FlowControllers), Precedence: 800, Level: "workload-high", Distinguisher: ByNamespace, Rules: whole(controllers)},
		{Name: p.Wire(wellknown.FlowScheduler), Precedence: 800, Level: "workload-high", Distinguisher: ByNamespace, Rules: whole(scheduler)},
		{Name: p.SystemNamespace("system") + "-service-accounts", Precedence: 900, Level: "workload-high", Distinguisher: ByNamespace, Rules: whole(accounts)},
		{Name: "service-accounts", Precedence: 9000, Level: "workload-low", Distinguisher: ByUser, Rules: whole(Subject{Group: auth.ServiceAccounts})},
		{Name: "global-default", Precedence: 9900, Level: "global-default", Distinguisher: ByUser, Rules: whole(everybody...)},
		{Name: "catch-all", Precedence: 10_000, Level: "catch-all", Distinguisher: ByUser, Rules: whole(everybody...)},
	}
}
