// Package certificates defines the kind CertificateSigningRequest.
package certificates

import (
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Condition types that decide about a request. A condition of these types cannot be removed.
const (
	Approved = "Approved"
	Denied   = "Denied"
	Failed   = "Failed"
)

// CertificateSigningRequest asks a signer for an X.509 certificate. An approver sets the condition
// Approved or Denied through the subresource approval; then the signer sets the certificate through the
// subresource status. The spec is immutable.
type CertificateSigningRequest struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the request. The server sets username, uid, groups and extra to the caller of the create
	// and ignores values for them.
	Spec CertificateSigningRequestSpec `json:"spec" protobuf:"2" schema:"ratcheting"`

	// Status is the decision and the certificate.
	Status CertificateSigningRequestStatus `json:"status,omitempty" protobuf:"3"`
}

// CertificateSigningRequestSpec is the request and the identity of the requester.
type CertificateSigningRequestSpec struct {
	// Request is a PKCS#10 certification request in a PEM block of type CERTIFICATE REQUEST.
	Request []byte `json:"request" protobuf:"1"`

	// Username of the requester, set by the server.
	Username string `json:"username,omitempty" protobuf:"2"`

	// UID of the requester, set by the server.
	UID string `json:"uid,omitempty" protobuf:"3"`

	// Groups of the requester, set by the server.
	Groups []string `json:"groups,omitempty" protobuf:"4" schema:"listType=atomic"`

	// Usages are the key usages of the certificate, such as "client auth". At least one, without
	// duplicates.
	Usages []string `json:"usages,omitempty" protobuf:"5" schema:"required,optional,reason.required=usages must contain at least one value,listType=atomic,uniqueItems,items.enum=any|cert sign|client auth|code signing|content commitment|crl sign|data encipherment|decipher only|digital signature|email protection|encipher only|ipsec end system|ipsec tunnel|ipsec user|key agreement|key encipherment|microsoft sgc|netscape sgc|ocsp signing|s/mime|server auth|signing|timestamping"`

	// Extra attributes of the requester, set by the server.
	Extra map[string][]string `json:"extra,omitempty" protobuf:"6"`

	// SignerName identifies the signer, in the form domain/name.
	SignerName string `json:"signerName" protobuf:"7" schema:"required,format=signer-name"`

	// ExpirationSeconds is the requested validity in seconds, at least 600. The signer may issue a
	// shorter certificate.
	ExpirationSeconds *int32 `json:"expirationSeconds,omitempty" protobuf:"8" schema:"min=600,reason.min=may not specify a duration less than 600 seconds (10 minutes)"`
}

