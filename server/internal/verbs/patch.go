package verbs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
)

// patch serves PATCH on an item or on a subresource: JSON patch, merge patch, strategic merge patch
// and server-side apply.
func (h *Handler) patch(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	kind, err := media.PatchContentType(r.HTTP.Header.Get("Content-Type"), r.Version.Strategic)
	if err != nil {
		return err
	}
	o, err := h.parsePatchOptions(r, kind)
	if err != nil {
		return err
	}
	body, err := h.readBody(ctx, r)
	if err != nil {
		return err
	}
	r.Audit.SentBytes(body)
	wr := h.newWrite(r, o, "PatchOptions")
	if kind == media.ApplyPatch {
		err = h.applyPatch(ctx, r, o, body, wr)
	} else {
		err = h.plainPatch(ctx, r, o, kind, body, wr)
	}
	if err != nil {
		return err
	}
	res, err := h.o.Objects.Write(ctx, wr)
	if err != nil {
		return err
	}
	return h.o.Encoder.SendEntry(ctx, w, r, code(res), res.Entry)
}

func (h *Handler) parsePatchOptions(r *exchange.Request, kind media.PatchType) (*writeOptions, error) {
	var causes []meta.StatusCause
	applies := kind == media.ApplyPatch
	if r.Query.Has("force") && !applies {
		causes = append(causes, mustNot("force", "may not be specified for non-apply patch"))
	}
	if applies && r.Query.Get("fieldManager") == "" {
		causes = apply.ValidateManager("", "fieldManager", true)
	}
	return parseWriteOptions(r.Query, h.o.Names, "PatchOptions", causes...)
}

// change returns a tree made from the live tree, which it does not modify.
type change func(live map[string]any) (map[string]any, error)

// plainPatch prepares a write by JSON patch, merge patch or strategic merge patch.
func (h *Handler) plainPatch(ctx context.Context, r *exchange.Request, o *writeOptions, kind media.PatchType, body []byte, w *objects.Write) error {
	alter, faults, err := h.parsePatch(r, kind, body, w)
	if err != nil { // reported only if the object exists
		w.Mutate = func(*meta.Object) (*meta.Object, error) { return nil, err }
		return nil
	}
	w.Mutate = func(live *meta.Object) (*meta.Object, error) {
		shown, err := r.Sub.Shown(ctx, live)
		if err != nil {
			return nil, err
		}
		tree, err := alter(shown.Tree())
		if err != nil {
			return nil, err
		}
		in := meta.NewObject(tree)
		if err := h.checkPatched(r, o, in, shown, faults); err != nil {
			return nil, err
		}
		return in, nil
	}
	return nil
}

// parsePatch decodes the patch once for all attempts. It returns the violations of the patch
// itself; checkPatched finds the unknown fields of its result.
func (h *Handler) parsePatch(r *exchange.Request, kind media.PatchType, body []byte, w *objects.Write) (alter change, faults fieldFaults, err error) {
	limits := codec.Limits{Depth: h.o.Limits.Depth}
	if kind == media.JSONPatch {
		value, duplicates, err := codec.DecodeValue(body, limits)
		if err != nil {
			return nil, faults, err
		}
		if err := h.checkWidth(body, map[string]any{"": value}); err != nil {
			return nil, faults, err
		}
		faults.add("json patch unknown field ", strayFields(value))
		faults.add("json patch duplicate field ", duplicates)
		w.Versioned = readsVersion(value)
		return func(live map[string]any) (map[string]any, error) {
			return apply.JSONPatch(live, body, apply.Limits{Operations: h.o.Limits.PatchOps})
		}, faults, nil
	}
	limits.WholeFloats = kind == media.StrategicPatch
	patch, duplicates, err := codec.DecodeJSON(body, limits)
	if errors.Is(err, codec.ErrNull) {
		if err = errNullPatch(); kind == media.StrategicPatch {
			err = nil // a strategic merge patch of null changes nothing
		}
	}
	if err != nil {
		return nil, faults, err
	}
	if err := h.checkWidth(body, patch); err != nil {
		return nil, faults, err
	}
	faults.duplicate(duplicates)
	w.Versioned = versioned(meta.NewObject(patch))
	return func(live map[string]any) (map[string]any, error) {
		if kind == media.StrategicPatch {
			return strategic(live, patch, r.BodyVersion())
		}
		return apply.MergePatch(live, patch), nil
	}, faults, nil
}

// readsVersion reports whether an operation of a JSON patch reads the resourceVersion, such as a
// test of it.
func readsVersion(patch any) bool {
	list, _ := patch.([]any)
	return slices.ContainsFunc(list, func(e any) bool {
		op, _ := e.(map[string]any)
		for _, pointer := range []any{op["path"], op["from"]} {
			if pointer == "" || pointer == "/metadata" || pointer == "/metadata/resourceVersion" {
				return true
			}
		}
		return false
	})
}

