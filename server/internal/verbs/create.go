package verbs

import (
	"context"
	"net/http"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
)

// create serves POST on a collection, on a virtual kind, or on an acting subresource.
func (h *Handler) create(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	if r.Sub != nil || r.Version.Virtual {
		return h.act(ctx, w, r)
	}
	o, err := parseWriteOptions(r.Query, h.o.Names, "CreateOptions")
	if err != nil {
		return err
	}
	obj, err := h.readObject(ctx, r, o.validation)
	if err != nil {
		return err
	}
	if err := setNamespace(r, obj); err != nil {
		return err
	}
	res, err := h.o.Objects.Create(ctx, h.newWrite(r, o, "CreateOptions"), obj)
	if err != nil {
		return err
	}
	return h.o.Encoder.SendEntry(ctx, w, r, code(res), res.Entry)
}

// newWrite returns a write with the fields that all writes of a request share.
func (h *Handler) newWrite(r *exchange.Request, o *writeOptions, optionsKind string) *objects.Write {
	return &objects.Write{
		Caller: h.caller(r), Version: r.Version, Key: r.Key(), Sub: r.Sub, DryRun: o.dryRun,
		Options: o.object(h.o.Names, optionsKind), Own: objects.Owner(r.Version, r.Sub, o.managerFor(r.HTTP)),
	}
}

// caller returns the caller of a request for the store.
func (h *Handler) caller(r *exchange.Request) objects.Caller {
	return objects.Caller{User: r.User, Notes: &r.Notes, Allow: func(ctx context.Context, verb string) error { return h.o.Allow(ctx, r, verb) }}
}

// setNamespace sets the namespace of the body to the namespace of the path. It returns an error if the body has a
// different namespace.
func setNamespace(r *exchange.Request, obj *meta.Object) error {
	if ns := obj.Namespace(); ns != "" && ns != r.Namespace && r.Version.Namespaced {
		return meta.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	obj.SetNamespace(r.Namespace)
	return nil
}

// act serves POST on a virtual kind or on an acting subresource.
func (h *Handler) act(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	o, err := parseWriteOptions(r.Query, h.o.Names, "CreateOptions")
	if err != nil {
		return err
	}
	obj, err := h.readObject(ctx, r, o.validation)
	if err != nil {
		return err
	}
	if r.Sub == nil {
		if err := setNamespace(r, obj); err != nil {
			return err
		}
		for _, f := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
			obj.Delete("metadata", f)
		}
	}
	answer, err := h.call(ctx, r, o, obj)
	if err != nil {
		return err
	}
	if answer == nil {
		w.SendSuccess(http.StatusCreated, &meta.Status{Status: "Success", Code: http.StatusCreated})
		return nil
	}
	return h.o.Encoder.SendObject(w, r, http.StatusCreated, answer)
}

// call admits the object of the body and calls the function of its kind with the object in the hub version. Admission
// sees the object in the hub version, too, or, if it belongs to a subresource, in the version in discovery.
func (h *Handler) call(ctx context.Context, r *exchange.Request, o *writeOptions, obj *meta.Object) (answer *meta.Object, err error) {
	act, body, seen := r.Version.Act, r.Version, r.Version.Hub
	if r.Sub != nil {
		act, body, seen = r.Sub.Act, r.Sub.Body, r.Sub.Body
	}
	converts := body != nil && body.Converts()
	if converts {
		if obj, err = seen.ConvertIfNeeded(ctx, obj); err != nil {
			return nil, body.CannotHandle(err.Error())
		}
	}
	if err := h.o.Objects.Admit(ctx, h.newWrite(r, o, "CreateOptions"), obj); err != nil {
		return nil, err
	}
	if converts {
		if obj, err = body.Hub.ConvertIfNeeded(ctx, obj); err != nil {
			return nil, body.CannotHandle(err.Error())
		}
	}
	if answer, err = act(ctx, h.newCall(r, o, obj)); err != nil || !converts || answer == nil {
		return answer, err
	}
	return body.Convert(ctx, answer)
}

// admitConnect admits the options of a connection, and returns the call for the function of the
// subresource that finds the target.
func (h *Handler) admitConnect(ctx context.Context, r *exchange.Request, options *meta.Object) (*registry.Call, error) {
	o := &writeOptions{}
	if err := h.o.Objects.Admit(ctx, h.newWrite(r, o, ""), options); err != nil {
		return nil, err
	}
	return h.newCall(r, o, options), nil
}

// newCall returns the argument of the function of a kind.
func (h *Handler) newCall(r *exchange.Request, o *writeOptions, obj *meta.Object) *registry.Call {
	return &registry.Call{
		Resource: r.Version.Resource(), Subresource: r.Subresource, Key: r.Key(), User: r.User,
		Object: obj, DryRun: o.dryRun, Names: h.o.Names, Warn: r.Notes.Warn,
		Manager: o.managerFor(r.HTTP), Client: objects.ActClient{Client: h.o.Client},
	}
}
