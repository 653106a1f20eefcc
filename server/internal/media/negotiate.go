// Package media negotiates the format of a response by the header Accept, and parses the header
// Content-Type of a request.
package media

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/wellknown"
)

// View is the representation of objects in a response.
type View uint8

// The views. Aggregated is the discovery document of all groups.
const (
	Full View = iota
	Table
	Partial
	PartialList
	Aggregated
)

// Type is the negotiated representation of a response.
type Type struct {
	Format      codec.Format
	View        View
	ViewVersion string // v1 or v1beta1 of a Table or Partial, v2 or v2beta1 of Aggregated; empty for Full
	Stream      bool   // the client sent ;stream=watch
	Pretty      bool   // the client sent ;pretty=1
}

// Supported lists the representations that an endpoint supports. The zero Offer has JSON and YAML of
// whole objects.
type Supported struct {
	Protobuf   bool // the kind has a protobuf encoding
	Metadata   bool // Partial and PartialList have a protobuf encoding, even if the kind has none
	NoYAML     bool
	Views      bool // Table and Partial
	NoTable    bool // Views do not include Table
	List       bool // the response is a list: PartialList instead of Partial
	Watch      bool // the response is a stream of events, which excludes YAML
	Aggregated bool // aggregated discovery
}

// Bounds of an Accept header.
const (
	maxAcceptBytes   = 8 << 10
	maxAcceptClauses = 64
)

// clause is a media range of an Accept header.
type clause struct {
	main, sub string
	quality   float64
	params    map[string]string
}

// Negotiate returns the representation for an Accept header: of the clauses that the offer
// satisfies, the clause of the highest quality, or the first of equal quality. An empty header and
// */* mean JSON. The error is a 406 *meta.Status.
func Negotiate(accept string, p names.Profile, offer Supported) (Type, error) {
	if len(accept) > maxAcceptBytes {
		return Type{}, notAcceptable(p, offer)
	}
	switch first, _, _ := strings.Cut(accept, ","); { // fast path for common clauses of quality 1
	case accept == "", first == "*/*", first == "application/json":
		return Type{}, nil
	case offer.Protobuf && first == p.ProtobufType():
		return Type{Format: codec.Protobuf}, nil
	}
	known := false // a requested format is offered, but not with the requested parameters
	for _, c := range parseAccept(accept) {
		format, ok := c.format(p, offer)
		if !ok {
			continue
		}
		m, ok := c.media(p, offer, format)
		if ok {
			return m, nil
		}
		known = true
	}
	s := notAcceptable(p, offer)
	if known {
		s.Message, s.Details = "the requested form of the answer is not available here", nil
	}
	return Type{}, s
}

// parseAccept returns the clauses in descending order of quality. Clauses of equal quality keep
// their order. Invalid clauses are skipped.
func parseAccept(accept string) []clause {
	var list []clause
	for part := range strings.SplitSeq(accept, ",") {
		if len(list) == maxAcceptClauses {
			break
		}
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		c := clause{quality: 1, params: params}
		c.main, c.sub, _ = strings.Cut(kind, "/")
		if q, ok := params["q"]; ok {
			if c.quality, err = strconv.ParseFloat(q, 64); err != nil || !(c.quality >= 0 && c.quality <= 1) {
				c.quality = 1
			}
		}
		if c.quality > 0 {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b clause) int { return cmp.Compare(b.quality, a.quality) })
	return list
}

// format returns the format of the clause and reports whether it is offered.
func (c clause) format(p names.Profile, offer Supported) (codec.Format, bool) {
	switch kind := c.main + "/" + c.sub; kind {
	case "*/*", "application/json":
		return codec.JSON, true
	case "application/yaml":
		return codec.YAML, !offer.NoYAML && !offer.Watch
	default:
		return codec.Protobuf, kind == p.ProtobufType() && (offer.Protobuf || offer.Metadata)
	}
}

