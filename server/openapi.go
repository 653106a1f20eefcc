package server

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/openapi"
)

// serveOpenAPI answers /openapi/v2, /openapi/v3 and below.
func (s *Server) serveOpenAPI(w *exchange.Response, r *exchange.Request, path string) bool {
	rest, ok := strings.CutPrefix(path, "/openapi/")
	if !ok {
		return false
	}
	if rest != "v2" && rest != "v3" && !strings.HasPrefix(rest, "v3/") {
		return false
	}
	if r.HTTP.Method != http.MethodGet && r.HTTP.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.Fail(exchange.MethodNotAllowed())
		return true
	}
	state, info := s.types(), s.openapiInfo()
	switch rest {
	case "v2":
		s.sendDocument(w, r, s.openapi.V2(state, info), "2", false)
	case "v3":
		s.sendDocument(w, r, s.openapi.Index(state, info), "", false)
	default:
		gv, ok := openapiGroup(strings.TrimPrefix(rest, "v3/"))
		if !ok {
			return false
		}
		d := s.openapi.V3(state, gv, info)
		if d == nil {
			return false
		}
		s.sendDocument(w, r, d, "3", true)
	}
	return true
}

func (s *Server) openapiInfo() openapi.Info {
	return openapi.Info{Title: s.names.ProductName(), Version: s.version, Names: s.names, Others: s.others()}
}

// openapiGroup reads the rest of a path: api/VERSION or apis/GROUP/VERSION.
func openapiGroup(path string) (meta.GroupVersion, bool) {
	parts := strings.Split(path, "/")
	switch {
	case len(parts) == 2 && parts[0] == "api":
		return meta.GroupVersion{Version: parts[1]}, true
	case len(parts) == 3 && parts[0] == "apis" && parts[1] != "":
		return meta.GroupVersion{Group: parts[1], Version: parts[2]}, true
	}
	return meta.GroupVersion{}, false
}

// sendDocument answers with a document; version is that of its protobuf form,
// empty for none. If hashed, a hash in the query says which
// document is wanted: the right one may be kept for ever, another is elsewhere.
func (s *Server) sendDocument(w *exchange.Response, r *exchange.Request, d *openapi.Document, version string, hashed bool) {
	kind, ok := acceptDocument(r.HTTP.Header.Get("Accept"), version)
	if !ok {
		w.Fail(meta.Failure(http.StatusNotAcceptable, meta.ReasonNotAcceptable, "the document is not available in this form"))
		return
	}
	h := w.Header()
	h.Set("Vary", "Accept")
	if hash := r.Query.Get("hash"); hashed && hash != "" {
		if hash != d.Hash() {
			h.Set("Location", "?hash="+d.Hash()) // relative: the server may be mounted below a prefix
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		h.Set("Cache-Control", "public, immutable")
		h.Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	etag := strconv.Quote(d.Hash())
	body := d.JSON
	if kind != jsonType {
		etag, body = strconv.Quote(d.Hash()+"-pb"), d.Protobuf
	}
	h.Set("ETag", etag)
	zipped := w.Compresses(d.JSON().Size())
	if matchesETag(r.HTTP.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	text := body()
	h.Set("Content-Type", kind)
	length, write := text.Size(), text.WriteTo
	if zipped {
		h.Set("Content-Encoding", "gzip")
		h.Set("ETag", "W/"+etag) // the same document in other bytes
		length, write = len(text.Gzip()), bytes.NewReader(text.Gzip()).WriteTo
	}
	h.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(http.StatusOK)
	if r.HTTP.Method != http.MethodHead {
		_, _ = write(w) // a caller who went away needs no answer
	}
}

// matchesETag reports whether an If-None-Match header names the tag.
func matchesETag(header, etag string) bool {
	if header == "*" {
		return true
	}
	for part := range strings.SplitSeq(header, ",") {
		if strings.TrimPrefix(strings.TrimSpace(part), "W/") == etag {
			return true
		}
	}
	return false
}

// acceptDocument chooses the media type of a document from an Accept header. The
// protobuf forms have names that no parser of media types takes, so that the
// header is read here.
func acceptDocument(header, version string) (kind string, ok bool) {
	type clause struct {
		kind    string
		quality float64
	}
	if header == "" {
		return jsonType, true
	}
	var clauses []clause
	for part := range strings.SplitSeq(header, ",") {
		if len(clauses) == maxClauses {
			break
		}
		kind, params, _ := strings.Cut(part, ";")
		c := clause{strings.ToLower(strings.TrimSpace(kind)), 1}
		for p := range strings.SplitSeq(params, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
			if q, err := strconv.ParseFloat(value, 64); name == "q" && err == nil && q >= 0 && q <= 1 {
				c.quality = q
			}
		}
		if c.quality > 0 {
			clauses = append(clauses, c)
		}
	}
	slices.SortStableFunc(clauses, func(a, b clause) int { return cmp.Compare(b.quality, a.quality) })
	now, before := names.OpenAPIProtobuf(version)
	for _, c := range clauses {
		switch c.kind {
		case jsonType, "application/*", "*/*":
			return jsonType, true
		case now, before:
			if version != "" {
				return now, true
			}
		}
	}
	return "", false
}

const (
	jsonType   = "application/json"
	maxClauses = 64
)
