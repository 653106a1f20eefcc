package meta

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Reason is the machine-readable reason of a Status.
type Reason string

// The reasons that clients know.
const (
	ReasonUnauthorized          Reason = "Unauthorized"
	ReasonForbidden             Reason = "Forbidden"
	ReasonNotFound              Reason = "NotFound"
	ReasonAlreadyExists         Reason = "AlreadyExists"
	ReasonConflict              Reason = "Conflict"
	ReasonGone                  Reason = "Gone"
	ReasonExpired               Reason = "Expired"
	ReasonInvalid               Reason = "Invalid"
	ReasonBadRequest            Reason = "BadRequest"
	ReasonMethodNotAllowed      Reason = "MethodNotAllowed"
	ReasonNotAcceptable         Reason = "NotAcceptable"
	ReasonUnsupportedMediaType  Reason = "UnsupportedMediaType"
	ReasonRequestEntityTooLarge Reason = "RequestEntityTooLarge"
	ReasonTooManyRequests       Reason = "TooManyRequests"
	ReasonInternalError         Reason = "InternalError"
	ReasonServerTimeout         Reason = "ServerTimeout"
	ReasonTimeout               Reason = "Timeout"
	ReasonServiceUnavailable    Reason = "ServiceUnavailable"
)

// CauseType is the machine-readable reason of a StatusCause.
type CauseType string

// The cause reasons that clients know.
const (
	CauseRequired      CauseType = "FieldValueRequired"
	CauseDuplicate     CauseType = "FieldValueDuplicate"
	CauseInvalid       CauseType = "FieldValueInvalid"
	CauseNotSupported  CauseType = "FieldValueNotSupported"
	CauseForbidden     CauseType = "FieldValueForbidden"
	CauseTooLong       CauseType = "FieldValueTooLong"
	CauseTooMany       CauseType = "FieldValueTooMany"
	CauseNotFound      CauseType = "FieldValueNotFound"
	CauseTypeInvalid   CauseType = "FieldValueTypeInvalid"
	CauseFieldManager  CauseType = "FieldManagerConflict"
	CauseTooLargeRV    CauseType = "ResourceVersionTooLarge"
	CauseUnexpected    CauseType = "UnexpectedServerResponse"
	CauseNSTerminating CauseType = "NamespaceTerminating"
)

