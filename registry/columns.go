package registry

import (
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
)

// AgeColumn returns the column with the time since an object was created. Most kinds have it as the last
// column.
func AgeColumn() Column {
	return Column{Name: "Age", Type: "string", Doc: "How long ago the object was created.", Cell: func(o *meta.Object) any {
		return meta.FormatAge(o.CreationTimestamp(), time.Now())
	}}
}

// TextColumn returns a column with the string at a path, empty if there is none. If the schema of the
// kind does not have the path, Build of a server fails.
func TextColumn(name, doc string, path ...string) Column {
	return Column{Name: name, Type: "string", Doc: doc, JSONPath: jsonPath(path), Cell: func(o *meta.Object) any { return o.String(path...) }}
}

// jsonPath returns the JSON path of nested fields.
func jsonPath(fields []string) string {
	return "." + strings.Join(fields, ".")
}
