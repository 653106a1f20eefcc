package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/apply"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/impersonate"
	"orch.io/controlplane/registry/meta"
)

// impersonate makes the request one of the user that its Impersonate headers
// name, if the caller may act as that user (access control, Impersonation).
func (s *Server) impersonate(r *request) error {
	user, err := impersonate.As(r.http.Context(), r.http.Header, r.user, s.authorizer, s.names)
	var denied *impersonate.Denied
	switch {
	case errors.As(err, &denied):
		return forbidden(denied.Action, denied.Reason)
	case err != nil:
		return err
	case user == r.user:
		return nil
	}
	r.impersonator, r.user = r.user, user
	if r.record.trail != nil {
		r.record.trail.Impersonate(user)
	}
	r.http = r.http.WithContext(auth.WithUser(r.http.Context(), user))
	return nil
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
