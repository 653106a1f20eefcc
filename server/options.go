package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/requestinfo"
)

// listOptions are the query parameters of list, watch and deletecollection.
type listOptions struct {
	objects.Selection
	timeout       time.Duration
	bookmarks     bool
	initialEvents bool
	sendInitial   bool // sendInitialEvents was given
}

// listOptions reads and checks the parameters. Selectors and numbers that
// cannot be read are 400, combinations that make no sense 422 ListOptions.
func (s *Server) listOptions(r *exchange.Request, watch bool) (*listOptions, error) {
	q, t := r.Query, r.Version.Type
	o := &listOptions{Selection: objects.Selection{
		Namespace: r.Namespace, Name: r.Name,
		Version: q.Get("resourceVersion"), Match: q.Get("resourceVersionMatch"), Continue: q.Get("continue"),
	}, bookmarks: requestinfo.Truthy(q, "allowWatchBookmarks"), initialEvents: requestinfo.Truthy(q, "sendInitialEvents")}
	_, o.sendInitial = q["sendInitialEvents"]
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
	o.timeout = time.Duration(max(0, min(seconds, 1<<31))) * time.Second
	causes := o.faults(watch)
	if watch && o.sendInitial && !s.features.Enabled(features.WatchList) {
		causes = append(causes, mustNot("sendInitialEvents", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"))
	}
	if len(causes) > 0 {
		return nil, meta.Invalid(meta.GroupKind{Group: t.Names.Group(names.GroupMeta), Kind: "ListOptions"}, "", causes)
	}
	if err = checkFields(o.Fields, r.Version); err != nil {
		return nil, err
	}
	if o.Revision, err = objects.ParseRevision(o.Version); err != nil {
		return nil, err
	}
	if !s.features.Enabled(features.APIListChunking) {
		o.Limit, o.Continue = 0, ""
	}
	o.bookmarks = o.bookmarks && s.features.Enabled(features.WatchBookmark)
	return o, nil
}

// faults checks the list table: which of resourceVersionMatch, resourceVersion,
// continue and sendInitialEvents may stand together.
func (o *listOptions) faults(watch bool) []meta.Cause {
	if watch {
		return o.watchFaults()
	}
	var causes []meta.Cause
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
	if o.sendInitial {
		causes = append(causes, mustNot("sendInitialEvents", "sendInitialEvents is forbidden for list"))
	}
	return causes
}

// watchFaults are the faults of a watch. One that names no version asks for the
// current state first, as with sendInitialEvents.
func (o *listOptions) watchFaults() []meta.Cause {
	var causes []meta.Cause
	match, initial := o.Match, o.sendInitial
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

func noMatchWithToken() meta.Cause {
	return mustNot("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
}

// mustNot is the fault of a parameter that may not stand where it does.
func mustNot(field, why string) meta.Cause {
	return meta.Cause{Reason: meta.CauseForbidden, Field: field, Message: "Forbidden: " + why}
}

// checkFields refuses fields that objects of a version cannot be selected by.
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
	validate   string // fieldValidation as it was sent; empty: it was not
	force      bool
	forceSet   bool
}

// parseWriteOptions reads them; causes are the faults found before.
func parseWriteOptions(q url.Values, p names.Profile, kind string, causes ...meta.Cause) (*writeOptions, error) {
	o := &writeOptions{manager: q.Get("fieldManager"), validation: q.Get("fieldValidation"), validate: q.Get("fieldValidation"), force: requestinfo.Truthy(q, "force")}
	_, o.forceSet = q["force"]
	causes = append(causes, apply.CheckManager(o.manager, false)...)
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
		return nil, meta.Invalid(meta.GroupKind{Group: p.Group(names.GroupMeta), Kind: kind}, "", causes)
	}
	return o, nil
}

// parseDryRun reads the dryRun parameter: unset or bare means a normal request,
// All a dry run; anything else is a fault.
func parseDryRun(values []string) (dry bool, faults []meta.Cause) {
	if len(values) == 0 || slices.Equal(values, []string{""}) {
		return false, nil
	}
	for _, v := range values {
		if v != "All" {
			return false, []meta.Cause{unsupported("dryRun", v, "All")}
		}
	}
	return true, nil
}

// unsupported is the fault of a parameter that takes certain words only.
func unsupported(field, value string, supported ...string) meta.Cause {
	for i, word := range supported {
		supported[i] = strconv.Quote(word)
	}
	return meta.Cause{Reason: meta.CauseNotSupported, Field: field,
		Message: fmt.Sprintf("Unsupported value: %q: supported values: %s", value, strings.Join(supported, ", "))}
}

// managerFor is the field manager of a write: the one that was named, else the
// product part of the User-Agent.
func (o *writeOptions) managerFor(h *http.Request) string {
	agent := ""
	if h != nil {
		agent = h.UserAgent()
	}
	return apply.ManagerName(o.manager, agent)
}

// object returns the options as admission sees them.
func (o *writeOptions) object(p names.Profile, kind string) *meta.Object {
	tree := map[string]any{"kind": kind, "apiVersion": p.Group(names.GroupMeta) + "/v1"}
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
