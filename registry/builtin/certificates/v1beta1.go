package certificates

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CertificateSigningRequestV1beta1 is a request as version v1beta1 shows it: it need not
// say who shall sign and what for.
type CertificateSigningRequestV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what is asked for. It cannot change.
	Spec CertificateSigningRequestSpecV1beta1 `json:"spec" protobuf:"2" schema:"ratcheting"`

	// Status is what became of it.
	Status CertificateSigningRequestStatusV1beta1 `json:"status,omitempty" protobuf:"3"`
}

// CertificateSigningRequestSpecV1beta1 is what is asked for.
type CertificateSigningRequestSpecV1beta1 struct {
	// Request is the request in PEM.
	Request []byte `json:"request" protobuf:"1"`

	// Username is who asks. The server fills it in.
	Username string `json:"username,omitempty" protobuf:"2"`

	// UID is that of who asks. The server fills it in.
	UID string `json:"uid,omitempty" protobuf:"3"`

	// Groups are those of who asks. The server fills them in.
	Groups []string `json:"groups,omitempty" protobuf:"4" schema:"listType=atomic"`

	// Usages are what the certificate shall be good for; by default digital signature and
	// key encipherment.
	Usages []string `json:"usages,omitempty" protobuf:"5" schema:"listType=atomic"`

	// Extra is what else is known of who asks. The server fills it in.
	Extra map[string][]string `json:"extra,omitempty" protobuf:"6"`

	// SignerName is who shall sign; by default one that the request fits.
	SignerName *string `json:"signerName,omitempty" protobuf:"7" schema:"format=signer-name"`

	// ExpirationSeconds is how long the certificate shall be valid.
	ExpirationSeconds *int32 `json:"expirationSeconds,omitempty" protobuf:"8" schema:"min=600,reason.min=may not specify a duration less than 600 seconds (10 minutes)"`
}

// CertificateSigningRequestStatusV1beta1 is what became of a request.
type CertificateSigningRequestStatusV1beta1 struct {
	// Conditions are Approved, Denied and Failed.
	Conditions []CertificateSigningRequestConditionV1beta1 `json:"conditions,omitempty" protobuf:"1" schema:"listType=map,listMapKeys=type,repeats"`

	// Certificate is what was issued.
	Certificate []byte `json:"certificate,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// CertificateSigningRequestConditionV1beta1 is a decision about a request.
type CertificateSigningRequestConditionV1beta1 struct {
	// Type is Approved, Denied or Failed.
	Type string `json:"type" protobuf:"1" schema:"required,reason.required=must specify a condition type"`

	// Reason is a word for programs that says why.
	Reason string `json:"reason,omitempty" protobuf:"2"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"3"`

	// LastUpdateTime is when the condition was last written.
	LastUpdateTime meta.Time `json:"lastUpdateTime,omitempty" protobuf:"4"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"5"`

	// Status is True, which it is by default, False or Unknown.
	Status string `json:"status,omitempty" protobuf:"6" schema:"default=True"`
}

func v1beta1() registry.VersionOf[CertificateSigningRequest] {
	return registry.Spoke[CertificateSigningRequestV1beta1, CertificateSigningRequest]{
		Version: "v1beta1", ToHub: (*CertificateSigningRequestV1beta1).hub, FromHub: (*CertificateSigningRequest).v1beta1, Default: defaultV1beta1,
		Lifetime:    registry.Lifetime{Introduced: "1.4", Deprecated: "1.19", Removed: "1.22"},
		Replacement: older.Use[CertificateSigningRequest](names.GroupCertificates + "/v1"),
		Fields:      map[string]string{"spec.signerName": "spec.signerName"},
	}
}

// isV1beta1 reports whether a write comes through version v1beta1, which has fewer rules.
func isV1beta1(v meta.GroupVersion) bool { return v.Version == "v1beta1" }

// forgiveUsages drops what v1 says of usages that version v1beta1 does not.
func forgiveUsages(w *registry.Change[meta.Object]) {
	if isV1beta1(w.Version) {
		w.Found = slices.DeleteFunc(slices.Clone(w.Found), func(c meta.Cause) bool { return strings.HasPrefix(c.Field, "spec.usages[") })
	}
}

func defaultV1beta1(w *registry.Change[CertificateSigningRequestV1beta1]) {
	s := &w.New.Spec
	if len(s.Usages) == 0 {
		s.Usages = []string{"digital signature", "key encipherment"}
	}
	if s.SignerName == nil {
		asker := ""
		if user := meta.UserFrom(w.Context); user != nil {
			asker = user.Name
		}
		signer := w.Names.Wire(s.signer(asker))
		s.SignerName = &signer
	}
}

// signer returns the signer that a request of somebody fits which names none.
func (s *CertificateSigningRequestSpecV1beta1) signer(asker string) string {
	r, err := pki.ParseRequest(s.Request)
	if err != nil || !strings.HasPrefix(r.Subject.CommonName, "system:node:") || !slices.Equal(r.Subject.Organization, []string{"system:nodes"}) ||
		len(r.EmailAddresses) > 0 || len(r.URIs) > 0 {
		return names.SignerLegacyUnknown
	}
	uses := func(last string) bool {
		usages := slices.Sorted(slices.Values(s.Usages))
		return slices.Equal(usages, slices.Sorted(slices.Values([]string{"digital signature", "key encipherment", last})))
	}
	switch addresses := len(r.DNSNames) + len(r.IPAddresses); {
	case addresses > 0 && uses("server auth") && asker == r.Subject.CommonName:
		return names.SignerNodeServing
	case addresses == 0 && uses("client auth"):
		return names.SignerClientNode
	}
	return names.SignerLegacyUnknown
}

func (in *CertificateSigningRequestV1beta1) hub(out *CertificateSigningRequest) error {
	s := &in.Spec
	out.Spec = CertificateSigningRequestSpec{
		Request: s.Request, Username: s.Username, UID: s.UID, Groups: s.Groups, Usages: s.Usages, Extra: s.Extra, ExpirationSeconds: s.ExpirationSeconds,
	}
	if s.SignerName != nil {
		out.Spec.SignerName = *s.SignerName
	}
	out.Status.Certificate = in.Status.Certificate
	for _, c := range in.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, CertificateSigningRequestCondition(c))
	}
	return nil
}

func (in *CertificateSigningRequest) v1beta1(out *CertificateSigningRequestV1beta1) error {
	s := &in.Spec
	out.Spec = CertificateSigningRequestSpecV1beta1{
		Request: s.Request, Username: s.Username, UID: s.UID, Groups: s.Groups, Usages: s.Usages, Extra: s.Extra, ExpirationSeconds: s.ExpirationSeconds,
	}
	if s.SignerName != "" {
		out.Spec.SignerName = &s.SignerName
	}
	out.Status.Certificate = in.Status.Certificate
	for _, c := range in.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, CertificateSigningRequestConditionV1beta1(c))
	}
	return nil
}
