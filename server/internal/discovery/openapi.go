package discovery

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/openapi"
)

// serveOpenAPI serves /openapi/v2, /openapi/v3 and the paths below.
func (h *Handler) serveOpenAPI(w *exchange.Response, r *exchange.Request, path string) bool {
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
	state, info := h.Types(), h.openapiInfo()
	switch rest {
	case "v2":
		sendOpenAPI(w, r, h.openapi.V2(state, info), "2", false)
	case "v3":
		sendOpenAPI(w, r, h.openapi.Index(state, info), "", false)
	default:
		gv, ok := openapiGroup(strings.TrimPrefix(rest, "v3/"))
		if !ok {
			return false
		}
		d := h.openapi.V3(state, gv, info)
		if d == nil {
			return false
		}
		sendOpenAPI(w, r, d, "3", true)
	}
	return true
}

func (h *Handler) openapiInfo() openapi.Info {
	return openapi.Info{Title: h.Names.ProductName(), Version: h.Version, Names: h.Names, Others: h.otherDocuments()}
}

// otherDocuments returns the OpenAPI documents of other servers. It returns the same pointer while
// they are equal, so that cached merged documents stay valid.
func (h *Handler) otherDocuments() *openapi.Others {
	if h.Aggregator == nil {
		return nil
	}
	now := h.Aggregator.Table().Others()
	for {
		old := h.foreign.Load()
		if old != nil && old.Equal(now) {
			return old
		}
		if h.foreign.CompareAndSwap(old, now) {
			return now
		}
	}
}

// openapiGroup returns the group and version of a path below /openapi/v3: api/VERSION or apis/GROUP/VERSION.
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

// sendOpenAPI sends a document. version is the version of its protobuf media type, or empty if
// there is none. If hashed is set, the query may have the hash of the document: a document with
// that hash may be cached forever, and a request with another hash is redirected to the current
// hash.
func sendOpenAPI(w *exchange.Response, r *exchange.Request, d *openapi.Document, version string, hashed bool) {
	kind, ok := acceptDocument(r.HTTP.Header.Get("Accept"), version)
	if !ok {
		w.Fail(meta.Failure(http.StatusNotAcceptable, meta.ReasonNotAcceptable, "the document is not available in this form"))
		return
	}
	head := w.Header()
	head.Set("Vary", "Accept")
	if hash := r.Query.Get("hash"); hashed && hash != "" {
		if hash != d.Hash() {
			head.Set("Location", "?hash="+d.Hash()) // relative because the server may be mounted below a prefix
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		head.Set("Cache-Control", "public, immutable")
		head.Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	etag := strconv.Quote(d.Hash())
	body := d.JSON
	if kind != jsonType {
		etag, body = strconv.Quote(d.Hash()+"-pb"), d.Protobuf
	}
	head.Set("ETag", etag)
	zipped := w.Compresses(d.JSON().Size())
	if matchesETag(r.HTTP.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	text := body()
	head.Set("Content-Type", kind)
	length, write := text.Size(), text.WriteTo
	if zipped {
		head.Set("Content-Encoding", "gzip")
		head.Set("ETag", "W/"+etag) // a weak ETag: the same document in other bytes
		length, write = len(text.Gzip()), bytes.NewReader(text.Gzip()).WriteTo
	}
	head.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(http.StatusOK)
	if r.HTTP.Method != http.MethodHead {
		_, _ = write(w) // the client may have gone away
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

// acceptDocument returns the media type of a document for an Accept header. It parses the header
// itself, because parsers of media types do not accept the names of the protobuf media types.
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
	now, before := wellknown.OpenAPIProtobuf(version)
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
