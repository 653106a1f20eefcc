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

// round is the evaluation of all policies about one request.
type round struct {
	*policies
	matcher.Request
	denied      *denial                        // nil: the request may be made
	failures    []any                          // for the audit
	annotations map[string]map[string][]string // of policies, by their names and keys
}

// denial is why a request may not be made.
type denial struct {
	policy  *policy
	binding *binding // nil: the policy itself is wrong
	message string
	reason  meta.Reason
}

// validate evaluates the policies. Of those that refuse the request, the first one in the
// order of their names answers.
func (s *policies) validate(ctx context.Context, ar *admission.Request) error {
	r := &round{policies: s, Request: matcher.Request{Request: ar}, annotations: map[string]map[string][]string{}}
	list, err := s.calls(ctx, &r.Request, r.fail)
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := r.evaluate(ctx, c); err != nil {
			return err
		}
	}
	r.tell()
	if r.denied == nil {
		return nil
	}
	return r.denied.status(ar)
}

// deny refuses the request, unless it is refused already.
func (r *round) deny(d denial) {
	if r.denied == nil {
		r.denied = &d
	}
}

// status is the answer to a request that is refused.
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
		st.Details.Causes = append(st.Details.Causes, meta.Cause{Message: message})
	}
	return st
}

// err notes that an expression of a policy gave an error, which concerns only bindings that
// refuse.
func (r *round) err(p *policy, b *binding, err error) {
	if b.deny {
		r.fail(p, b, err)
	}
}

// fail notes that a policy could not be called as it should be.
func (r *round) fail(p *policy, b *binding, err error) {
	if !p.ignore {
		r.deny(denial{p, b, err.Error(), meta.ReasonInvalid})
	}
}

// evaluate evaluates a policy. The error ends the request.
func (r *round) evaluate(ctx context.Context, c call) error {
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
		r.err(p, b, err)
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
		if ctx.Err() != nil { // whatever the failure policy is, it was not evaluated
			return ctx.Err()
		}
		r.checked(c, time.Since(begun), ok || err != nil && p.ignore, errorType(v.fault, err))
		switch {
		case err != nil && !p.ignore:
			r.broken(p, b, i, fmt.Sprintf("expression '%s' resulted in error: %v", strings.TrimSpace(v.text), err), meta.ReasonInvalid)
		case err == nil && !ok:
			r.broken(p, b, i, v.says(ctx, vars, &left), v.reason)
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
			r.err(p, b, fmt.Errorf("audit annotation '%s' resulted in error: %w", a.key, err))
		case ok && text != "":
			r.annotate(p.name, a.key, text)
		}
	}
	return ctx.Err()
}

// checked counts a validation: for each action that the binding wants if the request may not
// go on because of it.
func (r *round) checked(c call, took time.Duration, passes bool, failed string) {
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

// broken does what the binding wants of a request that is not valid, or of which that
// cannot be said.
func (r *round) broken(p *policy, b *binding, index int, message string, reason meta.Reason) {
	if b.deny {
		r.deny(denial{p, b, message, reason})
	}
	if b.warn {
		r.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", p.name, b.name, message))
	}
	if b.note && len(r.failures) < mostFailures {
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

// longestAnnotation bounds what the audit is told under one key, in bytes. Values stand there
// with a separator between them.
const (
	longestAnnotation = 10 << 10
	separator         = ", "
)

// mostFailures bounds how many validations that failed the audit is told of.
const mostFailures = 100

func (r *round) annotate(policy, key, text string) {
	if r.annotations[policy] == nil {
		r.annotations[policy] = map[string][]string{}
	}
	values, room := r.annotations[policy][key], longestAnnotation
	for _, v := range values {
		room -= len(v) + len(separator)
	}
	if text = clip(text, room); text != "" && !slices.Contains(values, text) {
		r.annotations[policy][key] = append(values, text)
	}
}

// clip returns so many bytes of a text at most, in whole characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:max(most, 0)]
}

// tell tells the audit.
func (r *round) tell() {
	if len(r.failures) > 0 {
		r.Annotate(r.audit, string(codec.EncodeValue(nil, r.failures)))
	}
	for _, policy := range slices.Sorted(maps.Keys(r.annotations)) {
		for _, key := range slices.Sorted(maps.Keys(r.annotations[policy])) {
			r.Annotate(policy+"/"+key, strings.Join(r.annotations[policy][key], separator))
		}
	}
}
