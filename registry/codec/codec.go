// Package codec is internal/codec under the name that it had.
package codec

import (
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry/schema"
)

// Proto is the protobuf form of one kind.
type Proto = codec.Proto

// NewProto compiles the protobuf form of objects with the schema s.
func NewProto(s *schema.Schema) (*Proto, error) { return codec.NewProto(s) }

// EncodeValue appends any value of a tree as canonical JSON.
func EncodeValue(dst []byte, v any) []byte { return codec.EncodeValue(dst, v) }
