package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
)

// document returns the APIGroup of a group without kind and apiVersion.
func (g group) document() map[string]any {
	var versions []any
	for _, v := range g.versions {
		versions = append(versions, map[string]any{"groupVersion": g.name + "/" + v.name, "version": v.name})
	}
	return map[string]any{"name": g.name, "versions": versions, "preferredVersion": versions[0]}
}

// resourceDocuments returns the APIResources of a resource and its subresources.
func resourceDocuments(v *resource.Version) []any {
	doc := map[string]any{
		"name": v.Plural, "singularName": v.Singular, "namespaced": v.Namespaced, "kind": cmp.Or(v.DiscoveryKind, v.Kind), "verbs": meta.StringList(v.Verbs()),
	}
	addNames(doc, v)
	if !v.Virtual && v.DiscoveryKind == "" {
		doc["storageVersionHash"] = storageHash(v.Type)
	}
	list := []any{doc}
	for i := range v.Subresources {
		sub := &v.Subresources[i]
		d := map[string]any{
			"name": v.Plural + "/" + sub.Name, "singularName": "", "namespaced": v.Namespaced,
			"kind": v.Kind, "verbs": meta.StringList(sub.Verbs()),
		}
		k := sub.WireKind(v)
		if d["kind"] = k.Kind; k.APIVersion() != v.GVK().APIVersion() {
			d["group"], d["version"] = k.Group, k.Version
		}
		list = append(list, d)
	}
	return list
}

// addNames adds the short names and categories of a version.
func addNames(doc map[string]any, v *resource.Version) {
	if v.DiscoveryKind != "" {
		return
	}
	if len(v.ShortNames) > 0 {
		doc["shortNames"] = meta.StringList(v.ShortNames)
	}
	if len(v.Categories) > 0 {
		doc["categories"] = meta.StringList(v.Categories)
	}
}

// storageHash returns a hash that changes with the storage version of a type.
func storageHash(t *resource.Type) string {
	sum := sha256.Sum256([]byte(t.Group + "/" + cmp.Or(t.DiscoveredAs, t.Storage.Name) + "/" + t.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// aggregated returns the APIGroupDiscovery of a group.
func (g group) aggregated() map[string]any {
	var versions []any
	for _, v := range g.versions {
		if v.remote != nil {
			versions = append(versions, aggregatedVersion(v.remote))
			continue
		}
		var resources []any
		for _, t := range v.types {
			resources = append(resources, aggregatedResource(t))
		}
		versions = append(versions, map[string]any{"version": v.name, "freshness": "Current", "resources": resources})
	}
	metadata := map[string]any{}
	if g.name != "" {
		metadata["name"] = g.name
	}
	return map[string]any{"metadata": metadata, "versions": versions}
}

// aggregatedVersion returns the APIVersionDiscovery of a version that another server serves.
func aggregatedVersion(v *aggregator.Version) map[string]any {
	freshness := "Current"
	if v.Documents.Stale || !v.Available {
		freshness = "Stale"
	}
	return map[string]any{"version": v.Version, "freshness": freshness, "resources": v.Documents.List()}
}

// aggregatedResource returns the APIResourceDiscovery of a resource.
func aggregatedResource(v *resource.Version) map[string]any {
	scope := "Cluster"
	if v.Namespaced {
		scope = "Namespaced"
	}
	doc := map[string]any{
		"resource": v.Plural, "scope": scope, "singularResource": v.Singular, "verbs": meta.StringList(v.Verbs()),
		"responseKind": kindDocument(v, meta.GroupVersionKind{Group: v.Group, Version: v.Name, Kind: cmp.Or(v.DiscoveryKind, v.Kind)}),
	}
	addNames(doc, v)
	var subs []any
	for i := range v.Subresources {
		sub := &v.Subresources[i]
		subs = append(subs, map[string]any{
			"subresource": sub.Name, "verbs": meta.StringList(sub.Verbs()), "responseKind": kindDocument(v, sub.WireKind(v)),
		})
	}
	if subs != nil {
		doc["subresources"] = subs
	}
	return doc
}

// kindDocument returns the kind of the responses of a resource. Group and version are empty if the
// resource has the same group and version, unless a CustomResourceDefinition defines it.
func kindDocument(v *resource.Version, k meta.GroupVersionKind) map[string]any {
	if k.APIVersion() == v.GVK().APIVersion() && !v.Defined() {
		k = meta.GroupVersionKind{Kind: k.Kind}
	}
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}
