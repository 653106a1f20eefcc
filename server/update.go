package server

import (
	"context"
	"net/http"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
)

// update answers PUT on an item or on a sub-resource.
func (s *Server) update(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	o, err := parseWriteOptions(r.Query, s.names, "UpdateOptions")
	if err != nil {
		return err
	}
	in, err := s.readObject(ctx, r, o.validation)
	if err != nil {
		return err
	}
	if err := placeInNamespace(r, in); err != nil {
		return err
	}
	switch in.Name() {
	case r.Name:
	case "":
		return meta.BadRequest("name must be provided")
	default:
		return meta.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", in.Name(), r.Name)
	}
	res, err := s.put(ctx, r, o, in)
	if err != nil {
		return err
	}
	return s.respondEntry(ctx, w, r, code(res), res.Entry)
}

// put replaces the object, or its part behind a sub-resource, by in.
func (s *Server) put(ctx context.Context, r *exchange.Request, o *writeOptions, in *meta.Object) (*objects.Result, error) {
	wr := s.newWrite(r, o, "UpdateOptions")
	wr.Create = r.Version.CreateOnPut && r.Sub == nil
	wr.UID = in.UID()
	wr.Versioned = versioned(in)
	wr.Mutate = func(live *meta.Object) (*meta.Object, error) {
		if live == nil {
			if err := s.allow(ctx, r, "create"); err != nil {
				return nil, err
			}
			return in.Clone(), nil
		}
		if err := preconditions(r, in, live); err != nil {
			return nil, err
		}
		if needsVersion(r) && !wr.Versioned {
			return nil, versionMissing(r)
		}
		return in.Clone(), nil
	}
	return s.objects.Write(ctx, wr)
}

// preconditions checks the resourceVersion and uid that a caller put into an
// object against the live one.
func preconditions(r *exchange.Request, in, live *meta.Object) error {
	if uid := in.UID(); uid != "" && uid != live.UID() {
		return objects.OtherUID(r.Version, r.Name, uid, live.UID())
	}
	return sameVersion(r, in, live)
}

// sameVersion refuses a resourceVersion that is not the live object's; 0 stands
// for none.
func sameVersion(r *exchange.Request, in, live *meta.Object) error {
	rev, err := objects.ParseRevision(in.ResourceVersion())
	if err != nil {
		return err
	}
	if rev != 0 && in.ResourceVersion() != live.ResourceVersion() {
		return objects.Modified(r.Version, r.Name)
	}
	return nil
}

// versioned reports whether an object names a version; zero is none at all.
func versioned(o *meta.Object) bool {
	v := o.ResourceVersion()
	return v != "" && v != "0"
}

// needsVersion reports whether an update has to name the version that it means.
func needsVersion(r *exchange.Request) bool {
	return r.Version.PutWithVersion && (r.Sub == nil || r.Sub.Body == nil)
}

func versionMissing(r *exchange.Request) error {
	return meta.Invalid(meta.GroupKind{Group: r.Group, Kind: r.Resource}, r.Name, []meta.Cause{{
		Reason: meta.CauseInvalid, Field: "metadata.resourceVersion", Message: "Invalid value: 0: must be specified for an update",
	}})
}

// code is the HTTP status of a write that succeeded.
func code(r *objects.Result) int {
	if r.Created {
		return http.StatusCreated
	}
	return http.StatusOK
}
