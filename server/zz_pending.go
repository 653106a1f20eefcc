package server

type openapiCache struct{}

func (s *Server) serveOpenAPI(w *response, r *request, path string) bool { return false }
