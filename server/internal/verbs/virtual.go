package verbs

import (
	"context"
	"net/http"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
)

// readVirtual serves a get or a list of a virtual kind. Its objects are made for each read.
func (h *Handler) readVirtual(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	list, err := h.listOptions(r, false)
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
	var found []*objectcache.Entry
	for _, obj := range all {
		obj.SetGVK(r.Version.GVK())
		if r.Name != "" && r.Name == obj.Name() {
			return h.o.Encoder.SendObject(w, r, http.StatusOK, obj)
		}
		if selected(obj, &list.Selection) {
			found = append(found, objectcache.NewEntry(meta.Key{Namespace: obj.Namespace(), Name: obj.Name()}, 0, codec.EncodeJSON(nil, obj.Tree())))
		}
	}
	if r.Name != "" {
		return meta.NotFound(r.Version.GroupResource(), r.Name)
	}
	return h.o.Encoder.SendList(ctx, w, r, &objects.Page{Page: objectcache.Page{Entries: found}, Remaining: -1})
}

// selected reports whether a selection selects an object.
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
