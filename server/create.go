package server

import (
	"context"
	"net/http"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
)

// create answers POST on a collection, on a virtual type, or on a sub-resource
// that acts.
func (s *Server) create(ctx context.Context, w *response, r *request) error {
	if r.sub != nil || r.version.Virtual {
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
func (s *Server) newWrite(r *request, o *writeOptions, optionsKind string) *objects.Write {
	return &objects.Write{
		Caller: s.caller(r), Version: r.version, Key: r.key(), Sub: r.sub, DryRun: o.dryRun,
		Options: o.object(s.names, optionsKind), Own: objects.Owner(r.version, r.sub, o.managerFor(r.http)),
	}
}

// caller is who sent a request, as the store of the objects sees it.
func (s *Server) caller(r *request) objects.Caller {
	return objects.Caller{User: r.user, Notes: &r.notes, Allow: func(ctx context.Context, verb string) error { return s.allow(ctx, r, verb) }}
}

// placeInNamespace checks that the body's namespace is the path's, and fills it
// in; a kind of cluster scope has none.
func placeInNamespace(r *request, obj *meta.Object) error {
	if ns := obj.Namespace(); ns != "" && ns != r.Namespace && r.version.Namespaced {
		return meta.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	obj.SetNamespace(r.Namespace)
	return nil
}

// act answers a POST to a virtual type or to a sub-resource that acts.
func (s *Server) act(ctx context.Context, w *response, r *request) error {
	o, err := parseWriteOptions(r.Query, s.names, "CreateOptions")
	if err != nil {
		return err
	}
	obj, err := s.readObject(ctx, r, o.validation)
	if err != nil {
		return err
	}
	if r.sub == nil {
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
		m := r.media
		m.View = media.Full
		s.sendStatus(w, r, m, http.StatusCreated, &meta.Status{Status: "Success", Code: http.StatusCreated})
		return nil
	}
	return s.respondObject(w, r, http.StatusCreated, answer)
}

// call asks admission about a body, and calls the kind with it, in the form of its hub.
// Admission sees that of a sub-resource as discovery tells of it, any other in the hub's.
func (s *Server) call(ctx context.Context, r *request, o *writeOptions, obj *meta.Object) (answer *meta.Object, err error) {
	act, body, seen := r.version.Act, r.version, r.version.Hub
	if r.sub != nil {
		act, body, seen = r.sub.Act, r.sub.Body, r.sub.Body
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
func (s *Server) newCall(r *request, o *writeOptions, obj *meta.Object) *registry.Call {
	return &registry.Call{
		Resource: r.version.Resource(), Subresource: r.Subresource, Key: r.key(), User: r.user,
		Object: obj, DryRun: o.dryRun, Names: s.names, Warn: r.notes.Warn,
		Manager: o.managerFor(r.http), Client: objects.Acts{Client: s.client},
	}
}
