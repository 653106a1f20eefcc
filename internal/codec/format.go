package codec

import (
	"fmt"

	"orch.io/controlplane/api/meta"
)

// Format is an encoding of objects.
type Format uint8

// The formats.
const (
	JSON Format = iota
	YAML
	Protobuf
)

// EncodeStatus appends a Status in the given format: protobuf in its envelope, JSON as one line
// without a line break.
func EncodeStatus(dst []byte, s *meta.Status, f Format) ([]byte, error) {
	tree := s.Object().Tree()
	switch f {
	case Protobuf:
		return Envelope(dst, "v1", "Status", Metas().Status.Append(nil, tree)), nil
	case YAML:
		y, err := EncodeYAML(EncodeJSON(nil, tree))
		if err != nil {
			return nil, fmt.Errorf("codec: a status: %w", err)
		}
		return append(dst, y...), nil
	}
	return EncodeJSON(dst, tree), nil
}
