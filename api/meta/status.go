package meta

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Reason is the machine-readable word of a Status.
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

// CauseReason is the machine-readable word of a Cause.
type CauseReason string

// The cause reasons that clients know.
const (
	CauseRequired      CauseReason = "FieldValueRequired"
	CauseDuplicate     CauseReason = "FieldValueDuplicate"
	CauseInvalid       CauseReason = "FieldValueInvalid"
	CauseNotSupported  CauseReason = "FieldValueNotSupported"
	CauseForbidden     CauseReason = "FieldValueForbidden"
	CauseTooLong       CauseReason = "FieldValueTooLong"
	CauseTooMany       CauseReason = "FieldValueTooMany"
	CauseNotFound      CauseReason = "FieldValueNotFound"
	CauseTypeInvalid   CauseReason = "FieldValueTypeInvalid"
	CauseFieldManager  CauseReason = "FieldManagerConflict"
	CauseTooLargeRV    CauseReason = "ResourceVersionTooLarge"
	CauseUnexpected    CauseReason = "UnexpectedServerResponse"
	CauseNSTerminating CauseReason = "NamespaceTerminating"
)

// Cause is one fault of a request: which field, what kind of fault, and why.
type Cause struct {
	Reason  CauseReason `json:"reason,omitempty"`
	Message string      `json:"message,omitempty"`
	Field   string      `json:"field,omitempty"`
}

// Details says what a Status is about. Kind is the resource type where the API
// names one (configmaps), else a kind.
type Details struct {
	Name              string  `json:"name,omitempty"`
	Group             string  `json:"group,omitempty"`
	Kind              string  `json:"kind,omitempty"`
	UID               string  `json:"uid,omitempty"`
	Causes            []Cause `json:"causes,omitempty"`
	RetryAfterSeconds int     `json:"retryAfterSeconds,omitempty"`
}

// Status is the answer to a request that failed, or to one that has nothing
// else to tell. A *Status with a Failure status is an error; every error that
// leaves the server is one.
type Status struct {
	Status  string // "Failure" or "Success"
	Message string
	Reason  Reason
	Details *Details
	Code    int

	// Continue is the token with which a list that cannot be continued as it
	// began can be continued nevertheless.
	Continue string
}

// Error returns the message.
func (s *Status) Error() string { return s.Message }

// Is makes errors.Is(err, &Status{Reason: ...}) compare reasons.
func (s *Status) Is(target error) bool {
	t, ok := target.(*Status)
	return ok && t.Reason == s.Reason
}

// Object returns the Status as the object that goes on the wire.
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

func (d *Details) tree() map[string]any {
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

// ReasonOf returns the reason of the Status in err's chain, or "".
func ReasonOf(err error) Reason {
	if err == nil { // which most callers have, and costs nothing
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

// Failure returns a Status error of any code and reason.
func Failure(code int, reason Reason, format string, args ...any) *Status {
	return &Status{Status: "Failure", Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func about(s *Status, r GroupResource, name string) *Status {
	s.Details = &Details{Group: r.Group, Kind: r.Resource, Name: name}
	return s
}

// NotFound says that an object does not exist.
func NotFound(r GroupResource, name string) *Status {
	return about(Failure(http.StatusNotFound, ReasonNotFound, "%s %q not found", r, name), r, name)
}

// NoSuchResource says that a path leads to nothing.
func NoSuchResource() *Status {
	s := Failure(http.StatusNotFound, ReasonNotFound, "the server could not find the requested resource")
	s.Details = &Details{}
	return s
}

// AlreadyExists says that a name is taken.
func AlreadyExists(r GroupResource, name string) *Status {
	return about(Failure(http.StatusConflict, ReasonAlreadyExists, "%s %q already exists", r, name), r, name)
}

// Conflict says that an object is not in the state that a request needs.
func Conflict(r GroupResource, name, why string) *Status {
	return about(Failure(http.StatusConflict, ReasonConflict, "Operation cannot be fulfilled on %s %q: %s", r, name, why), r, name)
}

// Forbidden says that the caller may not, or that a rule forbids it.
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
func Invalid(k GroupKind, name string, causes []Cause) *Status {
	var parts []string
	var distinct []Cause
	seen := map[Cause]bool{}
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
	s.Details = &Details{Group: k.Group, Kind: k.Kind, Name: name, Causes: distinct}
	return s
}

// BadRequest says that a request cannot be understood.
func BadRequest(format string, args ...any) *Status {
	return Failure(http.StatusBadRequest, ReasonBadRequest, format, args...)
}

// Unavailable is 503: the server cannot do anything just now.
func Unavailable(format string, args ...any) *Status {
	return Failure(http.StatusServiceUnavailable, ReasonServiceUnavailable, format, args...)
}

// Timeout is 504: what was asked for took too long.
func Timeout(format string, args ...any) *Status {
	return Failure(http.StatusGatewayTimeout, ReasonTimeout, format, args...)
}

// Expired is 410: the version that was asked for is forgotten.
func Expired(format string, args ...any) *Status {
	return Failure(http.StatusGone, ReasonExpired, format, args...)
}

// TooLarge is 413: there is more of something than its bound.
func TooLarge(format string, args ...any) *Status {
	return Failure(http.StatusRequestEntityTooLarge, ReasonRequestEntityTooLarge, format, args...)
}

// NoRoom is 507: what should be stored has no room.
func NoRoom(format string, args ...any) *Status {
	return Failure(http.StatusInsufficientStorage, ReasonInternalError, format, args...)
}

// Internal says that the server failed.
func Internal(err error) *Status {
	s := Failure(http.StatusInternalServerError, ReasonInternalError, "Internal error occurred: %v", err)
	s.Details = &Details{Causes: []Cause{{Message: err.Error()}}}
	return s
}

// MaxPath bounds the path of a field in what a caller is told, in bytes: the keys
// of a map may be of any length, and stand in the path of all below them.
const MaxPath = 4 << 10

// CutPath returns a path as text, cut to MaxPath bytes.
func CutPath(path []byte) string {
	if len(path) > MaxPath {
		return strings.ToValidUTF8(string(path[:MaxPath]), "") + "..."
	}
	return string(path)
}