// maxStray bounds the number of unknown fields that are reported.
const maxStray = 100

// strayFields returns the unknown fields of the operations of a JSON patch.
func strayFields(patch any) (paths []string) {
	list, _ := patch.([]any)
	for i, e := range list {
		op, _ := e.(map[string]any)
		for _, field := range slices.Sorted(maps.Keys(op)) {
			if !slices.Contains([]string{"op", "path", "from", "value"}, field) && len(paths) < maxStray {
				paths = append(paths, fmt.Sprintf("[%d].%s", i, field))
			}
		}
	}
	return paths
}

// strategic merges patch into live. A strategic merge patch does not change the apiVersion and
// kind, but they must be strings if it has them.
func strategic(live, patch map[string]any, v *resource.Version) (map[string]any, error) {
	for _, field := range []string{"apiVersion", "kind"} {
		if _, isText := patch[field].(string); !isText && patch[field] != nil {
			return nil, badPatch(field + " must be a string")
		}
	}
	tree, err := apply.StrategicMerge(live, patch, v.Schema())
	if err == nil {
		meta.NewObject(tree).SetGVK(v.GVK())
	}
	return tree, err
}

func errNullPatch() error { return meta.BadRequest("the patch must be an object, found null") }

// checkPatched checks the result of a patch: it is the same object, it conforms to the schema, and
// the preconditions that the patch set hold. faults are the violations of the patch itself.
func (h *Handler) checkPatched(r *exchange.Request, o *writeOptions, in, live *meta.Object, faults fieldFaults) error {
	v := r.BodyVersion()
	unknown, mismatches := v.Normalize(in)
	if len(mismatches) > 0 {
		return badPatch(v.DecodeError(mismatches).Error())
	}
	if err := sameKind(r, in, v); err != nil {
		return err
	}
	if in.Name() == "" {
		return meta.BadRequest("name must be provided")
	}
	if err := sameIdentity(r, in); err != nil {
		return err
	}
	if err := conditions(r, in, live); err != nil {
		return err
	}
	if needsVersion(r) && !versioned(in) {
		return versionMissing(r)
	}
	faults.texts = slices.Clone(faults.texts) // every attempt begins with the violations of the patch
	faults.unknown(unknown)
	return enforceFieldValidation(r, o.validation, faults, func(why string) error { return badPatch("strict decoding error: " + why) })
}

// sameKind returns an error if the result of a patch has a different kind or apiVersion, or none.
func sameKind(r *exchange.Request, in *meta.Object, v *resource.Version) error {
	want := v.GVK()
	version, kind := in.APIVersion(), in.Kind()
	if v.Strategic {
		if version == "" {
			return meta.BadRequest("the patch leaves no apiVersion")
		}
		if err := objects.CheckKind(in, v); err != nil {
			return badPatch(err.Error())
		}
		return nil
	}
	if kind == "" || version == "" {
		return badPatch("the patch leaves no kind or no apiVersion")
	}
	if kind != want.Kind {
		return objects.OtherKind(r.Name, kind, want)
	}
	if version != want.APIVersion() {
		return meta.Invalid(v.GroupKind(), r.Name, []meta.StatusCause{{
			Reason: meta.CauseInvalid, Field: "apiVersion", Message: fmt.Sprintf("Invalid value: %q: must be %s", version, want.APIVersion()),
		}})
	}
	return nil
}

// conditions returns an error if the result of a patch has a uid or resourceVersion that differs from the live
// object.
func conditions(r *exchange.Request, in, live *meta.Object) error {
	if uid := in.UID(); uid != "" && uid != live.UID() {
		return meta.Invalid(r.Version.GroupKind(), r.Name, []meta.StatusCause{{
			Reason: meta.CauseInvalid, Field: "metadata.uid", Message: fmt.Sprintf("Invalid value: %q: field is immutable", uid),
		}})
	}
	return sameVersion(r, in, live)
}

// badPatch returns the error for a patch if its result is not an object of the kind.
func badPatch(why string) error {
	return meta.Invalid(meta.GroupKind{}, "", []meta.StatusCause{{Reason: meta.CauseInvalid, Field: "patch", Message: "Invalid value: " + why}})
}

// sameIdentity returns an error if the result of a patch has a different name or namespace.
func sameIdentity(r *exchange.Request, in *meta.Object) error {
	name, _ := in.Get("metadata", "name")
	if name == "" || name == nil {
		return meta.BadRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", r.Name)
	}
	if name != r.Name {
		return meta.BadRequest("the name of the object (%v) does not match the name on the URL (%s)", name, r.Name)
	}
	return setNamespace(r, in)
}

