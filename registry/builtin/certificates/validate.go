package certificates

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/registry"
)

func validateRequest(w *registry.Change[CertificateSigningRequest]) {
	if w.Old == nil {
		w.New.Spec.validate(&w.Faults)
		if !isV1beta1(w.Version) && w.New.Spec.SignerName == w.Names.Wire(names.SignerLegacyUnknown) {
			w.Invalid(check.At("spec", "signerName"), w.New.Spec.SignerName, "this signer cannot be asked through this version")
		}
	}
	w.New.Status.validate(&w.Faults)
}

func (s *CertificateSigningRequestSpec) validate(f *check.Faults) {
	at := check.At("spec")
	if _, err := pki.ParseRequest(s.Request); err != nil {
		f.Invalid(at.Field("request"), s.Request, err.Error())
	}
}

func (s *CertificateSigningRequestStatus) validate(f *check.Faults) {
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

// validateApproval lets decisions come, but not go.
func validateApproval(w *registry.Change[meta.Object]) { keepDecisions(w) }

// validateStatus lets decisions neither come nor go nor change, and no
// certificate be replaced.
func validateStatus(w *registry.Change[meta.Object]) {
	keepDecisions(w)
	obj, old := w.New, w.Old
	for _, t := range []string{Approved, Denied} {
		switch before, now := find(old, t), find(obj, t); {
		case before == nil && now != nil:
			w.Forbidden(check.At("status", "conditions"), "updates may not add a condition of type "+t)
		case now != nil && !check.Same(before, now):
			w.Forbidden(check.At("status", "conditions"), "updates may not modify a condition of type "+t)
		}
	}
	if before := old.String("status", "certificate"); before != "" && obj.String("status", "certificate") != before {
		w.Forbidden(check.At("status", "certificate"), "updates may not change existing certificate content")
	}
}

func keepDecisions(w *registry.Change[meta.Object]) {
	for _, t := range []string{Approved, Denied, Failed} {
		if find(w.Old, t) != nil && find(w.New, t) == nil {
			w.Forbidden(check.At("status", "conditions"), "updates may not remove a condition of type "+t)
		}
	}
}

// find returns the condition of a type, nil if there is none.
func find(o *meta.Object, condition string) map[string]any {
	for _, v := range o.List("status", "conditions") {
		if m, _ := v.(map[string]any); m["type"] == condition {
			return m
		}
	}
	return nil
}
