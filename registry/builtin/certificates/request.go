// Package certificates holds the kind by which clients ask for certificates:
// CertificateSigningRequest.
package certificates

import (
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// The types of conditions that decide about a request.
const (
	Approved = "Approved"
	Denied   = "Denied"
	Failed   = "Failed"
)

// CertificateSigningRequest asks a signer for a certificate. Somebody approves
// or denies it, then the signer fills in the certificate. What it asks for and
// who asked cannot change.
type CertificateSigningRequest struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the request. Only request, signerName, usages and
	// expirationSeconds are the caller's; the rest is who asked.
	Spec CertificateSigningRequestSpec `json:"spec" protobuf:"2" schema:"ratcheting"`

	// Status is the decision and the certificate.
	Status CertificateSigningRequestStatus `json:"status,omitempty" protobuf:"3"`
}

// CertificateSigningRequestSpec is what is asked for, and who asked.
type CertificateSigningRequestSpec struct {
	// Request is a PKCS#10 request in a PEM block CERTIFICATE REQUEST.
	Request []byte `json:"request" protobuf:"1"`

	// Username of who asked, set on create.
	Username string `json:"username,omitempty" protobuf:"2"`

	// UID of who asked, set on create.
	UID string `json:"uid,omitempty" protobuf:"3"`

	// Groups of who asked, set on create.
	Groups []string `json:"groups,omitempty" protobuf:"4" schema:"listType=atomic"`

	// Usages of the key that the certificate shall name, such as "client auth".
	Usages []string `json:"usages,omitempty" protobuf:"5" schema:"required,optional,reason.required=usages must contain at least one value,listType=atomic,uniqueItems,items.enum=any|cert sign|client auth|code signing|content commitment|crl sign|data encipherment|decipher only|digital signature|email protection|encipher only|ipsec end system|ipsec tunnel|ipsec user|key agreement|key encipherment|microsoft sgc|netscape sgc|ocsp signing|s/mime|server auth|signing|timestamping"`

	// Extra attributes of who asked, set on create.
	Extra map[string][]string `json:"extra,omitempty" protobuf:"6"`

	// SignerName names the signer, as domain/name.
	SignerName string `json:"signerName" protobuf:"7" schema:"required,format=signer-name"`

	// ExpirationSeconds is how long the certificate shall be valid; the signer
	// may make it shorter. At least 600.
	ExpirationSeconds *int32 `json:"expirationSeconds,omitempty" protobuf:"8" schema:"min=600,reason.min=may not specify a duration less than 600 seconds (10 minutes)"`
}

// CertificateSigningRequestStatus is what became of a request.
type CertificateSigningRequestStatus struct {
	// Conditions are Approved, Denied and Failed, and others that signers know.
	Conditions []CertificateSigningRequestCondition `json:"conditions,omitempty" protobuf:"1" schema:"listType=map,listMapKeys=type,repeats"`

	// Certificate is the signed certificate and the chain above it, in PEM
	// blocks CERTIFICATE.
	Certificate []byte `json:"certificate,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// CertificateSigningRequestCondition is a decision about a request.
type CertificateSigningRequestCondition struct {
	// Type is Approved, Denied, Failed or a signer's own. Approved and Denied
	// exclude each other, and neither is ever taken back.
	Type string `json:"type" protobuf:"1" schema:"required,reason.required=must specify a condition type"`

	// Reason is a word for programs.
	Reason string `json:"reason,omitempty" protobuf:"2"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"3"`

	// LastUpdateTime is when the condition was last written.
	LastUpdateTime meta.Time `json:"lastUpdateTime,omitempty" protobuf:"4"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"5"`

	// Status is True, False or Unknown; Approved, Denied and Failed are True.
	Status string `json:"status" protobuf:"6" schema:"required"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[CertificateSigningRequest]{
		Group:        names.GroupCertificates,
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
			Validate: forgiveUsages,
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
		registry.Age(),
		registry.Text("SignerName", "Who shall sign.", "spec", "signerName"),
		registry.Text("Requestor", "Who asked.", "spec", "username"),
		{Name: "RequestedDuration", Type: "string", Doc: "How long the certificate shall be valid.", Cell: func(o *meta.Object) any {
			if s := o.Int("spec", "expirationSeconds"); s > 0 {
				return meta.FormatDuration(time.Duration(s) * time.Second)
			}
			return "<none>"
		}},
		{Name: "Condition", Type: "string", Doc: "What became of it.", Cell: decision},
	}
}

// decision sums up the state of a request.
func decision(o *meta.Object) any {
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

// prepare records who asks; afterwards nothing of the spec changes.
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

func mergeStatus(obj, in *meta.Object) {
	old := obj.Clone()
	obj.CopyField(in, "status")
	stamp(obj, old)
}

// mergeApproval takes nothing of the status but conditions.
func mergeApproval(obj, in *meta.Object) {
	old := obj.Clone()
	obj.Delete("status", "conditions")
	if list := in.List("status", "conditions"); len(list) > 0 {
		obj.Set(meta.Clone(list), "status", "conditions")
	}
	stamp(obj, old)
}

// stamp sets the times of conditions that have none.
func stamp(obj, old *meta.Object) {
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
			c["lastTransitionTime"] = transition(old, c, now)
		}
	}
}

// transition returns when the condition that c continues came about, or now.
func transition(old *meta.Object, c map[string]any, now string) any {
	for _, v := range old.List("status", "conditions") {
		before, _ := v.(map[string]any)
		if before["type"] == c["type"] && before["status"] == c["status"] && before["lastTransitionTime"] != nil {
			return before["lastTransitionTime"]
		}
	}
	return now
}
