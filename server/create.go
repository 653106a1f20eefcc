package server

import (
	"context"
	"net/http"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
)

// create answers POST on a collection, on a virtual type, or on a sub-resource
// that acts.
func (s *Server) create(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	if r.Sub != nil || r.Version.Virtual {
		return s.act(ctx, w, r)
	}
	o, err := parseWriteOptions(r.Query, s.names, "CreateOptions")
	if err != nil {
		return err
	}
	obj, err := s.readObject(ctx, r, o.validation)
	if err != nil {
		return err
	}
	if err := placeInNamespace(r, obj); err != nil {
		return err
	}
	res, err := s.objects.Create(ctx, s.newWrite(r, o, "CreateOptions"), obj)
	if err != nil {
		return err
	}
	return s.respondEntry(ctx, w, r, code(res), res.Entry)
}

// newWrite fills in what every write of a request has.
func (s *Server) newWrite(r *exchange.Request, o *writeOptions, optionsKind string) *objects.Write {
	return &objects.Write{
		Caller: s.caller(r), Version: r.Version, Key: r.Key(), Sub: r.Sub, DryRun: o.dryRun,
		Options: o.object(s.names, optionsKind), Own: objects.Owner(r.Version, r.Sub, o.managerFor(r.HTTP)),
	}
}

// caller is who sent a request, as the store of the objects sees it.
func (s *Server) caller(r *exchange.Request) objects.Caller {
	return objects.Caller{User: r.User, Notes: &r.Notes, Allow: func(ctx context.Context, verb string) error { return s.allow(ctx, r, verb) }}
}

// placeInNamespace checks that the body's namespace is the path's, and fills it
// in; a kind of cluster scope has none.
func placeInNamespace(r *exchange.Request, obj *meta.Object) error {
	if ns := obj.Namespace(); ns != "" && ns != r.Namespace && r.Version.Namespaced {
		return meta.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	obj.SetNamespace(r.Namespace)
	return nil
}

// act answers a POST to a virtual type or to a sub-resource that acts.
func (s *Server) act(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	o, err := parseWriteOptions(r.Query, s.names, "CreateOptions")
	if err != nil {
		return err
	}
	obj, err := s.readObject(ctx, r, o.validation)
	if err != nil {
		return err
	}
	if r.Sub == nil {
		if err := placeInNamespace(r, obj); err != nil {
			return err
		}
		for _, f := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
			obj.Delete("metadata", f)
		}
	}
	answer, err := s.call(ctx, r, o, obj)
	if err != nil {
		return err
	}
	if answer == nil {
		m := r.Media
		m.View = media.Full
		w.SendStatus(m, http.StatusCreated, &meta.Status{Status: "Success", Code: http.StatusCreated})
		return nil
	}
	return s.respondObject(w, r, http.StatusCreated, answer)
}

// call asks admission about a body, and calls the kind with it, in the form of its hub.
// Admission sees that of a sub-resource as discovery tells of it, any other in the hub's.
func (s *Server) call(ctx context.Context, r *exchange.Request, o *writeOptions, obj *meta.Object) (answer *meta.Object, err error) {
	act, body, seen := r.Version.Act, r.Version, r.Version.Hub
	if r.Sub != nil {
		act, body, seen = r.Sub.Act, r.Sub.Body, r.Sub.Body
	}
	converts := body != nil && body.Converts()
	if converts {
		if obj, err = seen.As(ctx, obj); err != nil {
			return nil, body.CannotHandle(err.Error())
		}
	}
	if err := s.objects.Admit(ctx, s.newWrite(r, o, "CreateOptions"), obj); err != nil {
		return nil, err
	}
	if converts {
		if obj, err = body.Hub.As(ctx, obj); err != nil {
			return nil, body.CannotHandle(err.Error())
		}
	}
	if answer, err = act(ctx, s.newCall(r, o, obj)); err != nil || !converts || answer == nil {
		return answer, err
	}
	return body.Convert(ctx, answer)
}

// newCall is what the kind is called with.
func (s *Server) newCall(r *exchange.Request, o *writeOptions, obj *meta.Object) *registry.Call {
	return &registry.Call{
		Resource: r.Version.Resource(), Subresource: r.Subresource, Key: r.Key(), User: r.User,
		Object: obj, DryRun: o.dryRun, Names: s.names, Warn: r.Notes.Warn,
		Manager: o.managerFor(r.HTTP), Client: objects.Acts{Client: s.client},
	}
}
