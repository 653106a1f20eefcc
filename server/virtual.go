package server

import (
	"context"
	"net/http"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/watch"
)

// readVirtual answers a get or a list of objects that are made when they are asked for.
func (s *Server) readVirtual(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	list, err := s.listOptions(r, false)
	if err != nil {
		return err
	}
	if err := r.Usage.AcquireSeat(ctx); err != nil {
		return err
	}
	all, err := r.Version.Read(ctx)
	if err != nil {
		return err
	}
	var found []*watch.Entry
	for _, obj := range all {
		obj.SetGVK(r.Version.GVK())
		if r.Name != "" && r.Name == obj.Name() {
			return s.respondObject(w, r, http.StatusOK, obj)
		}
		if selected(obj, &list.Selection) {
			found = append(found, watch.NewEntry(meta.Key{Namespace: obj.Namespace(), Name: obj.Name()}, 0, codec.EncodeJSON(nil, obj.Tree())))
		}
	}
	if r.Name != "" {
		return meta.NotFound(r.Version.GroupResource(), r.Name)
	}
	return s.respondList(ctx, w, r, &objects.Page{Page: watch.Page{Entries: found}, Remaining: -1})
}

// selected reports whether an object is among those that are asked for.
func selected(obj *meta.Object, sel *objects.Selection) bool {
	label := func(key string) (string, bool) {
		v, ok := obj.Labels()[key]
		return v, ok
	}
	field := func(name string) string {
		if name == "metadata.name" {
			return obj.Name()
		}
		return obj.Namespace()
	}
	return (sel.Namespace == "" || sel.Namespace == obj.Namespace()) && sel.Labels.Matches(label) && sel.Fields.Matches(field)
}

// components tells of the parts that the server stands on and that the program named, as
// objects of the kind ComponentStatus.
func (s *Server) components(ctx context.Context) ([]*meta.Object, error) {
	parts := slices.DeleteFunc(s.checksOf("readyz"), func(c check) bool { return !c.part })
	list := make([]*meta.Object, len(parts))
	for i, c := range parts {
		healthy := map[string]any{"type": "Healthy", "status": "True", "message": "ok"}
		if err := c.run(ctx); err != nil {
			healthy["status"], healthy["message"] = "False", err.Error()
		}
		list[i] = meta.NewObject(map[string]any{"metadata": map[string]any{"name": c.name}, "conditions": []any{healthy}})
	}
	return list, nil
}
