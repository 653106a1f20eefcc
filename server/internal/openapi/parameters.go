package openapi

import "orch.io/controlplane/internal/resource"

// parameter is a parameter in a path or query.
type parameter struct{ name, in, kind, doc string }

var (
	pathName      = parameter{"name", "path", "string", "The name of the object."}
	pathNamespace = parameter{"namespace", "path", "string", "The namespace of the object."}

	queryPretty = parameter{"pretty", "query", "string", "Indents the response, if true."}

	queryDryRun       = parameter{"dryRun", "query", "string", "With the value All, the request runs all stages but stores nothing."}
	queryFieldManager = parameter{"fieldManager", "query", "string", "The name of the manager in managedFields, at most 128 printable characters."}
	queryValidation   = parameter{"fieldValidation", "query", "string", "How unknown and duplicate fields are handled: Ignore drops them, Warn drops them with a warning (the default), Strict rejects the request."}
	queryForce        = parameter{"force", "query", "boolean", "Takes over fields that other managers own. Only for apply patches."}
)

// listQuery holds the query parameters of lists and watches.
var listQuery = []parameter{
	{"allowWatchBookmarks", "query", "boolean", "Lets a watch send events of type BOOKMARK, which have only a resourceVersion."},
	{"continue", "query", "string", "The continue token of the previous page. It is valid for some minutes; after that, the response is 410."},
	{"fieldSelector", "query", "string", "Selects objects by their fields."},
	{"labelSelector", "query", "string", "Selects objects by their labels."},
	{"limit", "query", "integer", "The maximum number of objects in a page. metadata.continue is the token of the next page."},
	{"resourceVersion", "query", "string", "The version at which a list is read, or after which a watch begins."},
	{"resourceVersionMatch", "query", "string", "How resourceVersion is interpreted: Exact or NotOlderThan."},
	{"sendInitialEvents", "query", "boolean", "Lets a watch begin with the existing objects, followed by a bookmark."},
	{"timeoutSeconds", "query", "integer", "The maximum duration of the request, including watches."},
	{"watch", "query", "boolean", "Sends changes as they happen, instead of a list."},
}

var deleteQuery = []parameter{
	{"gracePeriodSeconds", "query", "integer", "How long the object may take to shut down; 0 deletes it at once."},
	{"ignoreStoreReadErrorWithClusterBreakingPotential", "query", "boolean", "Deletes an object only if it cannot be read."},
	{"orphanDependents", "query", "boolean", "The deprecated form of propagationPolicy."},
	{"propagationPolicy", "query", "string", "How dependents are handled: Orphan, Background or Foreground."},
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

// parameter returns the description of a parameter, which all its uses share.
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

// patchTypes returns the media types of the patches that a version supports.
func patchTypes(v *resource.Version) []string {
	types := []string{"application/json-patch+json", "application/merge-patch+json"}
	if v.Strategic {
		types = append(types, "application/strategic-merge-patch+json")
	}
	return append(types, "application/apply-patch+yaml")
}
