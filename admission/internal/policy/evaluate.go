package policy

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/codec"
)

// evaluation is the evaluation of all policies for a request. It is not safe for concurrent use.
type evaluation struct {
	*policies
	matcher.Request
	denied      *denial                        // the first denial; nil: no policy has denied the request
	failures    []any                          // validation failures for the audit event
	annotations map[string]map[string][]string // audit annotations by policy and key
}

// denial is the reason for a refusal.
type denial struct {
	policy  *policy
	binding *binding // nil: the policy could not be evaluated
	message string
	reason  meta.Reason
}

// validate evaluates the policies that match a request. If several policies refuse it, the caller gets the refusal
// of the first policy by name.
func (s *policies) validate(ctx context.Context, ar *admission.Request) error {
	r := &evaluation{policies: s, Request: matcher.Request{Request: ar}, annotations: map[string]map[string][]string{}}
	list, err := s.calls(ctx, &r.Request, r.fail)
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := r.evaluate(ctx, c); err != nil {
			return err
		}
	}
	r.annotateAudit()
	if r.denied == nil {
		return nil
	}
	return r.denied.status(ar)
}

// deny records a denial, if it is the first.
func (r *evaluation) deny(d denial) {
	if r.denied == nil {
		r.denied = &d
	}
}

// status returns the Status for the refused caller.
func (d *denial) status(r *admission.Request) *meta.Status {
	by := "ValidatingAdmissionPolicy '" + d.policy.name + "'"
	if d.binding != nil {
		by += " with binding '" + d.binding.name + "'"
	}
	message := by + " denied request: " + d.message
	st := meta.Forbidden(r.Resource.GroupResource(), r.Name, message)
	st.Reason, st.Code = d.reason, http.StatusUnprocessableEntity
	switch d.reason {
	case meta.ReasonForbidden:
		st.Code = http.StatusForbidden
	case meta.ReasonUnauthorized:
		st.Code = http.StatusUnauthorized
	case meta.ReasonRequestEntityTooLarge:
		st.Code = http.StatusRequestEntityTooLarge
	}
	if st.Details != nil {
		st.Details.Causes = append(st.Details.Causes, meta.StatusCause{Message: message})
	}
	return st
}

// expressionError records the error of a match condition or annotation. It refuses the request only if the
// binding has the action Deny and the failure policy is not Ignore.
func (r *evaluation) expressionError(p *policy, b *binding, err error) {
	if b.deny {
		r.fail(p, b, err)
	}
}

// fail records that a policy could not be evaluated, which refuses the request unless its failure policy is
// Ignore.
func (r *evaluation) fail(p *policy, b *binding, err error) {
	if !p.ignore {
		r.deny(denial{p, b, err.Error(), meta.ReasonInvalid})
	}
}

// evaluate evaluates a call. The caller must end the request with a returned error, whatever the failure policy is.
func (r *evaluation) evaluate(ctx context.Context, c call) error {
	view, err := r.See(ctx, c.version)
	if err != nil {
		return err
	}
	p, b := c.policy, c.binding
	left := int64(cel.ObjectCost)
	vars := r.Vars(ctx, p.env, view, c.namespace, c.params, &left)
	begun := time.Now()
	ok, err := p.conditions.True(ctx, vars)
	r.counts.matched(p, r.Operation, time.Since(begun), ok, err)
	if err != nil {
		r.expressionError(p, b, err)
		return ctx.Err()
	} else if !ok {
		return nil
	}
	for i := range p.validations {
		v, begun := &p.validations[i], time.Now()
		ok, err := false, v.fault
		if err == nil {
			ok, err = v.holds.True(ctx, vars, &left)
		}
		if ctx.Err() != nil { // the expression was interrupted: do not apply the failure policy
			return ctx.Err()
		}
		r.checked(c, time.Since(begun), ok || err != nil && p.ignore, errorType(v.fault, err))
		switch {
		case err != nil && !p.ignore:
			r.takeActions(p, b, i, fmt.Sprintf("expression '%s' resulted in error: %v", strings.TrimSpace(v.text), err), meta.ReasonInvalid)
		case err == nil && !ok:
			r.takeActions(p, b, i, v.failureMessage(ctx, vars, &left), v.reason)
		}
		if left < 0 {
			return nil
		}
	}
	for _, a := range p.annotations {
		text, ok, err := "", false, a.fault
		if err == nil {
			text, ok, err = a.value.Text(ctx, vars, &left)
		}
		switch text = strings.TrimSpace(text); {
		case err != nil:
			r.expressionError(p, b, fmt.Errorf("audit annotation '%s' resulted in error: %w", a.key, err))
		case ok && text != "":
			r.annotate(p.name, a.key, text)
		}
	}
	return ctx.Err()
}

// checked counts a validation in the metrics. If the validation passes, it counts it as allowed, otherwise once for
// each action of the binding.
func (r *evaluation) checked(c call, took time.Duration, passes bool, failed string) {
	if passes {
		r.counts.check(c, took, failed, "allow")
		return
	}
	for _, a := range []struct {
		taken bool
		name  string
	}{{c.binding.deny, "deny"}, {c.binding.warn, "warn"}, {c.binding.note, "audit"}} {
		if a.taken {
			r.counts.check(c, took, failed, a.name)
		}
	}
}

// takeActions applies the actions of the binding after a validation was false or its expression failed.
func (r *evaluation) takeActions(p *policy, b *binding, index int, message string, reason meta.Reason) {
	if b.deny {
		r.deny(denial{p, b, message, reason})
	}
	if b.warn {
		r.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", p.name, b.name, message))
	}
	if b.note && len(r.failures) < maxFailures {
		actions := []any{}
		for _, a := range []struct {
			taken bool
			name  string
		}{{b.deny, "Deny"}, {b.warn, "Warn"}, {b.note, "Audit"}} {
			if a.taken {
				actions = append(actions, a.name)
			}
		}
		r.failures = append(r.failures, map[string]any{
			"message": message, "policy": p.name, "binding": b.name, "expressionIndex": int64(index), "validationActions": actions,
		})
	}
}

// maxAnnotation is the maximum length in bytes of an audit annotation, which joins its values with separator.
const (
	maxAnnotation = 10 << 10
	separator     = ", "
)

// maxFailures is the maximum number of failed validations in the audit event.
const maxFailures = 100

func (r *evaluation) annotate(policy, key, text string) {
	if r.annotations[policy] == nil {
		r.annotations[policy] = map[string][]string{}
	}
	values, room := r.annotations[policy][key], maxAnnotation
	for _, v := range values {
		room -= len(v) + len(separator)
	}
	if text = clip(text, room); text != "" && !slices.Contains(values, text) {
		r.annotations[policy][key] = append(values, text)
	}
}

// clip truncates a text to at most the given number of bytes, at a character boundary.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:max(most, 0)]
}

// annotateAudit writes the failures and annotations to the audit event.
func (r *evaluation) annotateAudit() {
	if len(r.failures) > 0 {
		r.Annotate(r.audit, string(codec.EncodeValue(nil, r.failures)))
	}
	for _, policy := range slices.Sorted(maps.Keys(r.annotations)) {
		for _, key := range slices.Sorted(maps.Keys(r.annotations[policy])) {
			r.Annotate(policy+"/"+key, strings.Join(r.annotations[policy][key], separator))
		}
	}
}
