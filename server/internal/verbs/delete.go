package verbs

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/requestinfo"
)

// longestGrace bounds a grace period in seconds, so that times do not overflow.
const longestGrace = 1<<31 - 1

// deleteOptions are the options of delete and deletecollection. They come from the body, or from the query if there
// is no body.
type deleteOptions struct {
	objects.Deletion
	dryRun bool
	object *meta.Object
}

// delete serves DELETE on an item.
func (h *Handler) delete(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	o, err := h.parseDeleteOptions(ctx, r)
	if err != nil {
		return err
	}
	if o.Unreadable {
		r.Notes.Annotate(h.o.Names.Wire(wellknown.AuditUnsafeDelete), "")
	}
	res, err := h.o.Objects.Delete(ctx, h.newDelete(r, r.Key(), o), &o.Deletion)
	if err != nil {
		return err
	}
	details := &meta.StatusDetails{Name: r.Name, Group: r.Version.Group, Kind: r.Version.Plural}
	if res.Entry != nil {
		code := http.StatusOK
		if !res.Deleted && o.Orphan != nil && !*o.Orphan {
			code = http.StatusAccepted
		}
		if !(res.Deleted && r.Version.DeleteAnswersStatus) && objects.Shows(ctx, res.Entry, r.Version) {
			return h.o.Encoder.SendEntry(ctx, w, r, code, res.Entry)
		}
		details.UID = res.Entry.Object().UID()
	}
	w.SendSuccess(http.StatusOK, &meta.Status{Status: "Success", Details: details})
	return nil
}

// newDelete returns the write of a delete.
func (h *Handler) newDelete(r *exchange.Request, key meta.Key, o *deleteOptions) *objects.Write {
	return &objects.Write{Caller: h.caller(r), Version: r.Version, Key: key, DryRun: o.dryRun, Options: o.object}
}

// deleteCollection serves DELETE on a collection. It deletes the objects that a list with the same parameters
// returns, each with its own admission and commit. The response is a Status, as in the specification, or the list of
// these objects, see compat.ListsDeleted.
func (h *Handler) deleteCollection(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	list, err := h.listOptions(r, false)
	if err != nil {
		return err
	}
	h.estimateSeats(r, list)
	o, err := h.parseDeleteOptions(ctx, r)
	if err != nil {
		return err
	}
	if o.Unreadable {
		return h.invalidDeleteOptions([]meta.StatusCause{unreadableFault("is not allowed with DELETECOLLECTION, try again after removing the option")})
	}
	page, err := h.o.Objects.List(ctx, r.Version, &list.Selection)
	if err != nil {
		return err
	}
	if len(page.Entries) > h.o.Limits.CollectionPage {
		return meta.TooLarge("%d objects are too many for one request: set a limit", len(page.Entries))
	}
	deleted := *page
	if h.o.Rules.Has(compat.ListsDeleted) { // convert before anything is deleted, because a conversion may fail
		if deleted.Entries, err = objects.InVersion(ctx, page.Entries, r.Version); err != nil {
			return err
		}
	}
	err = h.o.Objects.DeleteAll(ctx, r.Version, &list.Selection, page, func(key meta.Key) (*objects.Write, *objects.Deletion) {
		own := *o
		own.object = o.object.Clone() // admission may modify it
		return h.newDelete(r, key, &own), &own.Deletion
	})
	if err != nil {
		return err
	}
	if h.o.Rules.Has(compat.ListsDeleted) {
		return h.o.Encoder.SendList(ctx, w, r, &deleted)
	}
	w.SendSuccess(http.StatusOK, &meta.Status{Status: "Success", Details: &meta.StatusDetails{
		Group: r.Version.Group, Kind: r.Version.Plural,
	}})
	return nil
}

