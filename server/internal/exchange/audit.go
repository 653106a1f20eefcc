package exchange

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/wellknown"
)

// Record is the audit record of a request. Its methods do nothing if Trail is nil, as in a
// server without audit.
type Record struct {
	Trail   auth.Trail
	Outcome auth.Outcome
}

// Decided records the decision of the authorizer.
func (c *Record) Decided(p names.Profile, allowed bool, reason string) {
	if c.Trail == nil {
		return
	}
	decision := "forbid"
	if allowed {
		decision = "allow"
	}
	c.Trail.Annotate(p.Wire(wellknown.AuditDecision), decision)
	c.Trail.Annotate(p.Wire(wellknown.AuditReason), reason)
}

// Sent records the object in the body of the request.
func (c *Record) Sent(obj *meta.Object) {
	if c.Trail != nil {
		c.Trail.Concerns(obj.Name(), obj.UID(), obj.ResourceVersion())
		c.Trail.Request(objectJSON(obj))
	}
}

// SentOptions records the options in the body of the request.
func (c *Record) SentOptions(obj *meta.Object) {
	if c.Trail != nil {
		c.Trail.Request(objectJSON(obj))
	}
}

// SentBytes records a body that is not an object, such as a patch.
func (c *Record) SentBytes(body []byte) {
	if c.Trail != nil {
		c.Trail.Request(func() []byte { return body })
	}
}

// Answered records the object of the response.
func (c *Record) Answered(obj *meta.Object) {
	if c.Trail != nil {
		c.Outcome.Response = objectJSON(obj)
	}
}

// AnsweredStatus records the Status of the response.
func (c *Record) AnsweredStatus(st *meta.Status) {
	if c.Trail != nil {
		c.Outcome.Response = objectJSON(st.Object())
	}
}

// AnsweredBytes records the body of the response, which body returns if the audit asks for it.
func (c *Record) AnsweredBytes(body func() []byte) {
	if c.Trail != nil {
		c.Outcome.Response = body
	}
}

// Started records that a watch or a connection began.
func (c *Record) Started(code int) {
	if c.Trail != nil {
		c.Trail.Started(code)
	}
}

// Complete ends the record with the notes and the code of the response. It returns the number of
// annotations that had no room.
func (c *Record) Complete(n *Notes, code int) (leftOut int) {
	leftOut = n.annotate(c.Trail.Annotate) // the first value of a key counts
	c.Outcome.Code = code
	c.Trail.Complete(c.Outcome)
	return leftOut
}

// objectJSON returns a function that encodes the object as it is at the time of the call.
func objectJSON(obj *meta.Object) func() []byte {
	return func() []byte { return codec.EncodeJSON(nil, obj.Tree()) }
}
