package auth

import "net/http"

// Auditor records requests. The server calls it for each request; package audit
// implements it.
type Auditor interface {
	// Begin starts the record of a request, after authentication and before
	// authorization. a.User is the authenticated user, nil if authentication
	// failed. id is the request's id, which the caller gets in the header
	// Audit-Id. The result is never nil.
	Begin(r *http.Request, id string, a Attributes) Trail
}

// Trail is the record of a request. Its methods are safe for concurrent use
// and do not wait for the record to be written. Complete is called once, as the
// last method.
type Trail interface {
	// Impersonate records the impersonated user.
	Impersonate(u *User)
	// Annotate adds an annotation. If the key exists, its value stays.
	Annotate(key, value string)
	// Concerns records the name, uid and resourceVersion from the request's
	// body, which the path does not contain. Each can be empty.
	Concerns(name, uid, version string)
	// Request records the object of the request. It calls body, which returns
	// the object's JSON, only if the record includes the object.
	Request(body func() []byte)
	// Started records that the header of a long-running response, such as a
	// watch, was sent.
	Started(code int)
	// Complete records the result of the request.
	Complete(o Outcome)
}

// Outcome is the result of a request.
type Outcome struct {
	Code     int
	Err      error         // a *meta.Status, or nil
	Response func() []byte // returns the JSON of the response's object; nil if there is none. Called only if the record includes the object
	Panicked bool
}
