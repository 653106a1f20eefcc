package audit

import (
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
)

// event is the wire form of an audit Event, which records a stage of a request.
type event struct {
	Kind             string            `json:"kind"`
	APIVersion       string            `json:"apiVersion"`
	Level            string            `json:"level"`
	AuditID          string            `json:"auditID"`
	Stage            Stage             `json:"stage"`
	RequestURI       string            `json:"requestURI"`
	Verb             string            `json:"verb"`
	User             userInfo          `json:"user"`
	ImpersonatedUser *userInfo         `json:"impersonatedUser,omitempty"`
	SourceIPs        []string          `json:"sourceIPs,omitempty"`
	UserAgent        string            `json:"userAgent,omitempty"`
	ObjectRef        *objectRef        `json:"objectRef,omitempty"`
	ResponseStatus   *responseStatus   `json:"responseStatus,omitempty"`
	RequestObject    any               `json:"requestObject,omitempty"`
	ResponseObject   any               `json:"responseObject,omitempty"`
	Received         microTime         `json:"requestReceivedTimestamp"`
	StageTime        microTime         `json:"stageTimestamp"`
	Annotations      map[string]string `json:"annotations,omitempty"`
}

type userInfo struct {
	Username string              `json:"username,omitempty"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

type objectRef struct {
	Resource        string `json:"resource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	APIGroup        string `json:"apiGroup,omitempty"`
	APIVersion      string `json:"apiVersion,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Subresource     string `json:"subresource,omitempty"`
}

type responseStatus struct {
	Metadata struct{} `json:"metadata"`
	Status   string   `json:"status,omitempty"`
	Message  string   `json:"message,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Details  any      `json:"details,omitempty"`
	Code     int      `json:"code,omitempty"`
}

type microTime struct{ time.Time }

// MarshalText writes the API's MicroTime format.
func (t microTime) MarshalText() ([]byte, error) {
	return t.UTC().AppendFormat(nil, "2006-01-02T15:04:05.000000Z07:00"), nil
}

// MarshalJSON overrides the method of the embedded time.Time, which writes
// another format.
func (t microTime) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000000Z07:00"`), nil
}

func infoOf(u *auth.User) userInfo {
	if u == nil {
		return userInfo{}
	}
	return userInfo{u.Name, u.UID, u.Groups, u.Extra}
}

func refOf(a auth.Attributes) *objectRef {
	if a.Resource == "" {
		return nil
	}
	return &objectRef{Resource: a.Resource, Namespace: a.Namespace, Name: a.Name,
		APIGroup: a.Group, APIVersion: a.Version, Subresource: a.Subresource}
}

// groupVersion returns the apiVersion of events.
func groupVersion(p names.Profile) string { return p.Group(wellknown.GroupAudit) + "/v1" }
