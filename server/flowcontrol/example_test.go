package flowcontrol_test

import (
	"fmt"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/flowcontrol"
)

// The user of a program gets a level of its own, before the default ones.
func ExampleConfig() {
	config := flowcontrol.Default(names.Kubernetes)
	all := []string{flowcontrol.All}
	config.Levels = append(config.Levels, flowcontrol.PriorityLevel{
		Name: "operator", Shares: 50, Lendable: 50, Queuing: &flowcontrol.Queuing{Queues: 16, HandSize: 4, QueueLength: 50},
	})
	config.Schemas = append(config.Schemas, flowcontrol.FlowSchema{
		Name: "operator", Precedence: 50, Level: "operator", Distinguisher: flowcontrol.ByNamespace,
		Rules: []flowcontrol.Rule{{
			Subjects:  []flowcontrol.Subject{{User: "operator"}},
			Resources: []flowcontrol.ResourceRule{{Verbs: all, Groups: all, Resources: all, Cluster: true, Namespaces: all}},
		}},
	})
	fmt.Println(config.Validate())
	for _, s := range config.Schemas {
		if s.Match(&auth.Attributes{User: &auth.User{Name: "operator"}, Verb: "list", Resource: "pods"}) {
			fmt.Println(s.Name, s.Level)
		}
	}
	// Output:
	// <nil>
	// operator operator
}
