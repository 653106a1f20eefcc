package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
)

// readBody reads a request body within the limit, and then takes a seat for the
// request: what is still on its way needs none.
func (s *Server) readBody(ctx context.Context, r *request) ([]byte, error) {
	body, err := s.receive(ctx, r)
	if err != nil {
		return nil, err
	}
	return body, s.acquireSeat(ctx, r)
}

func (s *Server) receive(ctx context.Context, r *request) ([]byte, error) {
	h := r.http
	if h.ContentLength > s.limits.Body {
		return nil, &http.MaxBytesError{Limit: s.limits.Body}
	}
	if h.ContentLength == 0 {
		return nil, nil
	}
	if e := h.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, meta.Failure(http.StatusUnsupportedMediaType, meta.ReasonUnsupportedMediaType, "bodies encoded as %q are not read", e)
	}
	body, err := s.read(ctx, r)
	var tooLong *http.MaxBytesError
	var full *meta.Status
	switch {
	case errors.As(err, &tooLong), errors.As(err, &full):
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded): // the deadline stays: nobody waits for the rest
		return nil, meta.Failure(http.StatusRequestTimeout, meta.ReasonTimeout, "Timeout: the body did not arrive in time")
	case err != nil:
		return nil, meta.BadRequest("reading the body: %v", err)
	}
	_ = r.deadline.control.SetReadDeadline(time.Time{})
	s.metrics.of(s, r, received, 0).size.Observe(float64(len(body)))
	return body, nil
}

const (
	firstPiece = 4 << 10          // bytes of room for a body of which nothing is there
	smallBody  = 16 << 10         // bytes; bounded by the number of requests at a time
	bodyWait   = 10 * time.Second // for other large bodies to be done with
	growthWait = time.Second      // the same, by one that others may wait for
)

// read returns the body of a request. Room is made as bytes arrive: what is only
// announced takes none.
func (s *Server) read(ctx context.Context, r *request) ([]byte, error) {
	in, size := io.Reader(r.http.Body), r.http.ContentLength
	if size < 0 {
		in, size = http.MaxBytesReader(nil, r.http.Body, s.limits.Body), s.limits.Body+1
	}
	body := make([]byte, 0, min(size, firstPiece))
	for {
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) == r.http.ContentLength, err == io.EOF && r.http.ContentLength < 0:
			return body, nil
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case len(body) < cap(body):
			continue
		}
		room := min(size, 4*int64(cap(body)))
		if len(body) >= smallBody {
			if err := s.reserveBody(ctx, r, room, min(size, s.limits.Body)); err != nil {
				return nil, err
			}
		}
		more := make([]byte, len(body), room)
		copy(more, body)
		body = more
	}
}

