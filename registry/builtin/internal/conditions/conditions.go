// Package conditions validates lists of meta.Condition.
package conditions

import (
	"regexp"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// reason is the form of a condition's reason.
var reason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// Check reports missing and malformed fields of conditions, and types that occur twice.
func Check(f *check.Violations, at *check.Path, list []meta.Condition) {
	const maxReason, maxMessage = 1024, 32 << 10
	seen := map[string]bool{}
	for i, c := range list {
		at := at.Index(i)
		if seen[c.Type] {
			f.Duplicate(at, c.Type)
		}
		seen[c.Type] = true
		f.Format(at.Field("type"), c.Type, meta.CheckQualifiedName(c.Type))
		f.OneOf(at.Field("status"), c.Status, "False", "True", "Unknown")
		if c.ObservedGeneration < 0 {
			f.Invalid(at.Field("observedGeneration"), c.ObservedGeneration, "must be greater than or equal to zero")
		}
		if c.LastTransitionTime.IsZero() {
			f.Required(at.Field("lastTransitionTime"), "")
		}
		switch {
		case c.Reason == "":
			f.Required(at.Field("reason"), "")
		case !reason.MatchString(c.Reason):
			f.Invalid(at.Field("reason"), c.Reason, meta.RegexMessage("a condition reason is a word of letters, digits, '_', ',' and ':'", reason.String(), "MyReason"))
		}
		if len(c.Reason) > maxReason {
			f.TooLong(at.Field("reason"), maxReason)
		}
		if len(c.Message) > maxMessage {
			f.TooLong(at.Field("message"), maxMessage)
		}
	}
}
