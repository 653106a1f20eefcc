package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
)

// group is an API group as discovery shows it: its versions, best first, and
// what each serves.
type group struct {
	name     string
	versions []groupVersion
}

type groupVersion struct {
	name   string
	types  []*resource.Version
	remote *aggregator.Version // nil: this server serves it
}

// groupsOf sorts types for discovery: the core group first, then by name.
func groupsOf(types []*resource.Type) []group {
	byName := map[string]map[string][]*resource.Version{}
	for _, t := range types {
		for _, v := range t.Versions {
			if !v.Served {
				continue
			}
			if byName[v.Group] == nil {
				byName[v.Group] = map[string][]*resource.Version{}
			}
			byName[v.Group][v.Name] = append(byName[v.Group][v.Name], v)
		}
	}
	var list []group
	for name, versions := range byName {
		g := group{name: name}
		for v, types := range versions {
			g.versions = append(g.versions, groupVersion{name: v, types: types})
		}
		slices.SortFunc(g.versions, func(a, b groupVersion) int { return resource.CompareVersions(a.name, b.name) })
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b group) int { return cmp.Compare(a.name, b.name) })
	return list
}

// serveDiscovery answers /api, /apis and below, and /version.
func (s *Server) serveDiscovery(w *exchange.Response, r *exchange.Request, path string) bool {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	d := s.discovered()
	switch {
	case path == "/version":
		s.discover(w, r, discoveryDocument{fields: s.versionDocument})
	case path == "/api" || path == "/apis":
		s.discoverRoot(w, r, d, path)
	case strings.Contains(r.Path, "//"):
		return false // the core group is not below /apis
	case parts[0] == "api" && len(parts) == 2:
		return s.discoverVersion(w, r, d, "", parts[1])
	case parts[0] == "apis" && len(parts) == 2:
		return s.discoverGroup(w, r, d, parts[1])
	case parts[0] == "apis" && len(parts) == 3:
		return s.discoverVersion(w, r, d, parts[1], parts[2])
	case path == "":
		s.discoverPaths(w, r, d)
	default:
		return false
	}
	return true
}

func (s *Server) discover(w *exchange.Response, r *exchange.Request, doc discoveryDocument) {
	if r.HTTP.Method != http.MethodGet {
		w.Fail(exchange.MethodNotAllowed())
		return
	}
	m, err := media.Negotiate(r.HTTP.Header.Get("Accept"), s.names, media.Offer{Views: true, Protobuf: codec.DiscoveryProto(doc.kind) != nil})
	if err != nil {
		w.Fail(err)
		return
	}
	m.View, m.Pretty = media.Full, m.Pretty || r.Pretty()
	s.sendDiscovery(w, r, m, doc)
}

func (s *Server) sendDiscovery(w *exchange.Response, r *exchange.Request, m media.Type, doc discoveryDocument) {
	body, err := doc.bytes(m.Format)
	if err != nil {
		w.Fail(err)
		return
	}
	w.Send(m, http.StatusOK, body)
}

// discoverRoot answers /api and /apis in the legacy or in the aggregated form.
func (s *Server) discoverRoot(w *exchange.Response, r *exchange.Request, d *discovered, path string) {
	m, err := media.Negotiate(r.HTTP.Header.Get("Accept"), s.names, media.Offer{Aggregated: true, Protobuf: true})
	if err == nil && m.View == media.Aggregated {
		s.discoverAggregated(w, r, d, m, path == "/api")
		return
	}
	if path == "/api" {
		versions := []any{}
		for _, g := range d.groups {
			if g.name == "" {
				for _, v := range g.versions {
					versions = append(versions, v.name)
				}
			}
		}
		s.discover(w, r, discoveryDocument{kind: "APIVersions", fields: func() map[string]any {
			return map[string]any{"kind": "APIVersions", "versions": versions,
				"serverAddressByClientCIDRs": []any{map[string]any{"clientCIDR": "0.0.0.0/0", "serverAddress": r.HTTP.Host}}}
		}})
		return
	}
	s.discover(w, r, discoveryDocument{"APIGroupList", "/apis", d, func() map[string]any {
		list := []any{}
		for _, g := range d.groups {
			if g.name != "" {
				list = append(list, g.document())
			}
		}
		return map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": list}
	}})
}

func (g group) document() map[string]any {
	var versions []any
	for _, v := range g.versions {
		versions = append(versions, map[string]any{"groupVersion": g.name + "/" + v.name, "version": v.name})
	}
	return map[string]any{"name": g.name, "versions": versions, "preferredVersion": versions[0]}
}

func (s *Server) discoverGroup(w *exchange.Response, r *exchange.Request, d *discovered, name string) bool {
	for _, g := range d.groups {
		if g.name == name {
			s.discover(w, r, discoveryDocument{"APIGroup", "/apis/" + name, d, func() map[string]any {
				doc := g.document()
				doc["kind"], doc["apiVersion"] = "APIGroup", "v1"
				return doc
			}})
			return true
		}
	}
	return false
}

