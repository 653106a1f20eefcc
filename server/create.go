package server

import (
	"context"
	"crypto/rand"

	"github.com/google/uuid"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
)

// create answers POST on a collection, on a virtual type, or on a sub-resource
// that acts.
func (s *Server) create(ctx context.Context, w *response, r *request) error {
	if r.sub != nil || r.version.Virtual() {
		return s.act(ctx, w, r)
	}
	o, err := parseWriteOptions(r.query, s.names, "CreateOptions")
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
	res, err := s.createObject(ctx, r, o, obj)
	if err != nil {
		return err
	}
	return s.respondEntry(w, r, res.code(), res.entry)
}

// createObject stores a new object; a generated name that is taken is drawn
// again a few times.
func (s *Server) createObject(ctx context.Context, r *request, o *writeOptions, obj *meta.Object) (*result, error) {
	generate := obj.Name() == "" && obj.GenerateName() != ""
	for attempt := 1; ; attempt++ {
		body := obj
		if generate {
			body = obj.Clone()
			body.SetName(generatedName(obj.GenerateName()))
		}
		w := s.newWrite(r, o, "CreateOptions")
		w.key = meta.Key{Namespace: r.namespace, Name: body.Name()}
		w.create, w.mustCreate = true, true
		version, _ := parseRevision(obj.ResourceVersion()) // what is no version says nothing
		w.versioned = version != 0
		w.mutate = func(*meta.Object) (*meta.Object, error) { return body.Clone(), nil }
		res, err := s.write(ctx, w)
		if !generate || !meta.IsAlreadyExists(err) || attempt == 8 {
			return res, err
		}
	}
}

// newWrite fills in what every write of a request has.
func (s *Server) newWrite(r *request, o *writeOptions, optionsKind string) *write {
	w := &write{
		version: r.version, key: r.key(), sub: r.sub, user: r.user, notes: &r.notes, dryRun: o.dryRun,
		options: o.object(s.names, optionsKind),
	}
	w.own = owner(w, o.managerFor(r.http))
	return w
}

// placeInNamespace checks that the body's namespace is the path's, and fills it
// in; a kind of cluster scope has none.
func placeInNamespace(r *request, obj *meta.Object) error {
	if ns := obj.Namespace(); ns != "" && ns != r.namespace && r.version.Namespaced {
		return meta.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	obj.SetNamespace(r.namespace)
	return nil
}

// act answers a POST to a virtual type or to a sub-resource that acts.
func (s *Server) act(ctx context.Context, w *response, r *request) error {
	o, err := parseWriteOptions(r.query, s.names, "CreateOptions")
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
	return s.respondObject(w, r, 201, answer)
}

func (s *Server) call(ctx context.Context, r *request, o *writeOptions, obj *meta.Object) (*meta.Object, error) {
	call := &registry.Call{
		Resource: r.version.Resource(), Subresource: r.subresource, Key: r.key(), User: r.user,
		Object: obj, DryRun: o.dryRun, Names: s.names, Client: s.client, Warn: r.notes.warn,
		Manager: o.managerFor(r.http),
	}
	act := r.version.Act
	if r.sub != nil {
		act = r.sub.Act
	}
	w := s.newWrite(r, o, "CreateOptions")
	request := s.admissionRequest(w, obj, nil)
	if err := s.admission.Mutate(ctx, request); err != nil {
		return nil, err
	}
	if err := s.admission.Validate(ctx, request); err != nil {
		return nil, err
	}
	if r.sub == nil {
		if err := w.own(nil, obj); err != nil {
			return nil, err
		}
	}
	return act(ctx, call)
}

// generatedName appends five random characters to a prefix, which is cut so
// that the name stays a DNS label.
func generatedName(prefix string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	if len(prefix) > 58 {
		prefix = prefix[:58]
	}
	var b [5]byte
	_, _ = rand.Read(b[:])
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return prefix + string(b[:])
}

func newUID() string { return uuid.NewString() }
