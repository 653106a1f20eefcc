package certificates

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// validateRequest checks the spec on create only, because it is immutable, and the status on every
// write. The legacy signer is reserved for v1beta1.
func validateRequest(w *registry.Change[CertificateSigningRequest]) {
	if w.Old == nil {
		w.New.Spec.validate(&w.Violations)
		if !isV1beta1(w.Version) && w.New.Spec.SignerName == w.Names.Wire(wellknown.SignerLegacyUnknown) {
			w.Invalid(check.At("spec", "signerName"), w.New.Spec.SignerName, "this signer cannot be asked through this version")
		}
	}
	w.New.Status.validate(&w.Violations)
}

func (s *CertificateSigningRequestSpec) validate(f *check.Violations) {
	at := check.At("spec")
	if _, err := pki.ParseRequest(s.Request); err != nil {
		f.Invalid(at.Field("request"), s.Request, err.Error())
	}
}

// validate checks statuses and uniqueness of conditions and the form of the certificate.
func (s *CertificateSigningRequestStatus) validate(f *check.Violations) {
	at := check.At("status", "conditions")
	seen := map[string]bool{}
	for i, c := range s.Conditions {
		known := []string{"True", "False", "Unknown"}
		if c.Type == Approved || c.Type == Denied || c.Type == Failed {
			known = known[:1]
		}
		if c.Status != "" {
			f.OneOf(at.Index(i).Field("status"), c.Status, known...)
		}
		if seen[c.Type] {
			f.Duplicate(at.Index(i).Field("type"), c.Type)
		}
		seen[c.Type] = true
	}
	if seen[Approved] && seen[Denied] {
		f.Invalid(at, Denied, "Approved and Denied conditions are mutually exclusive")
	}
	if len(s.Certificate) == 0 {
		return
	}
	if _, err := pki.ParseChain(s.Certificate); err != nil {
		f.Invalid(check.At("status", "certificate"), "<certificate data>", err.Error())
	}
}

// validateApproval allows to add and change decisions, but not to remove them.
func validateApproval(w *registry.Change[meta.Object]) { keepDecisions(w) }

// validateStatus does not allow to add, change or remove an approval or denial: only the subresource
// approval, which has its own permission, decides. A certificate that is set cannot be replaced.
func validateStatus(w *registry.Change[meta.Object]) {
	keepDecisions(w)
	obj, old := w.New, w.Old
	for _, t := range []string{Approved, Denied} {
		switch before, now := findCondition(old, t), findCondition(obj, t); {
		case before == nil && now != nil:
			w.Forbidden(check.At("status", "conditions"), "updates may not add a condition of type "+t)
		case now != nil && !check.SemanticEqual(before, now):
			w.Forbidden(check.At("status", "conditions"), "updates may not modify a condition of type "+t)
		}
	}
	if before := old.String("status", "certificate"); before != "" && obj.String("status", "certificate") != before {
		w.Forbidden(check.At("status", "certificate"), "updates may not change existing certificate content")
	}
}

// keepDecisions reports each decision that the write removes.
func keepDecisions(w *registry.Change[meta.Object]) {
	for _, t := range []string{Approved, Denied, Failed} {
		if findCondition(w.Old, t) != nil && findCondition(w.New, t) == nil {
			w.Forbidden(check.At("status", "conditions"), "updates may not remove a condition of type "+t)
		}
	}
}

// findCondition returns the condition of the given type, or nil.
func findCondition(o *meta.Object, condition string) map[string]any {
	for _, v := range o.List("status", "conditions") {
		if m, _ := v.(map[string]any); m["type"] == condition {
			return m
		}
	}
	return nil
}