// discoverVersion answers /api/VERSION and /apis/GROUP/VERSION. An unknown
// version of a known group is a Status; an unknown group, and an unknown version
// of a group that only definitions made, are no API path at all.
func (s *Server) discoverVersion(w *exchange.Response, r *exchange.Request, d *discovered, groupName, version string) bool {
	groups := d.groups
	i := slices.IndexFunc(groups, func(g group) bool { return g.name == groupName })
	if i < 0 {
		return false
	}
	j := slices.IndexFunc(groups[i].versions, func(v groupVersion) bool { return v.name == version })
	if j < 0 {
		if !s.hasBuiltin(groupName) {
			return false
		}
		w.Fail(meta.NoSuchResource())
		return true
	}
	gv := meta.GroupVersion{Group: groupName, Version: version}
	s.discover(w, r, discoveryDocument{"APIResourceList", gv.String(), d, func() map[string]any {
		var list []any
		for _, v := range groups[i].versions[j].types {
			list = append(list, resourceDocuments(v)...)
		}
		doc := map[string]any{"kind": "APIResourceList", "groupVersion": gv.String(), "resources": list}
		if groupName != "" {
			doc["apiVersion"] = "v1" // the core group is older than versions of documents
		}
		return doc
	}})
	return true
}

// resourceDocuments describes a resource and its sub-resources.
func resourceDocuments(v *resource.Version) []any {
	doc := map[string]any{
		"name": v.Plural, "singularName": v.Singular, "namespaced": v.Namespaced, "kind": cmp.Or(v.Dummy, v.Kind), "verbs": meta.StringList(v.Verbs()),
	}
	addNames(doc, v)
	if !v.Virtual && v.Dummy == "" {
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

// addNames adds the further names that people have for the objects of a version.
func addNames(doc map[string]any, v *resource.Version) {
	if v.Dummy != "" {
		return
	}
	if len(v.ShortNames) > 0 {
		doc["shortNames"] = meta.StringList(v.ShortNames)
	}
	if len(v.Categories) > 0 {
		doc["categories"] = meta.StringList(v.Categories)
	}
}

// storageHash changes when a type is stored in another version.
func storageHash(t *resource.Type) string {
	sum := sha256.Sum256([]byte(t.Group + "/" + cmp.Or(t.DiscoveredAs, t.Storage.Name) + "/" + t.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// discoverAggregated answers with everything at once, so that a client needs
// two requests instead of one for each group version.
func (s *Server) discoverAggregated(w *exchange.Response, r *exchange.Request, d *discovered, m media.Type, core bool) {
	apiVersion := s.names.Group(names.GroupDiscovery) + "/" + m.ViewVersion
	doc := discoveryDocument{"APIGroupDiscoveryList", fmt.Sprint(apiVersion, " of the core group: ", core), d, func() map[string]any {
		var items []any
		for _, g := range d.groups {
			if (g.name == "") == core {
				items = append(items, g.aggregated())
			}
		}
		return map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": apiVersion, "metadata": map[string]any{}, "items": items}
	}}
	etag := doc.etag()
	w.Header().Set("ETag", etag)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "public") // to be asked for again with its tag
	if r.HTTP.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.sendDiscovery(w, r, m, doc)
}

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

func aggregatedResource(v *resource.Version) map[string]any {
	scope := "Cluster"
	if v.Namespaced {
		scope = "Namespaced"
	}
	doc := map[string]any{
		"resource": v.Plural, "scope": scope, "singularResource": v.Singular, "verbs": meta.StringList(v.Verbs()),
		"responseKind": kindDocument(v, meta.GroupVersionKind{Group: v.Group, Version: v.Name, Kind: cmp.Or(v.Dummy, v.Kind)}),
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

// kindDocument describes the kind that a resource of a version answers. Group and version
// are empty if they are those of the resource, but for resources of definitions.
func kindDocument(v *resource.Version, k meta.GroupVersionKind) map[string]any {
	if k.APIVersion() == v.GVK().APIVersion() && !v.Defined() {
		k = meta.GroupVersionKind{Kind: k.Kind}
	}
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

// discoverPaths answers / with the paths that there are.
func (s *Server) discoverPaths(w *exchange.Response, r *exchange.Request, d *discovered) {
	paths := []string{"/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}
	for _, g := range d.groups {
		for _, v := range g.versions {
			if g.name == "" {
				paths = append(paths, "/api/"+v.name)
				continue
			}
			paths = append(paths, "/apis/"+g.name, "/apis/"+g.name+"/"+v.name)
		}
	}
	for p := range s.handlers {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	s.discover(w, r, discoveryDocument{fields: func() map[string]any {
		return map[string]any{"paths": meta.StringList(slices.Compact(paths))}
	}})
}

func (s *Server) versionDocument() map[string]any {
	v := s.version
	major, rest, _ := strings.Cut(strings.TrimPrefix(v, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return map[string]any{
		"major": major, "minor": minor, "gitVersion": v, "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
		"goVersion": runtime.Version(), "compiler": runtime.Compiler, "platform": runtime.GOOS + "/" + runtime.GOARCH,
	}
}
