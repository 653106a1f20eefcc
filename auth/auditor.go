package auth

import "net/http"

// Auditor keeps a record of requests. A server calls it; package audit
// implements it.
type Auditor interface {
	// Begin starts the record of a request as soon as its caller and what it
	// wants are known; a.User is who authenticated, nil if nobody did. id names
	// the request, also to its caller, in the header Audit-Id. The result is
	// never nil.
	Begin(r *http.Request, id string, a Action) Trail
}

// Trail is the record of one request. Its methods may be called from several
// goroutines; they never wait for where the record goes. Complete is called
// once, at the end.
type Trail interface {
	// Impersonate records as whom the request goes on.
	Impersonate(u *User)
	// Annotate adds a key and value; of one key the first value stays.
	Annotate(key, value string)
	// Concerns tells what the path does not say of the object that the request
	// is about: the name, uid and version in its body, as far as they are there.
	Concerns(name, uid, version string)
	// Request hands over the object of the request. body gives its JSON and is
	// called only if the record wants it.
	Request(body func() []byte)
	// Started records that the head of an answer without a foreseeable end,
	// such as a watch, has been sent.
	Started(code int)
	// Complete records the end.
	Complete(o Outcome)
}

// Outcome is how a request ended.
type Outcome struct {
	Code     int
	Err      error         // a *meta.Status, or nil
	Response func() []byte // the JSON of the object in the answer, or nil; called only if it is wanted
	Panicked bool
}