// media returns the representation of the clause in a format and reports whether it is offered.
func (c clause) media(p names.Profile, offer Supported, format codec.Format) (m Type, ok bool) {
	m.Format = format
	if s, has := c.params["stream"]; has {
		if s != "watch" || format == codec.YAML {
			return m, false
		}
		m.Stream = offer.Watch
	}
	m.Pretty = c.params["pretty"] == "1"
	as, group, version := c.params["as"], c.params["g"], c.params["v"]
	if as == "" && group == "" && version == "" {
		return m, format != codec.Protobuf || offer.Protobuf
	}
	m.ViewVersion = version
	switch {
	case offer.Aggregated && as == "APIGroupDiscoveryList" && group == p.Group(wellknown.GroupDiscovery):
		m.View = Aggregated
		return m, version == "v2" || version == "v2beta1"
	case !offer.Views || group != p.Group(wellknown.GroupMeta) || version != "v1" && version != "v1beta1":
		return m, false
	case as == "Table":
		m.View = Table
		return m, m.Format != codec.Protobuf && !offer.NoTable
	case as == "PartialObjectMetadata":
		m.View = Partial
		return m, !offer.List || offer.Watch
	case as == "PartialObjectMetadataList":
		m.View = PartialList
		return m, offer.List && !offer.Watch
	}
	return m, false
}

// notAcceptable returns the 406 that lists the offered formats.
func notAcceptable(p names.Profile, offer Supported) *meta.Status {
	have := []string{"application/json"}
	if !offer.NoYAML && !offer.Watch {
		have = append(have, "application/yaml")
	}
	if offer.Protobuf || offer.Metadata {
		have = append(have, p.ProtobufType())
	}
	s := meta.Failure(http.StatusNotAcceptable, meta.ReasonNotAcceptable,
		"only the following media types are accepted: %s", strings.Join(have, ", "))
	s.Details = &meta.StatusDetails{}
	return s
}

// ContentType returns the Content-Type of a response. watch is set for a stream of events.
func (m Type) ContentType(p names.Profile, watch bool) string {
	var s string
	switch m.Format {
	case codec.YAML:
		s = "application/yaml"
	case codec.Protobuf:
		if s = p.ProtobufType(); watch {
			s += ";stream=watch"
		}
	default:
		s = "application/json"
	}
	if m.View == Aggregated {
		s += ";g=" + p.Group(wellknown.GroupDiscovery) + ";v=" + m.ViewVersion + ";as=APIGroupDiscoveryList"
	}
	return s
}

// ContentType parses the Content-Type of a request body. An empty header means JSON; protobuf is
// set if the kind has a protobuf encoding. The error is a 415 *meta.Status.
func ContentType(header string, p names.Profile, protobuf bool) (codec.Format, error) {
	switch header {
	case "", "application/json":
		return codec.JSON, nil
	}
	kind, ok := mediaType(header)
	switch {
	case ok && kind == "application/json":
		return codec.JSON, nil
	case ok && kind == "application/yaml":
		return codec.YAML, nil
	case ok && protobuf && kind == p.ProtobufType():
		return codec.Protobuf, nil
	}
	have := []string{"application/json", "application/yaml"}
	if protobuf {
		have = append(have, p.ProtobufType())
	}
	return 0, unsupported(have)
}

// PatchType is the format of a patch.
type PatchType uint8

// The patch types.
const (
	JSONPatch PatchType = iota + 1
	MergePatch
	StrategicPatch
	ApplyPatch // the body is YAML, which includes JSON
)

var patchTypes = [...]string{"application/json-patch+json", "application/merge-patch+json",
	"application/strategic-merge-patch+json", "application/apply-patch+yaml"}

// String returns the media type.
func (t PatchType) String() string {
	if t < JSONPatch || t > ApplyPatch {
		return ""
	}
	return patchTypes[t-1]
}

// PatchContentType parses the Content-Type of a patch. Parameters are ignored; letter case is
// significant. strategic is set if the kind supports strategic merge patches. The error is a 415
// *meta.Status that lists the supported types.
func PatchContentType(header string, strategic bool) (PatchType, error) {
	kind, _, _ := strings.Cut(header, ";")
	kind = strings.TrimSpace(kind)
	var have []string
	for t := JSONPatch; t <= ApplyPatch; t++ {
		if t == StrategicPatch && !strategic {
			continue
		}
		if kind == t.String() {
			return t, nil
		}
		have = append(have, t.String())
	}
	st := unsupported(have)
	if strategic {
		st.Details = &meta.StatusDetails{}
	}
	return 0, st
}

func mediaType(header string) (string, bool) {
	if len(header) > maxAcceptBytes {
		return "", false
	}
	kind, _, err := mime.ParseMediaType(header)
	return kind, err == nil
}

// unsupported returns the 415 that lists the supported types.
func unsupported(have []string) *meta.Status {
	return meta.Failure(http.StatusUnsupportedMediaType, meta.ReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: %s", strings.Join(have, ", "))
}
