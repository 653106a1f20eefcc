package server

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
)

// connect answers GET and POST on a sub-resource that connects. What is asked for
// stands in the query; a body is not looked at.
func (s *Server) connect(ctx context.Context, w *response, r *request) error {
	options, err := connectOptions(r.query, r.sub.Body)
	if err != nil {
		return err
	}
	answer, err := s.call(ctx, r, &writeOptions{}, options)
	if err != nil {
		return err
	}
	return s.respondObject(w, r, http.StatusOK, answer)
}

// connectOptions makes the options of a connection of its query: of every field of
// their kind that is a single value or a list of texts, the parameters of its name.
func connectOptions(q url.Values, v *resource.Version) (*meta.Object, error) {
	options := meta.NewObject(map[string]any{})
	options.SetGVK(v.GVK())
	for _, f := range v.Schema.Struct.Fields {
		texts := q[f.Name]
		if len(texts) == 0 || f.Name == "apiVersion" || f.Name == "kind" {
			continue
		}
		switch f.Schema.Type {
		case schema.String:
			options.Set(texts[0], f.Name)
		case schema.Boolean:
			options.Set(texts[0] != "0" && !strings.EqualFold(texts[0], "false"), f.Name)
		case schema.Integer:
			n, err := strconv.ParseInt(texts[0], 10, 64)
			if err != nil {
				return nil, meta.BadRequest("%s: %q is not an integer", f.Name, texts[0])
			}
			options.Set(n, f.Name)
		case schema.Array:
			list := make([]any, len(texts))
			for i, text := range texts {
				list[i] = text
			}
			options.Set(list, f.Name)
		}
	}
	if _, faults := v.Conform(options); len(faults) > 0 {
		return nil, v.DecodeError(faults)
	}
	return options, nil
}
