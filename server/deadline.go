package server

import (
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/exchange"
)

// limitTime sets how long the request may take: what the caller gives it with
// the parameter timeout, at most the server's limit. It holds for all paths, and
// not for what lasts as long as the caller wants.
func (s *Server) limitTime(r *exchange.Request) error {
	r.Limit = s.limits.RequestTime
	text := r.Query.Get("timeout")
	if text == "" || r.LongRunning {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return meta.BadRequest("invalid timeout specified in the request URL - %v", err)
	}
	if d > 0 {
		r.Limit = min(d, r.Limit)
	}
	return nil
}
