package plugins_test

import (
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
)

// The plugins of a server that brings one of its own: it sees what those before it made.
func ExampleTable() {
	table := plugins.Table(admission.Plugin{Name: "NoAttic"})
	fmt.Println(table[0].Name)
	fmt.Println(slices.ContainsFunc(table, func(p admission.Plugin) bool { return p.Name == "NoAttic" }))
	// Output:
	// AlwaysAdmit
	// true
}
