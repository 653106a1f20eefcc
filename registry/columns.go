package registry

import (
	"time"

	"orch.io/controlplane/registry/meta"
)

// Age returns the column that most kinds end with: how long an object has been
// there.
func Age() Column {
	return Column{Name: "Age", Type: "string", Doc: "How long ago the object was created.", Cell: func(o *meta.Object) any {
		return meta.FormatAge(o.CreationTimestamp(), time.Now())
	}}
}
