package objects

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// Create stores a new object. If a generated name is taken, it tries up to seven others. w has the fields that all of
// these writes share. Create does not modify obj.
func (s *Store) Create(ctx context.Context, w *Write, obj *meta.Object) (*Result, error) {
	generate := obj.Name() == "" && obj.GenerateName() != ""
	for attempt := 1; ; attempt++ {
		body := obj
		if generate {
			body = obj.Clone()
			body.SetName(generatedName(obj.GenerateName()))
		}
		one := *w
		one.Key.Name = body.Name()
		one.Create, one.MustCreate, one.generated = true, true, generate
		version, _ := ParseRevision(obj.ResourceVersion()) // an invalid version counts as none
		one.Versioned = version != 0
		one.Mutate = func(*meta.Object) (*meta.Object, error) { return body.Clone(), nil }
		res, err := s.Write(ctx, &one)
		if !generate || !meta.IsAlreadyExists(err) || attempt == 8 {
			return res, err
		}
		w.admissions = one.admissions
	}
}

// generatedName returns prefix with five random characters appended. The prefix is truncated so that the name is a
// valid DNS label.
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

// CheckKind checks that apiVersion and kind of a body match v, and sets them if they are missing. Bodies of custom
// kinds must have both.
func CheckKind(obj *meta.Object, v *resource.Version) error {
	want := v.GVK()
	for _, f := range []string{"apiVersion", "kind"} {
		if value, ok := obj.Get(f); ok && value != nil {
			if _, text := value.(string); !text {
				return meta.BadRequest("%s must be a string", f)
			}
		}
	}
	version, kind := obj.APIVersion(), obj.Kind()
	if v.NamesKind && (version == "" || kind == "") {
		return meta.BadRequest("an object of a custom kind must name its apiVersion and kind")
	}
	if version != "" && version != want.APIVersion() {
		return meta.BadRequest("the API version in the data (%s) does not match the expected API version (%s)", version, want.APIVersion())
	}
	if kind != "" && kind != want.Kind && v.NamesKind {
		return OtherKind(obj.Name(), kind, want)
	}
	if kind != "" && kind != want.Kind {
		return meta.BadRequest("%s in version %q cannot be handled as a %s: the kind does not match", kind, want.Version, want.Kind)
	}
	obj.SetGVK(want)
	return nil
}

// OtherKind returns the Invalid error for a body of another kind than the custom kind of the endpoint.
func OtherKind(name, kind string, want meta.GroupVersionKind) error {
	return meta.Invalid(meta.GroupKind{Group: want.Group, Kind: kind}, name, []meta.StatusCause{{
		Reason: meta.CauseInvalid, Field: "kind", Message: fmt.Sprintf("Invalid value: %q: must be %s", kind, want.Kind),
	}})
}

// Status returns the Status that callers receive for an error of a Store, or nil if the error is internal.
func Status(err error) *meta.Status {
	var st *meta.Status
	var damaged *client.UnreadableError
	var conversion *resource.ConversionError
	var trouble *storage.UnavailableError
	switch {
	case errors.As(err, &st):
		return st
	case errors.As(err, &trouble):
		return unavailable(err, trouble)
	case errors.As(err, &damaged):
		st := meta.Internal(damaged) // changing the request would not help
		st.Details = &meta.StatusDetails{Name: damaged.Keys[0].Name, Group: damaged.Resource.Group, Kind: damaged.Resource.Resource,
			Causes: []meta.StatusCause{{Reason: meta.CauseUnexpected, Message: damaged.Error()}}}
		return st
	case errors.As(err, &conversion):
		shown := *conversion
		if shown.Stack() != nil {
			shown.Err = errors.New("the conversion failed") // the panic value is logged only
		}
		return meta.Internal(&shown)
	case errors.Is(err, codec.ErrNull):
		return meta.BadRequest("%v", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		st := meta.Timeout("Timeout: request did not complete within the allotted timeout")
		st.Details = &meta.StatusDetails{}
		return st
	case errors.Is(err, storage.ErrClosed):
		return meta.Unavailable("the server is shutting down")
	case errors.Is(err, errDeposed):
		return meta.Unavailable("%v", errDeposed)
	case errors.Is(err, storage.ErrTooLarge):
		return meta.TooLarge("the object is larger than the limit of the storage of the server")
	case errors.Is(err, storage.ErrFull):
		return meta.InsufficientStorage("the storage of the server has no room; only deletions are accepted")
	}
	return nil
}

// unavailable returns a 503 with the kind of the store's failure. It has a Retry-After header, so that clients retry,
// unless the write may have been committed.
func unavailable(err error, trouble *storage.UnavailableError) *meta.Status {
	var made *uncertainError
	if errors.As(err, &made) {
		return meta.Unavailable("the storage of the server is not available: %s; it is not known whether the write was made", trouble.Kind)
	}
	st := meta.Unavailable("the storage of the server is not available: %s", trouble.Kind)
	st.Details = &meta.StatusDetails{RetryAfterSeconds: 1}
	return st
}
