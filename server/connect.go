package server

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/exchange"
)

// Connector is the way of a server to what sub-resources such as log, exec and proxy
// connect to: agents of nodes, pods.
type Connector interface {
	// Connect returns where requests to a target go, a scheme and a host, and what
	// carries them, upgrades included: the body of an answer with code 101 is an
	// io.ReadWriteCloser. Credentials are its own; those of callers are not handed on.
	// A *meta.Status is the answer as it is, also as an error of the carrier.
	Connect(ctx context.Context, to *registry.Target) (*url.URL, http.RoundTripper, error)
}

// connect answers a request to a sub-resource that connects. What is asked for stands
// in the query; a body is not looked at.
func (s *Server) connect(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	if err := r.Usage.AcquireSeat(ctx); err != nil {
		return err
	}
	to, err := s.target(ctx, r)
	if err != nil {
		return err
	}
	if to == nil {
		r.Notes.WriteHeader(w.Header())
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if r.Proxied() && r.Rest == "" && !r.Upgrades() && (r.HTTP.Method == http.MethodGet || r.HTTP.Method == http.MethodHead) {
		redirect(w, r)
		return nil
	}
	if s.connector == nil {
		return meta.Failure(http.StatusServiceUnavailable, meta.ReasonServiceUnavailable, "this server connects to no nodes and pods: it was not told how")
	}
	base, carrier, err := s.connector.Connect(ctx, to)
	if err != nil {
		return err
	}
	where := to.URL
	where.Scheme, where.Host = base.Scheme, base.Host
	c := &connection{server: s, out: w, request: r, head: w.Header().Clone(), to: &where, carrier: carrier}
	if r.Sub.Connect.Style == registry.Streams && !r.Upgrades() {
		return meta.BadRequest("Upgrade request required")
	}
	if r.Upgrades() && !w.CanHijack() {
		return meta.BadRequest("this connection cannot be upgraded")
	}
	if r.Upgrades() && r.HTTP.ContentLength != 0 {
		return meta.BadRequest("an upgrade request has no body")
	}
	c.run(r.HTTP.Context())
	return nil
}

// target finds what the request leads to, if the caller may go there.
func (s *Server) target(ctx context.Context, r *exchange.Request) (*registry.Target, error) {
	style := r.Sub.Connect.Style
	if style == registry.Streams && r.Verb != "create" {
		if err := s.allow(ctx, r, "create"); err != nil { // scripts in a browser can open a WebSocket by GET only
			return nil, err
		}
	}
	query := r.Query
	if style == registry.Proxies {
		query = url.Values{"path": {cleanPath(r.Rest)}}
	}
	options, err := connectOptions(query, r.Sub.Body)
	if err != nil {
		return nil, err
	}
	o := &writeOptions{}
	if err := s.objects.Admit(ctx, s.newWrite(r, o, ""), options); err != nil {
		return nil, err
	}
	return r.Sub.Connect.Target(ctx, s.newCall(r, o, options))
}

// cleanPath is a path without what leads up. It begins with a slash, and ends in one
// if the path does.
func cleanPath(p string) string {
	clean := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// redirect leads to the same path with a slash, below which links of a page that has
// no slash before them are right.
func redirect(w *exchange.Response, r *exchange.Request) {
	to := url.URL{Path: r.Path + "/", RawQuery: r.HTTP.URL.RawQuery}
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusMovedPermanently)
}

// proxyMethods are those that go on to what is proxied.
var proxyMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// connectOptions makes the options of a connection of its query: of every field of
// their kind that is a single value or a list of them, the parameters of its name.
func connectOptions(q url.Values, v *resource.Version) (*meta.Object, error) {
	options := meta.NewObject(map[string]any{})
	options.SetGVK(v.GVK())
	for _, f := range v.Schema().Struct.Fields {
		texts := q[f.Name]
		if len(texts) == 0 || f.Name == "apiVersion" || f.Name == "kind" {
			continue
		}
		value, err := optionValue(texts, f.Schema)
		if err != nil {
			return nil, meta.BadRequest("%v", err)
		}
		if value != nil {
			options.Set(value, f.Name)
		}
	}
	if _, faults := v.Conform(options); len(faults) > 0 {
		return nil, v.DecodeError(faults)
	}
	return options, nil
}

// optionValue is the value of a field that the parameters of its name give; nil: none.
func optionValue(texts []string, s *schema.Schema) (any, error) {
	switch s.Type {
	case schema.String:
		return texts[0], nil
	case schema.Boolean:
		return texts[0] != "0" && !strings.EqualFold(texts[0], "false"), nil
	case schema.Integer:
		return strconv.ParseInt(texts[0], 10, 64)
	case schema.Array:
		if s.Items.Type == schema.Integer { // commas separate them, too
			texts = strings.Split(strings.Join(texts, ","), ",")
		}
		list := make([]any, 0, len(texts))
		for text := range slices.Values(texts) {
			value, err := optionValue([]string{text}, s.Items)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	return nil, nil
}
