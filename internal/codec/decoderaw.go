package codec

import (
	"unicode/utf8"

	"orch.io/controlplane/api/meta"
)

// member decodes the value of a key. A field set in metadata.managedFields becomes
// meta.RawJSON.
func (p *parser) member(key string, depth int) (any, error) {
	if key != "fieldsV1" || len(p.path) != 4 || p.path[1].key != "managedFields" || p.path[0].key != "metadata" || p.peek() != '{' {
		return p.value(depth)
	}
	start := p.pos
	p.space = false
	if !p.skipValue(p.limits.Depth-depth) || !utf8.Valid(p.data[start:p.pos]) {
		p.pos = start // decode it to report the error or to replace invalid UTF-8
		return p.value(depth)
	}
	if text := p.data[start:p.pos]; p.space {
		raw, _ := meta.CompactJSON(text)
		return raw, nil
	}
	return meta.RawJSON(p.text[start:p.pos]), nil
}

// decodeFields decodes a field set outside of an object.
func decodeFields(data []byte, l Limits) (any, error) {
	s := scanner{data: data}
	if s.onlyObject(l.withDefaults().Depth) && utf8.Valid(data) {
		if s.space {
			raw, _ := meta.CompactJSON(data)
			return raw, nil
		}
		return meta.RawJSON(data), nil
	}
	v, _, err := DecodeValue(data, l)
	return v, err
}
