package openapi

import "orch.io/controlplane/internal/resource"

// parameter is one parameter of a path or a query.
type parameter struct{ name, in, kind, doc string }

var (
	pathName      = parameter{"name", "path", "string", "The name of the object."}
	pathNamespace = parameter{"namespace", "path", "string", "The namespace of the object."}

	queryPretty = parameter{"pretty", "query", "string", "Indents the answer, if true."}

	queryDryRun       = parameter{"dryRun", "query", "string", "With the value All the request goes through all stages, but nothing is stored."}
	queryFieldManager = parameter{"fieldManager", "query", "string", "The name of the writer among the managed fields, at most 128 printable characters."}
	queryValidation   = parameter{"fieldValidation", "query", "string", "What happens to unknown and duplicate fields: Ignore drops them, Warn drops them with a warning (the default), Strict refuses the request."}
	queryForce        = parameter{"force", "query", "boolean", "Takes over the fields that other managers own; for apply patches only."}
)

// listQuery are the parameters of lists and watches.
var listQuery = []parameter{
	{"allowWatchBookmarks", "query", "boolean", "Lets a watch send events of type BOOKMARK, which carry nothing but a version."},
	{"continue", "query", "string", "The token of the page before this one. It is valid for some minutes, after which the answer is 410."},
	{"fieldSelector", "query", "string", "Selects objects by their fields."},
	{"labelSelector", "query", "string", "Selects objects by their labels."},
	{"limit", "query", "integer", "The most objects that one page may have; metadata.continue then leads to the next."},
	{"resourceVersion", "query", "string", "The version that the answer is made from or that a watch begins after."},
	{"resourceVersionMatch", "query", "string", "How resourceVersion is meant: Exact or NotOlderThan."},
	{"sendInitialEvents", "query", "boolean", "Lets a watch begin with the objects that there are, followed by a bookmark."},
	{"timeoutSeconds", "query", "integer", "How long the request may take at most, watches included."},
	{"watch", "query", "boolean", "Sends changes as they happen, not a list."},
}

var deleteQuery = []parameter{
	{"gracePeriodSeconds", "query", "integer", "How long the object may take to end; zero is at once."},
	{"ignoreStoreReadErrorWithClusterBreakingPotential", "query", "boolean", "Deletes an object that cannot be read, and no other."},
	{"orphanDependents", "query", "boolean", "The older form of propagationPolicy."},
	{"propagationPolicy", "query", "string", "What happens to dependents: Orphan, Background or Foreground."},
}

// query returns the query parameters of an operation.
func query(action string) []parameter {
	switch action {
	case "list":
		return listQuery
	case "deletecollection":
		return append(append([]parameter{queryDryRun}, deleteQuery...), listQuery...)
	case "delete":
		return append([]parameter{queryDryRun}, deleteQuery...)
	case "post", "put":
		return []parameter{queryDryRun, queryFieldManager, queryValidation}
	case "patch":
		return []parameter{queryDryRun, queryFieldManager, queryValidation, queryForce}
	}
	return nil
}

// parameter describes a parameter; the description is the same wherever it stands.
func (b *builder) parameter(p parameter) map[string]any {
	if tree, ok := b.described[p]; ok {
		return tree
	}
	tree := b.describe(p)
	b.described[p] = tree
	return tree
}

func (b *builder) describe(p parameter) map[string]any {
	tree := map[string]any{"name": p.name, "in": p.in, "description": p.doc, "uniqueItems": true}
	if p.in == "path" {
		tree["required"] = true
	}
	if b.dialect == v2 {
		tree["type"] = p.kind
		return tree
	}
	delete(tree, "uniqueItems")
	tree["schema"] = map[string]any{"type": p.kind, "uniqueItems": true}
	return tree
}

func (b *builder) parameters(list []parameter) []any {
	out := make([]any, len(list))
	for i, p := range list {
		out[i] = b.parameter(p)
	}
	return out
}

// patchTypes are the media types of patches that a version takes.
func patchTypes(v *resource.Version) []string {
	types := []string{"application/json-patch+json", "application/merge-patch+json"}
	if v.Strategic {
		types = append(types, "application/strategic-merge-patch+json")
	}
	return append(types, "application/apply-patch+yaml")
}
