// Package impersonate reads the Impersonate-* headers, with which a caller with permission acts as
// another user.
package impersonate

import (
	"net/http"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/extras"
	"orch.io/controlplane/internal/wellknown"
)

// The impersonation headers.
const (
	UserHeader  = "Impersonate-User"
	GroupHeader = "Impersonate-Group"
	UIDHeader   = "Impersonate-Uid"
	ExtraPrefix = "Impersonate-Extra-"
)

// maxChecks limits the permissions that a request can require.
const maxChecks = 500

// Request is the impersonation that the headers of a request ask for.
type Request struct {
	// User is the user to act as, with the groups that such a user always has.
	User *auth.User
	// Checks are the attributes that must all be authorized for the caller. The server sets their
	// User.
	Checks []auth.Attributes
}

// Parse reads the headers. The result is nil if h has none of them. Empty users and uids are ignored;
// of several users or uids, the first applies. A group, uid or extra without a user is a 400
// *meta.Status.
func Parse(h http.Header, p names.Profile) (*Request, error) {
	more := extras.Headers(h, ExtraPrefix)
	groups, uids, users := h[GroupHeader], given(h[UIDHeader]), given(h[UserHeader])
	if len(users) == 0 && len(groups) == 0 && len(uids) == 0 && len(more) == 0 {
		return nil, nil
	}
	switch {
	case len(users) == 0:
		return nil, meta.BadRequest("%s, %s and %s* need %s", GroupHeader, UIDHeader, ExtraPrefix, UserHeader)
	}
	q := &Request{User: &auth.User{Name: users[0], Groups: slices.Clone(groups)}}
	q.Checks = append(q.Checks, userCheck(users[0]))
	for _, g := range groups {
		q.require(auth.Attributes{Version: "v1", Resource: "groups", Name: g})
	}
	review := p.Group(wellknown.GroupAuthentication)
	for _, e := range more {
		if q.User.Extra == nil {
			q.User.Extra = map[string][]string{}
		}
		for _, v := range e.Values {
			q.User.Extra[e.Key] = append(q.User.Extra[e.Key], v)
			q.require(auth.Attributes{Group: review, Version: "v1", Resource: "userextras", Subresource: e.Key, Name: v})
		}
	}
	if len(uids) > 0 {
		q.User.UID = uids[0]
		q.require(auth.Attributes{Group: review, Version: "v1", Resource: "uids", Name: uids[0]})
	}
	if len(q.Checks) > maxChecks {
		return nil, meta.BadRequest("more than %d things to impersonate", maxChecks)
	}
	q.complete(len(groups) > 0)
	return q, nil
}

// given returns the values that are not empty.
func given(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
}

// account splits the user name of a service account. ok is false if no service account can have the
// name; it is then handled like any other user name.
func account(user string) (namespace, name string, ok bool) {
	namespace, name, ok = auth.SplitServiceAccount(user)
	return namespace, name, ok && len(meta.CheckDNSLabel(namespace)) == 0 && len(meta.CheckDNSSubdomain(name)) == 0
}

func userCheck(name string) auth.Attributes {
	if ns, account, ok := account(name); ok {
		return auth.Attributes{Verb: "impersonate", Version: "v1", Resource: "serviceaccounts", Namespace: ns, Name: account}
	}
	return auth.Attributes{Verb: "impersonate", Version: "v1", Resource: "users", Name: name}
}

func (q *Request) require(a auth.Attributes) {
	a.Verb = "impersonate"
	q.Checks = append(q.Checks, a)
}

// complete adds the groups that every user of this name has.
func (q *Request) complete(groupsGiven bool) {
	u := q.User
	if ns, _, ok := account(u.Name); ok && !groupsGiven {
		u.Groups = auth.ServiceAccountGroups(ns)
	}
	switch {
	case u.InGroup(auth.Unauthenticated):
	case u.Name == auth.Anonymous:
		u.Groups = append(u.Groups, auth.Unauthenticated)
	case !u.InGroup(auth.Authenticated):
		u.Groups = append(u.Groups, auth.Authenticated)
	}
}
