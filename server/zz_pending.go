package server

import (
	"errors"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/codec"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/watch"
)

var errPending = errors.New("pending")

func pendFrameProtobuf(kind string, b []byte) []byte { return b }
func pendEncodeStatus(*meta.Status) ([]byte, error)  { return nil, errPending }
func (s *Server) decodeOptions(b []byte, l codec.Limits) (map[string]any, error) {
	return nil, errPending
}
func (s *Server) protobufList(e []*watch.Entry, v *registry.Version, m codec.Media, lm codec.ListMeta) ([]byte, error) {
	return nil, errPending
}

type openapiCache struct{}

func (s *Server) serveOpenAPI(w *response, r *request, path string) bool { return false }

type Auditor interface{}
