package verbs

import (
	"context"
	"errors"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
)

// readBody reads the body of a request and then takes a seat. A request needs no seat while its body is being
// received.
func (h *Handler) readBody(ctx context.Context, r *exchange.Request) ([]byte, error) {
	body, err := r.ReadBody(ctx, h.o.Limits.Body)
	if err != nil {
		return nil, err
	}
	if r.HTTP.ContentLength != 0 {
		h.o.Metrics.ReceivedBody(r, len(body))
	}
	return body, r.Usage.AcquireSeat(ctx)
}

// readObject reads the object of the body, checks its kind, and normalizes it by the schema. Unknown and duplicate
// fields are ignored, warned about or refused, depending on validation.
func (h *Handler) readObject(ctx context.Context, r *exchange.Request, validation string) (*meta.Object, error) {
	format, err := media.ContentType(r.HTTP.Header.Get("Content-Type"), h.o.Names, r.BodyVersion().Proto() != nil)
	if err != nil {
		return nil, err
	}
	body, err := h.readBody(ctx, r)
	if err != nil {
		return nil, err
	}
	obj, faults, err := h.decode(r, format, body)
	if errors.Is(err, codec.ErrNull) {
		obj, err = meta.NewObject(map[string]any{}), nil // null is an empty object
	}
	if err != nil {
		return nil, err
	}
	if err := h.checkWidth(body, obj.Tree()); err != nil {
		return nil, err
	}
	v := r.BodyIn(obj.APIVersion())
	if err := objects.CheckKind(obj, v); err != nil {
		return nil, err
	}
	r.Audit.Sent(obj)
	unknown, mismatches := v.Normalize(obj)
	if len(mismatches) > 0 {
		return nil, v.DecodeError(mismatches)
	}
	if format == codec.JSON && !v.SortedUnknown && validation != ignoreFields && len(unknown)+len(faults.texts) > 0 {
		faults.texts = codec.StrictJSON(body, v.Schema())
	} else {
		faults.unknown(unknown)
	}
	return obj, enforceFieldValidation(r, validation, faults, func(why string) error {
		return v.CannotHandle("strict decoding error: " + why)
	})
}

func (h *Handler) decode(r *exchange.Request, format codec.Format, body []byte) (*meta.Object, fieldFaults, error) {
	limits := codec.Limits{Depth: h.o.Limits.Depth}
	var faults fieldFaults
	switch format {
	case codec.Protobuf:
		obj, err := decodeEnvelope(func(apiVersion string) *codec.Proto { return r.BodyIn(apiVersion).Proto() }, body, limits)
		return obj, faults, err
	case codec.YAML:
		tree, lines, err := codec.DecodeYAML(body, limits)
		return meta.NewObject(tree), fieldFaults{lines: lines}, err
	}
	tree, duplicates, err := codec.DecodeJSON(body, limits)
	faults.duplicate(duplicates)
	return meta.NewObject(tree), faults, err
}

// checkWidth returns a 413 if an object or list of the body has too many entries, because tracking
// their owners costs the square of their number.
func (h *Handler) checkWidth(body []byte, tree map[string]any) error {
	if len(body) < 2*h.o.Limits.Entries || width(tree) <= h.o.Limits.Entries {
		return nil
	}
	return meta.TooLarge("Request entity too large: limit is %d entries of one object or list", h.o.Limits.Entries)
}

// width returns the largest number of entries of an object or list in v. The depth of v is bounded.
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

// decodeEnvelope decodes a protobuf object in its envelope. of returns the codec for objects of an apiVersion.
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

// readDeleteBody returns the options in the body of a delete, nil if there is no body.
func (h *Handler) readDeleteBody(ctx context.Context, r *exchange.Request) (map[string]any, error) {
	const kind = "DeleteOptions"
	body, err := h.readBody(ctx, r)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	format, err := media.ContentType(r.HTTP.Header.Get("Content-Type"), h.o.Names, true)
	if err != nil {
		return nil, err
	}
	limits := codec.Limits{Depth: h.o.Limits.Depth}
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
	// An unknown option must not be ignored, because it might prevent the deletion.
	if _, faults := codec.Metas().DeleteOptionsSchema.Normalize(tree); len(faults) > 0 {
		return nil, meta.BadRequest("%s cannot be read: %s", kind, faults[0].Message)
	}
	r.Audit.Sent(meta.NewObject(tree))
	return tree, nil
}
