package certificates

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CertificateSigningRequestV1beta1 is a request in version v1beta1, where signerName and usages are
// optional.
type CertificateSigningRequestV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the request. It is immutable.
	Spec CertificateSigningRequestSpecV1beta1 `json:"spec" protobuf:"2" schema:"ratcheting"`

	// Status is the decision and the certificate.
	Status CertificateSigningRequestStatusV1beta1 `json:"status,omitempty" protobuf:"3"`
}

// CertificateSigningRequestSpecV1beta1 is the request and the identity of the requester.
type CertificateSigningRequestSpecV1beta1 struct {
	// Request is a PKCS#10 certification request in a PEM block of type CERTIFICATE REQUEST.
	Request []byte `json:"request" protobuf:"1"`

	// Username of the requester, set by the server.
	Username string `json:"username,omitempty" protobuf:"2"`

	// UID of the requester, set by the server.
	UID string `json:"uid,omitempty" protobuf:"3"`

	// Groups of the requester, set by the server.
	Groups []string `json:"groups,omitempty" protobuf:"4" schema:"listType=atomic"`

	// Usages are the key usages of the certificate; default digital signature and key encipherment.
	Usages []string `json:"usages,omitempty" protobuf:"5" schema:"listType=atomic"`

	// Extra attributes of the requester, set by the server.
	Extra map[string][]string `json:"extra,omitempty" protobuf:"6"`

	// SignerName identifies the signer, in the form domain/name. By default the server derives it from
	// the request.
	SignerName *string `json:"signerName,omitempty" protobuf:"7" schema:"format=signer-name"`

	// ExpirationSeconds is the requested validity in seconds, at least 600. The signer may issue a
	// shorter certificate.
	ExpirationSeconds *int32 `json:"expirationSeconds,omitempty" protobuf:"8" schema:"min=600,reason.min=may not specify a duration less than 600 seconds (10 minutes)"`
}

// CertificateSigningRequestStatusV1beta1 is the decision about a request and its result.
type CertificateSigningRequestStatusV1beta1 struct {
	// Conditions are Approved, Denied, Failed and types of the signer's own, without repeated types.
	Conditions []CertificateSigningRequestConditionV1beta1 `json:"conditions,omitempty" protobuf:"1" schema:"listType=map,listMapKeys=type,repeats"`

	// Certificate is the issued certificate followed by its chain, in PEM.
	Certificate []byte `json:"certificate,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// CertificateSigningRequestConditionV1beta1 is a decision about a request.
type CertificateSigningRequestConditionV1beta1 struct {
	// Type is Approved, Denied, Failed or a signer's own.
	Type string `json:"type" protobuf:"1" schema:"required,reason.required=must specify a condition type"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"2"`

	// Message explains the decision to people.
	Message string `json:"message,omitempty" protobuf:"3"`

	// LastUpdateTime is the time of the last write of the condition.
	LastUpdateTime meta.Time `json:"lastUpdateTime,omitempty" protobuf:"4"`

	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"5"`

	// Status is True (default), False or Unknown.
	Status string `json:"status,omitempty" protobuf:"6" schema:"default=True"`
}

func v1beta1() registry.VersionOf[CertificateSigningRequest] {
	return registry.Spoke[CertificateSigningRequestV1beta1, CertificateSigningRequest]{
		Version: "v1beta1", ToHub: (*CertificateSigningRequestV1beta1).hub, FromHub: (*CertificateSigningRequest).v1beta1, Default: defaultV1beta1,
		Lifetime:    registry.Lifetime{Introduced: "1.4", Deprecated: "1.19", Removed: "1.22"},
		Replacement: older.Use[CertificateSigningRequest](wellknown.GroupCertificates + "/v1"),
		Fields:      map[string]string{"spec.signerName": "spec.signerName"},
	}
}

// isV1beta1 reports whether a write comes through v1beta1, which has fewer rules than v1.
func isV1beta1(v meta.GroupVersion) bool { return v.Version == "v1beta1" }

// allowAnyUsages drops the schema violations in spec.usages of a write through v1beta1, which accepts
// any usage.
func allowAnyUsages(w *registry.Change[meta.Object]) {
	if isV1beta1(w.Version) {
		w.SchemaViolations = slices.DeleteFunc(slices.Clone(w.SchemaViolations), func(c meta.StatusCause) bool { return strings.HasPrefix(c.Field, "spec.usages[") })
	}
}

func defaultV1beta1(w *registry.Change[CertificateSigningRequestV1beta1]) {
	s := &w.New.Spec
	if len(s.Usages) == 0 {
		s.Usages = []string{"digital signature", "key encipherment"}
	}
	if s.SignerName == nil {
		requester := ""
		if user := meta.UserFrom(w.Context); user != nil {
			requester = user.Name
		}
		signer := w.Names.Wire(s.signer(requester))
		s.SignerName = &signer
	}
}

// signer returns the signer of a request that names none: the signer for kubelet client or serving
// certificates if subject, alternative names and usages fit, else the legacy signer. A serving
// certificate is only derived if the requester is the node itself.
func (s *CertificateSigningRequestSpecV1beta1) signer(requester string) string {
	r, err := pki.ParseRequest(s.Request)
	if err != nil || !strings.HasPrefix(r.Subject.CommonName, "system:node:") || !slices.Equal(r.Subject.Organization, []string{"system:nodes"}) ||
		len(r.EmailAddresses) > 0 || len(r.URIs) > 0 {
		return wellknown.SignerLegacyUnknown
	}
	uses := func(last string) bool {
		usages := slices.Sorted(slices.Values(s.Usages))
		return slices.Equal(usages, slices.Sorted(slices.Values([]string{"digital signature", "key encipherment", last})))
	}
	switch addresses := len(r.DNSNames) + len(r.IPAddresses); {
	case addresses > 0 && uses("server auth") && requester == r.Subject.CommonName:
		return wellknown.SignerNodeServing
	case addresses == 0 && uses("client auth"):
		return wellknown.SignerClientNode
	}
	return wellknown.SignerLegacyUnknown
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
