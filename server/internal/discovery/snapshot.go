package discovery

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

// snapshot has the groups of a state of the served types, with their documents. Documents are
// encoded at the first request and cached.
type snapshot struct {
	state  *resource.State
	table  *aggregator.Table // nil if the kind APIService is not registered
	groups []group
	forms  sync.Map // from documentForm to encoded []byte
	etags  sync.Map // from the name of a document to its ETag
}

type documentForm struct {
	name   string
	format codec.Format
}

// snapshot returns the snapshot of the types that are served now.
func (h *Handler) snapshot() *snapshot {
	state, table := h.Types(), h.Aggregator.Table()
	if s := h.current.Load(); s != nil && s.state == state && s.table == table {
		return s
	}
	s := &snapshot{state: state, table: table, groups: groupsOf(state.Types())}
	if table != nil {
		s.groups = withRemote(s.groups, table)
	}
	h.current.Store(s)
	return s
}

// document is a discovery document.
type document struct {
	kind   string    // kind for protobuf; empty if it has no protobuf encoding
	name   string    // unique in its snapshot
	of     *snapshot // caches the encoded document; nil if the document depends on more than the types
	fields func() map[string]any
}

// bytes returns the document in a format.
func (d document) bytes(format codec.Format) ([]byte, error) {
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

func (d document) encode(format codec.Format) ([]byte, error) {
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

// etag returns the ETag of a document with a snapshot. It is the same for every format.
func (d document) etag() string {
	if kept, ok := d.of.etags.Load(d.name); ok {
		return kept.(string)
	}
	sum := sha256.Sum256(codec.EncodeJSON(nil, d.fields()))
	tag := strconv.Quote(strings.ToUpper(base64.RawURLEncoding.EncodeToString(sum[:])))
	d.of.etags.Store(d.name, tag)
	return tag
}
