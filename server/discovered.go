package server

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"sync"

	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
)

// discovered is what discovery says of one state of the catalog. The bytes of its
// documents are made when they are first asked for, and kept.
type discovered struct {
	state  *resource.State
	table  *aggregator.Table // nil: there are no APIServices
	groups []group
	forms  sync.Map // documentForm to []byte
	etags  sync.Map // the name of a document to its tag
}

type documentForm struct {
	name   string
	format codec.Format
}

// discovered returns what discovery says of the types that are served now.
func (s *Server) discovered() *discovered {
	state := s.catalog.Types()
	var table *aggregator.Table
	if s.aggregation != nil {
		table = s.aggregation.Table()
	}
	if d := s.discovery.Load(); d != nil && d.state == state && d.table == table {
		return d
	}
	d := &discovered{state: state, table: table, groups: groupsOf(state.Types())}
	if table != nil {
		d.groups = withRemote(d.groups, table)
	}
	s.discovery.Store(d)
	return d
}

// discoveryDocument is one document of discovery.
type discoveryDocument struct {
	kind   string      // empty: it has no protobuf form
	name   string      // tells it apart from the others of the same state
	of     *discovered // keeps its bytes; nil: they depend on more than the types
	fields func() map[string]any
}

// bytes returns the document in a format.
func (d discoveryDocument) bytes(format codec.Format) ([]byte, error) {
	if d.of == nil {
		return d.encode(format)
	}
	form := documentForm{d.name, format}
	if kept, ok := d.of.forms.Load(form); ok {
		return kept.([]byte), nil
	}
	body, err := d.encode(format)
	if err == nil {
		d.of.forms.Store(form, body)
	}
	return body, err
}

func (d discoveryDocument) encode(format codec.Format) ([]byte, error) {
	doc := d.fields()
	switch format {
	case codec.Protobuf:
		version, _ := doc["apiVersion"].(string)
		return codec.Envelope(nil, version, d.kind, codec.DiscoveryProto(d.kind).Append(nil, doc)), nil
	case codec.YAML:
		return codec.EncodeYAML(codec.EncodeJSON(nil, doc))
	}
	return append(codec.EncodeJSON(nil, doc), '\n'), nil
}

// etag is the tag of a document whose bytes are kept, the same in every format.
func (d discoveryDocument) etag() string {
	if kept, ok := d.of.etags.Load(d.name); ok {
		return kept.(string)
	}
	sum := sha256.Sum256(codec.EncodeJSON(nil, d.fields()))
	tag := strconv.Quote(strings.ToUpper(base64.RawURLEncoding.EncodeToString(sum[:])))
	d.of.etags.Store(d.name, tag)
	return tag
}
