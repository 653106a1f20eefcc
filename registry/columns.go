package registry

import (
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
)

// AgeColumn returns the column that most kinds end with: how long an object has been
// there.
func AgeColumn() Column {
	return Column{Name: "Age", Type: "string", Doc: "How long ago the object was created.", Cell: func(o *meta.Object) any {
		return meta.FormatAge(o.CreationTimestamp(), time.Now())
	}}
}

// TextColumn returns a column that shows the text at a path, empty if there is none. A path that
// the kind does not have fails the Build of a server.
func TextColumn(name, doc string, path ...string) Column {
	return Column{Name: name, Type: "string", Doc: doc, JSONPath: jsonPath(path), Cell: func(o *meta.Object) any { return o.String(path...) }}
}

// jsonPath returns the JSON path of fields.
func jsonPath(fields []string) string {
	return "." + strings.Join(fields, ".")
}