// CertificateSigningRequestStatus is the decision about a request and its result.
type CertificateSigningRequestStatus struct {
	// Conditions are Approved, Denied, Failed and types of the signer's own, without repeated types.
	Conditions []CertificateSigningRequestCondition `json:"conditions,omitempty" protobuf:"1" schema:"listType=map,listMapKeys=type,repeats"`

	// Certificate is the issued certificate followed by its chain, in PEM blocks of type CERTIFICATE.
	// It cannot be replaced.
	Certificate []byte `json:"certificate,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// CertificateSigningRequestCondition is a decision about a request.
type CertificateSigningRequestCondition struct {
	// Type is Approved, Denied, Failed or a signer's own. Approved and Denied exclude each other, and
	// none of the three can be removed.
	Type string `json:"type" protobuf:"1" schema:"required,reason.required=must specify a condition type"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"2"`

	// Message explains the decision to people.
	Message string `json:"message,omitempty" protobuf:"3"`

	// LastUpdateTime is the time of the last write of the condition; the server fills it in.
	LastUpdateTime meta.Time `json:"lastUpdateTime,omitempty" protobuf:"4"`

	// LastTransitionTime is the time at which the status last changed; the server fills it in.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"5"`

	// Status is True, False or Unknown. It must be True for Approved, Denied and Failed.
	Status string `json:"status" protobuf:"6" schema:"required"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[CertificateSigningRequest]{
		Group:        wellknown.GroupCertificates,
		Version:      "v1",
		Lifetime:     registry.Lifetime{Introduced: "1.19"},
		Versions:     []registry.VersionOf[CertificateSigningRequest]{v1beta1()},
		ShortNames:   []string{"csr"},
		Scope:        registry.Cluster,
		Status:       true,
		Columns:      columns(),
		Validate:     validateRequest,
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Fields:       []registry.SelectableField{{Name: "spec.signerName"}},
		Subresources: []registry.Subresource{
			{Name: "status", Merge: mergeStatus, Validate: validateStatus},
			{Name: "approval", Merge: mergeApproval, Metadata: compat.CallersMetadata(), Validate: validateApproval},
		},
		Behavior: registry.Behavior{
			Prepare:  prepare,
			Validate: allowAnyUsages,
		},
		Reference: &compat.Reference{
			NoGeneration:        true,
			Unowned:             []string{"spec", "status"},
			StatusMetadata:      compat.CallersMetadata(),
			DeleteAnswersStatus: true,
		},
	})}
}

func columns() []registry.Column {
	return []registry.Column{
		registry.AgeColumn(),
		registry.TextColumn("SignerName", "The name of the signer.", "spec", "signerName"),
		registry.TextColumn("Requestor", "The user who made the request.", "spec", "username"),
		{Name: "RequestedDuration", Type: "string", Doc: "The requested validity.", Cell: func(o *meta.Object) any {
			if s := o.Int("spec", "expirationSeconds"); s > 0 {
				return meta.FormatDuration(time.Duration(s) * time.Second)
			}
			return "<none>"
		}},
		{Name: "Condition", Type: "string", Doc: "The decision, and whether a certificate was issued.", Cell: conditionCell},
	}
}

// conditionCell shows the decision, and whether the request failed or a certificate was issued, such as
// "Approved,Issued".
func conditionCell(o *meta.Object) any {
	word := "Pending"
	failed := ""
	for _, v := range o.List("status", "conditions") {
		m, _ := v.(map[string]any)
		switch t, _ := m["type"].(string); t {
		case Approved, Denied:
			word = t
		case Failed:
			failed = "," + Failed
		}
	}
	if o.String("status", "certificate") != "" {
		failed += ",Issued"
	}
	return word + failed
}

// prepare sets the requester on create and keeps the stored spec on update. An update that changes the
// spec succeeds without effect, as at kube-apiserver.
func prepare(w *registry.Change[meta.Object]) {
	obj := w.New
	if w.Old != nil {
		obj.Set(meta.Clone(w.Old.Map("spec")), "spec")
		return
	}
	obj.Delete("status")
	for _, field := range []string{"username", "uid", "groups", "extra"} {
		obj.Delete("spec", field)
	}
	user := meta.UserFrom(w.Context)
	if user == nil {
		return
	}
	obj.Set(user.Name, "spec", "username")
	if user.UID != "" {
		obj.Set(user.UID, "spec", "uid")
	}
	if len(user.Groups) > 0 {
		obj.Set(meta.StringList(user.Groups), "spec", "groups")
	}
	for k, values := range user.Extra {
		obj.Set(meta.StringList(values), "spec", "extra", k)
	}
}

// mergeStatus copies the status of the request and completes the times of conditions.
func mergeStatus(obj, in *meta.Object) {
	old := obj.Clone()
	obj.CopyField(in, "status")
	setTimes(obj, old)
}

// mergeApproval replaces status.conditions and ignores the rest of the request.
func mergeApproval(obj, in *meta.Object) {
	old := obj.Clone()
	obj.Delete("status", "conditions")
	if list := in.List("status", "conditions"); len(list) > 0 {
		obj.Set(meta.Clone(list), "status", "conditions")
	}
	setTimes(obj, old)
}

// setTimes fills in missing times of conditions. old is the object before the write.
func setTimes(obj, old *meta.Object) {
	now := meta.FormatTime(time.Now())
	for _, v := range obj.List("status", "conditions") {
		c, ok := v.(map[string]any)
		if !ok {
			continue
		}
		if c["lastUpdateTime"] == nil {
			c["lastUpdateTime"] = now
		}
		if c["lastTransitionTime"] == nil {
			c["lastTransitionTime"] = transitionTime(old, c, now)
		}
	}
}

// transitionTime returns the transition time of the stored condition with the type and status of c, or
// now if there is none.
func transitionTime(old *meta.Object, c map[string]any, now string) any {
	for _, v := range old.List("status", "conditions") {
		before, _ := v.(map[string]any)
		if before["type"] == c["type"] && before["status"] == c["status"] && before["lastTransitionTime"] != nil {
			return before["lastTransitionTime"]
		}
	}
	return now
}