// parseDeleteOptions reads and checks the options of a delete.
func (h *Handler) parseDeleteOptions(ctx context.Context, r *exchange.Request) (*deleteOptions, error) {
	tree, err := h.readDeleteOptions(ctx, r)
	if err != nil {
		return nil, err
	}
	o := &deleteOptions{object: meta.NewObject(tree)}
	o.object.SetGVK(meta.GroupVersionKind{Group: h.o.Names.Group(wellknown.GroupMeta), Version: "v1", Kind: "DeleteOptions"})
	o.UID, o.Version = optional(o.object, "preconditions", "uid"), optional(o.object, "preconditions", "resourceVersion")
	o.Propagation = optional(o.object, "propagationPolicy")
	if b, ok := tree["orphanDependents"].(bool); ok {
		o.Orphan = &b
	}
	if g, ok := tree["gracePeriodSeconds"].(int64); ok {
		g = max(-longestGrace, min(g, longestGrace))
		o.Grace = &g
	}
	o.Unreadable = o.object.Bool(ignoreReadError)
	var faults []meta.StatusCause
	o.dryRun, faults = parseDryRun(o.object.Strings("dryRun"))
	causes := slices.Concat(o.policyFaults(), faults, o.unreadableFaults())
	if len(causes) > 0 {
		return nil, h.invalidDeleteOptions(causes)
	}
	if text := r.Version.OrphanWarning; text != "" && o.Propagation == nil && o.Orphan == nil {
		r.Notes.Warn(text)
	}
	return o, nil
}

// optional returns a field, which may be empty, or nil if it is absent.
func optional(o *meta.Object, path ...string) *string {
	if v, _ := o.Get(path...); v != nil {
		text := o.String(path...)
		return &text
	}
	return nil
}

func (o *deleteOptions) policyFaults() (causes []meta.StatusCause) {
	if o.Propagation == nil {
		return nil
	}
	if o.Orphan != nil {
		causes = append(causes, meta.StatusCause{Reason: meta.CauseInvalid, Field: "propagationPolicy",
			Message: "Invalid value: " + strconv.Quote(*o.Propagation) + ": orphanDependents and propagationPolicy cannot both be set"})
	}
	switch *o.Propagation {
	case "Background", "Foreground", "Orphan":
	default:
		causes = append(causes, unsupported("propagationPolicy", *o.Propagation, "Foreground", "Background", "Orphan"))
	}
	return causes
}

func (h *Handler) invalidDeleteOptions(causes []meta.StatusCause) *meta.Status {
	return meta.Invalid(meta.GroupKind{Group: h.o.Names.Group(wellknown.GroupMeta), Kind: "DeleteOptions"}, "", causes)
}

// ignoreReadError is the option to delete an object that cannot be read.
const ignoreReadError = "ignoreStoreReadErrorWithClusterBreakingPotential"

func unreadableFault(why string) meta.StatusCause {
	return meta.StatusCause{Reason: meta.CauseInvalid, Field: ignoreReadError, Message: "Invalid value: true: " + why}
}

// unreadableFaults returns a violation for each option that cannot be applied to an object that
// cannot be read.
func (o *deleteOptions) unreadableFaults() (causes []meta.StatusCause) {
	if !o.Unreadable {
		return nil
	}
	for _, field := range []string{"propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions"} {
		if v, _ := o.object.Get(field); v != nil {
			causes = append(causes, unreadableFault("cannot be set together with ."+field))
		}
	}
	return causes
}

// readDeleteOptions returns the options of the body, or of the query if there is no body.
func (h *Handler) readDeleteOptions(ctx context.Context, r *exchange.Request) (map[string]any, error) {
	tree, err := h.readDeleteBody(ctx, r)
	if err != nil || tree != nil {
		return tree, err
	}
	tree = map[string]any{}
	if r.Query.Has("propagationPolicy") {
		tree["propagationPolicy"] = r.Query.Get("propagationPolicy")
	}
	if r.Query.Has("orphanDependents") {
		tree["orphanDependents"] = requestinfo.Truthy(r.Query, "orphanDependents")
	}
	if r.Query.Has(ignoreReadError) {
		tree[ignoreReadError] = requestinfo.Truthy(r.Query, ignoreReadError)
	}
	if r.Query.Has("gracePeriodSeconds") {
		g, err := integer(r.Query, "gracePeriodSeconds")
		if err != nil {
			return nil, err
		}
		tree["gracePeriodSeconds"] = g
	}
	if dry := r.Query["dryRun"]; len(dry) > 0 {
		list := make([]any, len(dry))
		for i, d := range dry {
			list[i] = d
		}
		tree["dryRun"] = list
	}
	pre := map[string]any{}
	if uid := r.Query.Get("uid"); uid != "" {
		pre["uid"] = uid
	}
	if v := r.Query.Get("resourceVersion"); v != "" {
		pre["resourceVersion"] = v
	}
	if len(pre) > 0 {
		tree["preconditions"] = pre
	}
	return tree, nil
}
