// Package discovery serves the documents from which clients learn the resources of a server:
// discovery below /api and /apis, OpenAPI, /version and the list of paths.
package discovery

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/openapi"
)

// Handler serves the documents of a server. Set the exported fields before the first request. Its
// methods may be called concurrently.
type Handler struct {
	Names      names.Profile
	Version    string // of the server, such as "v1.37.2"
	Types      func() *resource.State
	Aggregator *aggregator.Aggregator // nil if the kind APIService is not registered
	Paths      []string               // further paths that the server serves

	current atomic.Pointer[snapshot]
	openapi openapi.Cache
	foreign atomic.Pointer[openapi.Others]
}

// Serve serves the document at a path, which has no slash at its end. It reports false if there is
// no document.
func (h *Handler) Serve(w *exchange.Response, r *exchange.Request, path string) bool {
	return h.serveDiscovery(w, r, path) || h.serveOpenAPI(w, r, path)
}

func (h *Handler) serveDiscovery(w *exchange.Response, r *exchange.Request, path string) bool {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	s := h.snapshot()
	switch {
	case path == "/version":
		h.serve(w, r, document{fields: func() map[string]any { return Version(h.Version) }})
	case path == "/api" || path == "/apis":
		h.serveRoot(w, r, s, path)
	case strings.Contains(r.Path, "//"):
		return false // an empty group in the path does not mean the core group
	case parts[0] == "api" && len(parts) == 2:
		return h.serveVersion(w, r, s, "", parts[1])
	case parts[0] == "apis" && len(parts) == 2:
		return h.serveGroup(w, r, s, parts[1])
	case parts[0] == "apis" && len(parts) == 3:
		return h.serveVersion(w, r, s, parts[1], parts[2])
	case path == "":
		h.servePaths(w, r, s)
	default:
		return false
	}
	return true
}

// serve negotiates the format of a document and sends it.
func (h *Handler) serve(w *exchange.Response, r *exchange.Request, d document) {
	if r.HTTP.Method != http.MethodGet {
		w.Fail(exchange.MethodNotAllowed())
		return
	}
	m, err := media.Negotiate(r.HTTP.Header.Get("Accept"), h.Names, media.Supported{Views: true, Protobuf: codec.DiscoveryProto(d.kind) != nil})
	if err != nil {
		w.Fail(err)
		return
	}
	m.View, m.Pretty = media.Full, m.Pretty || r.Pretty()
	send(w, m, d)
}

func send(w *exchange.Response, m media.Type, d document) {
	body, err := d.bytes(m.Format)
	if err != nil {
		w.Fail(err)
		return
	}
	w.Send(m, http.StatusOK, body)
}

// serveRoot serves /api and /apis, as an aggregated discovery document if the client accepts it.
func (h *Handler) serveRoot(w *exchange.Response, r *exchange.Request, s *snapshot, path string) {
	m, err := media.Negotiate(r.HTTP.Header.Get("Accept"), h.Names, media.Supported{Aggregated: true, Protobuf: true})
	if err == nil && m.View == media.Aggregated {
		h.serveAggregated(w, r, s, m, path == "/api")
		return
	}
	if path == "/api" {
		versions := []any{}
		for _, g := range s.groups {
			if g.name == "" {
				for _, v := range g.versions {
					versions = append(versions, v.name)
				}
			}
		}
		h.serve(w, r, document{kind: "APIVersions", fields: func() map[string]any {
			return map[string]any{"kind": "APIVersions", "versions": versions,
				"serverAddressByClientCIDRs": []any{map[string]any{"clientCIDR": "0.0.0.0/0", "serverAddress": r.HTTP.Host}}}
		}})
		return
	}
	h.serve(w, r, document{"APIGroupList", "/apis", s, func() map[string]any {
		list := []any{}
		for _, g := range s.groups {
			if g.name != "" {
				list = append(list, g.document())
			}
		}
		return map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": list}
	}})
}

// serveGroup serves /apis/GROUP.
func (h *Handler) serveGroup(w *exchange.Response, r *exchange.Request, s *snapshot, name string) bool {
	for _, g := range s.groups {
		if g.name == name {
			h.serve(w, r, document{"APIGroup", "/apis/" + name, s, func() map[string]any {
				doc := g.document()
				doc["kind"], doc["apiVersion"] = "APIGroup", "v1"
				return doc
			}})
			return true
		}
	}
	return false
}

// serveVersion serves /api/VERSION and /apis/GROUP/VERSION. An unknown version of a group with
// registered kinds is a 404 with a Status. For an unknown group, or an unknown version of a group
// that only CustomResourceDefinitions have, it reports false, which is the plain 404.
func (h *Handler) serveVersion(w *exchange.Response, r *exchange.Request, s *snapshot, groupName, version string) bool {
	i := slices.IndexFunc(s.groups, func(g group) bool { return g.name == groupName })
	if i < 0 {
		return false
	}
	versions := s.groups[i].versions
	j := slices.IndexFunc(versions, func(v groupVersion) bool { return v.name == version })
	if j < 0 {
		if !s.state.Registered(groupName) {
			return false
		}
		w.Fail(meta.NoSuchResource())
		return true
	}
	gv := meta.GroupVersion{Group: groupName, Version: version}
	h.serve(w, r, document{"APIResourceList", gv.String(), s, func() map[string]any {
		var list []any
		for _, v := range versions[j].types {
			list = append(list, resourceDocuments(v)...)
		}
		doc := map[string]any{"kind": "APIResourceList", "groupVersion": gv.String(), "resources": list}
		if groupName != "" {
			doc["apiVersion"] = "v1" // documents of the core group have no version
		}
		return doc
	}})
	return true
}

// serveAggregated serves all groups in a single document, so that a client makes two requests
// instead of one for each version of each group.
func (h *Handler) serveAggregated(w *exchange.Response, r *exchange.Request, s *snapshot, m media.Type, core bool) {
	apiVersion := h.Names.Group(wellknown.GroupDiscovery) + "/" + m.ViewVersion
	d := document{"APIGroupDiscoveryList", fmt.Sprint(apiVersion, " of the core group: ", core), s, func() map[string]any {
		var items []any
		for _, g := range s.groups {
			if (g.name == "") == core {
				items = append(items, g.aggregated())
			}
		}
		return map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": apiVersion, "metadata": map[string]any{}, "items": items}
	}}
	etag := d.etag()
	w.Header().Set("ETag", etag)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "public") // clients revalidate it by its ETag
	if r.HTTP.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, m, d)
}

// servePaths serves the list of all paths at /.
func (h *Handler) servePaths(w *exchange.Response, r *exchange.Request, s *snapshot) {
	paths := []string{"/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}
	for _, g := range s.groups {
		for _, v := range g.versions {
			if g.name == "" {
				paths = append(paths, "/api/"+v.name)
				continue
			}
			paths = append(paths, "/apis/"+g.name, "/apis/"+g.name+"/"+v.name)
		}
	}
	paths = append(paths, h.Paths...)
	slices.Sort(paths)
	h.serve(w, r, document{fields: func() map[string]any {
		return map[string]any{"paths": meta.StringList(slices.Compact(paths))}
	}})
}

// Version returns the document of /version for the version of a server.
func Version(v string) map[string]any {
	major, rest, _ := strings.Cut(strings.TrimPrefix(v, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return map[string]any{
		"major": major, "minor": minor, "gitVersion": v, "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
		"goVersion": runtime.Version(), "compiler": runtime.Compiler, "platform": runtime.GOOS + "/" + runtime.GOARCH,
	}
}