// applyPatch prepares a write by server-side apply.
func (h *Handler) applyPatch(ctx context.Context, r *exchange.Request, o *writeOptions, body []byte, w *objects.Write) error {
	tree, lines, err := codec.DecodeYAML(body, codec.Limits{Depth: h.o.Limits.Depth})
	if errors.Is(err, codec.ErrNull) {
		err = errNullPatch()
	}
	if err != nil {
		return err
	}
	if err := h.checkWidth(body, tree); err != nil {
		return err
	}
	patch := meta.NewObject(tree)
	if err := h.checkApplied(r, patch); err != nil {
		return err
	}
	if patch, err = h.applyToItem(ctx, r, patch); err != nil {
		return err
	}
	w.Create, w.Versioned, w.Applied = r.Sub == nil, versioned(patch), true
	var owners []any // from Apply; they are kept even if the subresource writes only a part of the object
	w.Own = func(_ context.Context, _, obj *meta.Object) error {
		obj.Delete("metadata", "managedFields")
		if owners != nil {
			obj.Metadata()["managedFields"] = owners
		}
		return nil
	}
	v := r.Version.ItemVersion(r.Sub)
	opts := apply.Options{Manager: o.manager, APIVersion: v.GVK().APIVersion(), Subresource: r.Subresource, Now: time.Now(), Force: o.force}
	w.Mutate = func(live *meta.Object) (*meta.Object, error) {
		if live == nil {
			if patch.UID() != "" {
				return nil, objects.UIDMismatch(r.Version, r.Name, patch.UID())
			}
			if err := h.o.Allow(ctx, r, "create"); err != nil {
				return nil, err
			}
		} else if err := conditions(r, patch, live); err != nil {
			return nil, err
		}
		obj, err := v.FieldManager(ctx).Apply(live, v.Applicable(patch, live), opts)
		if err != nil {
			return nil, err
		}
		if err := h.conformApplied(r, obj, v); err != nil {
			return nil, err
		}
		if err := enforceFieldValidation(r, o.validation, fieldFaults{lines: lines}, strictApply); err != nil {
			return nil, err
		}
		if status, sent := obj.Get("status"); sent && status == nil && r.Subresource == "status" {
			obj.Delete("status") // an apply of a null status removes the status
		}
		owners = obj.List("metadata", "managedFields")
		return r.Sub.Shown(ctx, obj)
	}
	return nil
}

// applyToItem converts the body of an apply to a subresource with its own kind into a patch of the item.
func (h *Handler) applyToItem(ctx context.Context, r *exchange.Request, body *meta.Object) (*meta.Object, error) {
	if r.Sub == nil || r.Sub.Body == nil {
		return body, nil
	}
	if _, faults := r.Sub.Body.Normalize(body); len(faults) > 0 {
		return nil, r.Sub.Body.DecodeError(faults)
	}
	identity := map[string]any{} // the subresource owns no other metadata
	for _, f := range []string{"name", "namespace", "uid", "resourceVersion", "managedFields"} {
		if v, ok := body.Metadata()[f]; ok {
			identity[f] = meta.Clone(v)
		}
	}
	patch := meta.NewObject(map[string]any{"metadata": identity})
	patch.SetGVK(r.Version.ItemVersion(r.Sub).GVK())
	if len(body.Map("spec")) > 0 { // an absent spec is not owned
		return patch, r.Sub.Take(ctx, patch, body)
	}
	return patch, nil
}

// checkApplied checks the body of an apply without the live object.
func (h *Handler) checkApplied(r *exchange.Request, patch *meta.Object) error {
	if patch.APIVersion() == "" || patch.Kind() == "" {
		return meta.BadRequest("an applied object must name its apiVersion and kind")
	}
	if err := objects.CheckKind(patch, r.BodyVersion()); err != nil {
		return err
	}
	if patch.Name() == "" && patch.GenerateName() != "" {
		return meta.BadRequest("metadata.generateName cannot be used with apply")
	}
	if name := patch.Name(); name != "" && name != r.Name {
		return meta.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", name, r.Name)
	}
	return setNamespace(r, patch.Clone()) // a clone, because the last-applied annotation may quote the body
}

// strictApply returns the error for an apply with unknown or duplicate fields under strict validation.
func strictApply(why string) error {
	return meta.BadRequest("error strict decoding YAML: error converting YAML to JSON: %s", why)
}

// conformApplied checks that the result of an apply is the same object and conforms to the schema.
func (h *Handler) conformApplied(r *exchange.Request, obj *meta.Object, v *resource.Version) error {
	if err := sameIdentity(r, obj); err != nil {
		return err
	}
	// Apply refuses fields that the schema does not have, except below a node that preserves unknown fields. Normalize
	// prunes them without a warning.
	_, faults := v.Normalize(obj)
	if len(faults) == 0 {
		return nil
	}
	if f := faults[0]; v.ConformOnRead && !strings.HasPrefix(f.Field, "metadata") { // in an embedded object
		f.Reason, f.Message = meta.CauseInvalid, strings.TrimPrefix(f.Message, f.Field+": ")
		return meta.Invalid(v.GroupKind(), r.Name, []meta.StatusCause{f})
	}
	return v.DecodeError(faults)
}