// reserveBody takes so many bytes for what there is of a large body from their pool,
// or makes what was taken as large, until the answer is made: decoded, the body is
// many times as large. It begins where the whole would fit, but the rest is not
// held until it comes. Who does not get it in time is asked to come again.
func (s *Server) reserveBody(ctx context.Context, r *request, size, whole int64) (err error) {
	body, wait := &r.share.body, bodyWait
	if r.share.exempt {
		if !body.Held() {
			*body, _ = s.bodies.Take(r.share.holder, whole)
		}
		return nil
	}
	if body.Held() {
		wait = growthWait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if body.Held() {
		err = body.Grow(ctx, size)
	} else {
		*body, err = s.bodies.Wait(ctx, r.share.holder, size, whole)
	}
	if err != nil {
		return r.tooMany("too many large bodies at a time")
	}
	return nil
}

// bodyVersion is the version whose objects the body of the request holds: the
// item's own, or that of a sub-resource with a kind of its own.
func (r *request) bodyVersion() *resource.Version {
	if r.sub != nil && r.sub.Body != nil {
		return r.sub.Body
	}
	return r.version
}

// bodyIn is bodyVersion for a body that names an apiVersion.
func (r *request) bodyIn(apiVersion string) *resource.Version {
	if r.sub != nil && r.sub.Body != nil {
		return r.sub.BodyIn(apiVersion)
	}
	return r.version
}

// readObject reads the object in the body: decoded, of the right kind, conforming
// to the schema. Unknown and duplicate fields are ignored, warned about or
// refused, as fieldValidation asks.
func (s *Server) readObject(ctx context.Context, r *request, validation string) (*meta.Object, error) {
	format, err := media.ContentType(r.http.Header.Get("Content-Type"), s.names, r.bodyVersion().Proto() != nil)
	if err != nil {
		return nil, err
	}
	body, err := s.readBody(ctx, r)
	if err != nil {
		return nil, err
	}
	obj, faults, err := s.decode(r, format, body)
	if errors.Is(err, codec.ErrNull) {
		obj, err = meta.NewObject(map[string]any{}), nil // an object of which nothing is said
	}
	if err != nil {
		return nil, err
	}
	if err := s.checkWidth(body, obj.Tree()); err != nil {
		return nil, err
	}
	v := r.bodyIn(obj.APIVersion())
	if err := objects.CheckKind(obj, v); err != nil {
		return nil, err
	}
	r.record.sent(obj)
	unknown, mismatches := v.Conform(obj)
	if len(mismatches) > 0 {
		return nil, v.DecodeError(mismatches)
	}
	if format == codec.JSON && !v.SortedUnknown && validation != ignoreFields && len(unknown)+len(faults.texts) > 0 {
		faults.texts = codec.StrictJSON(body, v.Schema())
	} else {
		faults.unknown(unknown)
	}
	return obj, s.enforceFieldValidation(r, validation, faults, func(why string) error {
		return v.CannotHandle("strict decoding error: " + why)
	})
}

func (s *Server) decode(r *request, format codec.Format, body []byte) (*meta.Object, fieldFaults, error) {
	limits := codec.Limits{Depth: s.limits.Depth}
	var faults fieldFaults
	switch format {
	case codec.Protobuf:
		obj, err := decodeEnvelope(func(apiVersion string) *codec.Proto { return r.bodyIn(apiVersion).Proto() }, body, limits)
		return obj, faults, err
	case codec.YAML:
		tree, lines, err := codec.DecodeYAML(body, limits)
		return meta.NewObject(tree), fieldFaults{lines: lines}, err
	}
	tree, duplicates, err := codec.DecodeJSON(body, limits)
	faults.duplicate(duplicates)
	return meta.NewObject(tree), faults, err
}

// checkWidth refuses a body with too many entries in one place: recording who
// owns them costs the square of their number.
func (s *Server) checkWidth(body []byte, tree map[string]any) error {
	if len(body) < 2*s.limits.Entries || width(tree) <= s.limits.Entries {
		return nil
	}
	return meta.TooLarge("Request entity too large: limit is %d entries of one object or list", s.limits.Entries)
}

// width is the largest number of entries that an object or list has. The depth
// was checked.
func width(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, child := range v {
			n = max(n, width(child))
		}
	case []any:
		n = len(v)
		for _, child := range v {
			n = max(n, width(child))
		}
	}
	return n
}

// decodeEnvelope decodes a protobuf object and the type around it. Of says how objects of
// an apiVersion are written.
func decodeEnvelope(of func(apiVersion string) *codec.Proto, data []byte, l codec.Limits) (*meta.Object, error) {
	apiVersion, kind, message, err := codec.OpenEnvelope(data)
	if err != nil {
		return nil, err
	}
	tree, err := of(apiVersion).Decode(message, l)
	if err != nil {
		return nil, err
	}
	tree["apiVersion"], tree["kind"] = apiVersion, kind
	return meta.NewObject(tree), nil
}

// readDeleteBody reads the options of a delete in the body, or nothing.
func (s *Server) readDeleteBody(ctx context.Context, r *request) (map[string]any, error) {
	const kind = "DeleteOptions"
	body, err := s.readBody(ctx, r)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	format, err := media.ContentType(r.http.Header.Get("Content-Type"), s.names, true)
	if err != nil {
		return nil, err
	}
	limits := codec.Limits{Depth: s.limits.Depth}
	var tree map[string]any
	switch format {
	case codec.Protobuf:
		obj, perr := decodeEnvelope(func(string) *codec.Proto { return codec.Metas().DeleteOptions }, body, limits)
		if perr != nil {
			return nil, perr
		}
		tree = obj.Tree()
	case codec.YAML:
		tree, _, err = codec.DecodeYAML(body, limits)
	default:
		tree, _, err = codec.DecodeJSON(body, limits)
	}
	if errors.Is(err, codec.ErrNull) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, err
	}
	if k := meta.NewObject(tree).Kind(); k != "" && k != kind {
		return nil, meta.BadRequest("the body holds a %s, not %s", k, kind)
	}
	// An option that is not understood must not be left out: it might be what
	// keeps the object.
	if _, faults := codec.Metas().DeleteOptionsSchema.Conform(tree); len(faults) > 0 {
		return nil, meta.BadRequest("%s cannot be read: %s", kind, faults[0].Message)
	}
	r.record.sent(meta.NewObject(tree))
	return tree, nil
}