// StatusCause is an error in a request: the field, the kind of error, and a message.
type StatusCause struct {
	Reason  CauseType `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Field   string    `json:"field,omitempty"`
}

// StatusDetails describes the subject of a Status. Kind is the resource type (configmaps) in most
// errors, and the kind (ConfigMap) in errors of reason Invalid.
type StatusDetails struct {
	Name              string        `json:"name,omitempty"`
	Group             string        `json:"group,omitempty"`
	Kind              string        `json:"kind,omitempty"`
	UID               string        `json:"uid,omitempty"`
	Causes            []StatusCause `json:"causes,omitempty"`
	RetryAfterSeconds int           `json:"retryAfterSeconds,omitempty"`
}

// Status is the response to a failed request, or to a request without an object to return. A
// *Status of a failed request is an error, and every error response of the server is a *Status.
type Status struct {
	Status  string // "Failure" or "Success"
	Message string
	Reason  Reason
	Details *StatusDetails
	Code    int

	// Continue is a token for continuing a list, in an Expired error: the rest of the list is
	// then read at a newer revision.
	Continue string
}

// Error returns the message.
func (s *Status) Error() string { return s.Message }

// Is reports whether target is a *Status with the same reason, for errors.Is(err,
// &Status{Reason: ...}).
func (s *Status) Is(target error) bool {
	t, ok := target.(*Status)
	return ok && t.Reason == s.Reason
}

// Object returns the Status as an API object.
func (s *Status) Object() *Object {
	metadata := map[string]any{}
	if s.Continue != "" {
		metadata["continue"] = s.Continue
	}
	tree := map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": s.Status}
	if s.Code != 0 {
		tree["code"] = int64(s.Code)
	}
	if s.Message != "" {
		tree["message"] = s.Message
	}
	if s.Reason != "" {
		tree["reason"] = string(s.Reason)
	}
	if s.Details != nil {
		tree["details"] = s.Details.tree()
	}
	return NewObject(tree)
}

func (d *StatusDetails) tree() map[string]any {
	t := map[string]any{}
	for k, v := range map[string]string{"name": d.Name, "group": d.Group, "kind": d.Kind, "uid": d.UID} {
		if v != "" {
			t[k] = v
		}
	}
	var causes []any
	for _, c := range d.Causes {
		m := map[string]any{}
		for k, v := range map[string]string{"reason": string(c.Reason), "message": c.Message, "field": c.Field} {
			if v != "" {
				m[k] = v
			}
		}
		causes = append(causes, m)
	}
	if causes != nil {
		t["causes"] = causes
	}
	if d.RetryAfterSeconds != 0 {
		t["retryAfterSeconds"] = int64(d.RetryAfterSeconds)
	}
	return t
}

// ReasonOf returns the reason of the first *Status in err's chain, or "".
func ReasonOf(err error) Reason {
	if err == nil { // avoids the allocation of errors.As in the common case
		return ""
	}
	var s *Status
	if errors.As(err, &s) {
		return s.Reason
	}
	return ""
}

// IsNotFound reports whether err is a Status with reason NotFound.
func IsNotFound(err error) bool { return ReasonOf(err) == ReasonNotFound }

// IsConflict reports whether err is a Status with reason Conflict.
func IsConflict(err error) bool { return ReasonOf(err) == ReasonConflict }

// IsAlreadyExists reports whether err is a Status with reason AlreadyExists.
func IsAlreadyExists(err error) bool { return ReasonOf(err) == ReasonAlreadyExists }

// Failure returns a Status error with any code and reason.
func Failure(code int, reason Reason, format string, args ...any) *Status {
	return &Status{Status: "Failure", Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func about(s *Status, r GroupResource, name string) *Status {
	s.Details = &StatusDetails{Group: r.Group, Kind: r.Resource, Name: name}
	return s
}

// NotFound returns the 404 Status for an object that does not exist.
func NotFound(r GroupResource, name string) *Status {
	return about(Failure(http.StatusNotFound, ReasonNotFound, "%s %q not found", r, name), r, name)
}

// NoSuchResource returns the 404 Status for a path that is not served.
func NoSuchResource() *Status {
	s := Failure(http.StatusNotFound, ReasonNotFound, "the server could not find the requested resource")
	s.Details = &StatusDetails{}
	return s
}

// AlreadyExists returns the 409 Status for a name that is taken.
func AlreadyExists(r GroupResource, name string) *Status {
	return about(Failure(http.StatusConflict, ReasonAlreadyExists, "%s %q already exists", r, name), r, name)
}

// Conflict returns the 409 Status for an object that is not in the state that a request
// requires.
func Conflict(r GroupResource, name, why string) *Status {
	return about(Failure(http.StatusConflict, ReasonConflict, "Operation cannot be fulfilled on %s %q: %s", r, name, why), r, name)
}

// Forbidden returns the 403 Status for a request that the caller may not make, or that a rule
// forbids.
func Forbidden(r GroupResource, name, why string) *Status {
	msg := fmt.Sprintf("%s %q is forbidden: %s", r, name, why)
	switch {
	case r.Resource == "":
		msg = "forbidden: " + why
	case name == "":
		msg = fmt.Sprintf("%s is forbidden: %s", r, why)
	}
	return about(Failure(http.StatusForbidden, ReasonForbidden, "%s", msg), r, name)
}

// Invalid returns the 422 Status of an object that violates rules. Each cause is
// listed once, even if several rules found it.
func Invalid(k GroupKind, name string, causes []StatusCause) *Status {
	var parts []string
	var distinct []StatusCause
	seen := map[StatusCause]bool{}
	for _, c := range causes {
		if seen[c] {
			continue
		}
		seen[c] = true
		distinct = append(distinct, c)
		part := c.Message
		if c.Field != "" {
			part = c.Field + ": " + part
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, ", ")
	if len(parts) > 1 {
		text = "[" + text + "]"
	}
	s := Failure(http.StatusUnprocessableEntity, ReasonInvalid, "%s %q is invalid: %s", k, name, text)
	s.Details = &StatusDetails{Group: k.Group, Kind: k.Kind, Name: name, Causes: distinct}
	return s
}

// BadRequest returns the 400 Status for a malformed request.
func BadRequest(format string, args ...any) *Status {
	return Failure(http.StatusBadRequest, ReasonBadRequest, format, args...)
}

// Unavailable returns the 503 Status for a server that temporarily cannot serve the request.
func Unavailable(format string, args ...any) *Status {
	return Failure(http.StatusServiceUnavailable, ReasonServiceUnavailable, format, args...)
}

// Timeout returns the 504 Status for a request that took too long.
func Timeout(format string, args ...any) *Status {
	return Failure(http.StatusGatewayTimeout, ReasonTimeout, format, args...)
}

// Expired returns the 410 Status for a revision that is no longer available.
func Expired(format string, args ...any) *Status {
	return Failure(http.StatusGone, ReasonExpired, format, args...)
}

// TooLarge returns the 413 Status for a request that exceeds a size limit.
func TooLarge(format string, args ...any) *Status {
	return Failure(http.StatusRequestEntityTooLarge, ReasonRequestEntityTooLarge, format, args...)
}

// InsufficientStorage returns the 507 Status for a write for which the store has no space.
func InsufficientStorage(format string, args ...any) *Status {
	return Failure(http.StatusInsufficientStorage, ReasonInternalError, format, args...)
}

// Internal returns the 500 Status for an unexpected error, whose text the response contains.
func Internal(err error) *Status {
	s := Failure(http.StatusInternalServerError, ReasonInternalError, "Internal error occurred: %v", err)
	s.Details = &StatusDetails{Causes: []StatusCause{{Message: err.Error()}}}
	return s
}

// MaxPath limits the field paths in messages, in bytes. Map keys may be of any length, and
// occur in the paths of all values below them.
const MaxPath = 4 << 10

// TruncatePath returns path as a string, cut to MaxPath bytes and marked with dots if it was cut.
func TruncatePath(path []byte) string {
	if len(path) > MaxPath {
		return strings.ToValidUTF8(string(path[:MaxPath]), "") + "..."
	}
	return string(path)
}
