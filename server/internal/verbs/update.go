package verbs

import (
	"context"
	"net/http"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
)

// update serves PUT on an item or on a subresource.
func (h *Handler) update(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	o, err := parseWriteOptions(r.Query, h.o.Names, "UpdateOptions")
	if err != nil {
		return err
	}
	in, err := h.readObject(ctx, r, o.validation)
	if err != nil {
		return err
	}
	if err := setNamespace(r, in); err != nil {
		return err
	}
	switch in.Name() {
	case r.Name:
	case "":
		return meta.BadRequest("name must be provided")
	default:
		return meta.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", in.Name(), r.Name)
	}
	res, err := h.put(ctx, r, o, in)
	if err != nil {
		return err
	}
	return h.o.Encoder.SendEntry(ctx, w, r, code(res), res.Entry)
}

// put replaces the object, or the part of it that the subresource writes, by in.
func (h *Handler) put(ctx context.Context, r *exchange.Request, o *writeOptions, in *meta.Object) (*objects.Result, error) {
	wr := h.newWrite(r, o, "UpdateOptions")
	wr.Create = r.Version.CreateOnPut && r.Sub == nil
	wr.UID = in.UID()
	wr.Versioned = versioned(in)
	wr.Mutate = func(live *meta.Object) (*meta.Object, error) {
		if live == nil {
			if err := h.o.Allow(ctx, r, "create"); err != nil {
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
	return h.o.Objects.Write(ctx, wr)
}

// preconditions returns an error if in has a resourceVersion or uid that differs from the live object.
func preconditions(r *exchange.Request, in, live *meta.Object) error {
	if uid := in.UID(); uid != "" && uid != live.UID() {
		return objects.OtherUID(r.Version, r.Name, uid, live.UID())
	}
	return sameVersion(r, in, live)
}

// sameVersion returns a conflict if in has a resourceVersion that differs from the live object. "0" matches any
// version.
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

// versioned reports whether an object has a resourceVersion other than "0".
func versioned(o *meta.Object) bool {
	v := o.ResourceVersion()
	return v != "" && v != "0"
}

// needsVersion reports whether an update must have a resourceVersion.
func needsVersion(r *exchange.Request) bool {
	return r.Version.PutWithVersion && (r.Sub == nil || r.Sub.Body == nil)
}

func versionMissing(r *exchange.Request) error {
	return meta.Invalid(meta.GroupKind{Group: r.Group, Kind: r.Resource}, r.Name, []meta.StatusCause{{
		Reason: meta.CauseInvalid, Field: "metadata.resourceVersion", Message: "Invalid value: 0: must be specified for an update",
	}})
}

// code returns the HTTP code of a write that succeeded.
func code(r *objects.Result) int {
	if r.Created {
		return http.StatusCreated
	}
	return http.StatusOK
}
