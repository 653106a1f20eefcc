package verbs

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/requestinfo"
	"orch.io/controlplane/server/internal/watchstream"
)

// listOptions are the parameters of list, watch and deletecollection.
type listOptions watchstream.Watch

// listOptions reads and checks the parameters of a list, watch or deletecollection. Malformed
// selectors and numbers are a 400, invalid combinations a 422 of ListOptions.
func (h *Handler) listOptions(r *exchange.Request, watch bool) (*listOptions, error) {
	q, t := r.Query, r.Version.Type
	o := &listOptions{Selection: objects.Selection{
		Namespace: r.Namespace, Name: r.Name,
		Version: q.Get("resourceVersion"), Match: q.Get("resourceVersionMatch"), Continue: q.Get("continue"),
	}, Bookmarks: requestinfo.Truthy(q, "allowWatchBookmarks"), InitialEvents: requestinfo.Truthy(q, "sendInitialEvents")}
	_, o.SendInitial = q["sendInitialEvents"]
	var err error
	if o.Labels, err = meta.ParseLabelSelector(q.Get("labelSelector")); err != nil {
		return nil, err
	}
	if o.Fields, err = meta.ParseFieldSelector(q.Get("fieldSelector")); err != nil {
		return nil, err
	}
	if o.Limit, err = integer(q, "limit"); err != nil {
		return nil, err
	}
	seconds, err := integer(q, "timeoutSeconds")
	if err != nil {
		return nil, err
	}
	o.Timeout = time.Duration(max(0, min(seconds, 1<<31))) * time.Second
	causes := o.faults(watch)
	if watch && o.SendInitial && !h.o.Features.Enabled(features.WatchList) {
		causes = append(causes, mustNot("sendInitialEvents", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"))
	}
	if len(causes) > 0 {
		return nil, meta.Invalid(meta.GroupKind{Group: t.Names.Group(wellknown.GroupMeta), Kind: "ListOptions"}, "", causes)
	}
	if err = checkFields(o.Fields, r.Version); err != nil {
		return nil, err
	}
	if o.Revision, err = objects.ParseRevision(o.Version); err != nil {
		return nil, err
	}
	if !h.o.Features.Enabled(features.APIListChunking) {
		o.Limit, o.Continue = 0, ""
	}
	o.Bookmarks = o.Bookmarks && h.o.Features.Enabled(features.WatchBookmark)
	return o, nil
}

// faults returns the violations of the list table: invalid combinations of resourceVersionMatch,
// resourceVersion, continue and sendInitialEvents.
func (o *listOptions) faults(watch bool) []meta.StatusCause {
	if watch {
		return o.watchFaults()
	}
	var causes []meta.StatusCause
	if o.Match != "" {
		if o.Version == "" {
			causes = append(causes, mustNot("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"))
		}
		if o.Continue != "" {
			causes = append(causes, noMatchWithToken())
		}
		switch {
		case o.Match != "Exact" && o.Match != "NotOlderThan":
			causes = append(causes, unsupported("resourceVersionMatch", o.Match, "Exact", "NotOlderThan"))
		case o.Match == "Exact" && o.Version == "0":
			causes = append(causes, mustNot("resourceVersionMatch", `resourceVersionMatch "Exact" is forbidden for resourceVersion "0"`))
		}
	}
	if o.SendInitial {
		causes = append(causes, mustNot("sendInitialEvents", "sendInitialEvents is forbidden for list"))
	}
	return causes
}

// watchFaults is faults for a watch. A watch without resourceVersion begins with the current state, as with
// sendInitialEvents.
func (o *listOptions) watchFaults() []meta.StatusCause {
	var causes []meta.StatusCause
	match, initial := o.Match, o.SendInitial
	if match == "" && !initial && (o.Version == "" || o.Version == "0") {
		match, initial = "NotOlderThan", true
	}
	if initial && match != "NotOlderThan" {
		causes = append(causes, mustNot("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	}
	if match == "" {
		return causes
	}
	if !initial {
		causes = append(causes, mustNot("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
	}
	if match != "NotOlderThan" {
		causes = append(causes, unsupported("resourceVersionMatch", match, "NotOlderThan"))
	}
	if o.Continue != "" {
		causes = append(causes, noMatchWithToken())
	}
	return causes
}

func noMatchWithToken() meta.StatusCause {
	return mustNot("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
}

// mustNot returns the violation for a parameter that is forbidden.
func mustNot(field, why string) meta.StatusCause {
	return meta.StatusCause{Reason: meta.CauseForbidden, Field: field, Message: "Forbidden: " + why}
}

// checkFields returns an error if a field selector has a field that is not selectable in the version.
func checkFields(s meta.FieldSelector, v *resource.Version) error {
	for _, r := range s.Requirements() {
		inNamespace := r.Field == "metadata.namespace" && (v.Namespaced || v.AnyNamespace)
		if r.Field != "metadata.name" && !inNamespace && v.Selectable(r.Field) == nil {
			return meta.BadRequest("field label not supported: %s", r.Field)
		}
	}
	return nil
}

func integer(q url.Values, name string) (int64, error) {
	if !q.Has(name) {
		return 0, nil
	}
	s := q.Get(name)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, meta.BadRequest("%s: %q is not an integer", name, s)
	}
	return n, nil
}

// writeOptions are the query parameters of create, update and patch.
type writeOptions struct {
	dryRun     bool
	manager    string
	validation string // Ignore, Warn or Strict
	validate   string // fieldValidation as sent
	force      bool
	forceSet   bool
}

// parseWriteOptions reads and checks the parameters. causes are violations that were found before.
func parseWriteOptions(q url.Values, p names.Profile, kind string, causes ...meta.StatusCause) (*writeOptions, error) {
	o := &writeOptions{manager: q.Get("fieldManager"), validation: q.Get("fieldValidation"), validate: q.Get("fieldValidation"), force: requestinfo.Truthy(q, "force")}
	_, o.forceSet = q["force"]
	causes = append(causes, apply.ValidateManager(o.manager, "fieldManager", false)...)
	dryRun, faults := parseDryRun(q["dryRun"])
	o.dryRun, causes = dryRun, append(causes, faults...)
	switch o.validation {
	case "":
		o.validation = "Warn"
	case "Ignore", "Warn", "Strict":
	default:
		causes = append(causes, unsupported("fieldValidation", o.validation, "", "Ignore", "Strict", "Warn"))
	}
	if len(causes) > 0 {
		return nil, meta.Invalid(meta.GroupKind{Group: p.Group(wellknown.GroupMeta), Kind: kind}, "", causes)
	}
	return o, nil
}

// parseDryRun parses the parameter dryRun. All is a dry run; an absent or empty parameter is not.
func parseDryRun(values []string) (dry bool, faults []meta.StatusCause) {
	if len(values) == 0 || slices.Equal(values, []string{""}) {
		return false, nil
	}
	for _, v := range values {
		if v != "All" {
			return false, []meta.StatusCause{unsupported("dryRun", v, "All")}
		}
	}
	return true, nil
}

// unsupported returns the violation for a parameter with an unsupported value.
func unsupported(field, value string, supported ...string) meta.StatusCause {
	for i, word := range supported {
		supported[i] = strconv.Quote(word)
	}
	return meta.StatusCause{Reason: meta.CauseNotSupported, Field: field,
		Message: fmt.Sprintf("Unsupported value: %q: supported values: %s", value, strings.Join(supported, ", "))}
}

// managerFor returns the field manager of a write: the fieldManager parameter, otherwise the
// product of the User-Agent, otherwise "unknown".
func (o *writeOptions) managerFor(h *http.Request) string {
	if o.manager != "" {
		return o.manager
	}
	const limit = 128 // bytes, as in apply.ValidateManager
	var b strings.Builder
	if h != nil {
		product, _, _ := strings.Cut(h.UserAgent(), "/")
		for _, r := range product {
			if !unicode.IsPrint(r) {
				continue
			}
			if b.Len()+utf8.RuneLen(r) > limit {
				break
			}
			b.WriteRune(r)
		}
	}
	return cmp.Or(b.String(), "unknown")
}

// object returns the options as an object, for admission.
func (o *writeOptions) object(p names.Profile, kind string) *meta.Object {
	tree := map[string]any{"kind": kind, "apiVersion": p.Group(wellknown.GroupMeta) + "/v1"}
	if o.dryRun {
		tree["dryRun"] = []any{"All"}
	}
	if o.manager != "" {
		tree["fieldManager"] = o.manager
	}
	if o.validate != "" {
		tree["fieldValidation"] = o.validate
	}
	if o.forceSet {
		tree["force"] = o.force
	}
	return meta.NewObject(tree)
}
