package batch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/selector"
)

// Limits of Indexed Jobs. Above maxIndexed completions, a Job with backoffLimitPerIndex has the lower
// limit maxIndexedLarge for parallelism and failed indexes, because its status lists indexes.
const (
	maxIndexed      = 100_000
	maxIndexedLarge = 10_000
	maxManager      = 63
)

// validateJob checks a Job. The order and the repetition of violations equal kube-apiserver's: on
// update, the violations of the spec come twice, followed by changes of immutable fields.
func validateJob(w *registry.Change[Job]) {
	job := w.New
	if w.Subresource == "status" {
		w.Violations = statusFaults(job, w.Old)
		return
	}
	at, s := check.At("spec"), &job.Spec
	rules := jobFaults(w.Names, w.SchemaViolations, at, s, w.Old != nil && check.SemanticEqual(s.Template, w.Old.Spec.Template))
	w.Violations = append(generatedFaults(w.Names, job), rules...)
	if s.isIndexed() && s.Completions != nil && *s.Completions > 0 {
		last := fmt.Sprintf("%s-%d", job.Name, *s.Completions-1)
		if len(meta.CheckDNSLabel(last)) > 0 {
			w.Invalid(check.At("metadata", "name"), job.Name, "will not able to create pod with invalid DNS label: "+last)
		}
	}
	if w.Old != nil {
		w.Violations = append(append(w.Violations, w.SchemaViolations...), rules...) // kube-apiserver reports them in both rounds of validation
		fixedFaults(&w.Violations, at, job, w.Old)
	}
}

// generatedFaults checks that the selector and the pod labels have the generated values, unless
// manualSelector is set.
func generatedFaults(p names.Profile, job *Job) check.Violations {
	var f check.Violations
	if isTrue(job.Spec.ManualSelector) || job.Spec.Selector == nil {
		return nil
	}
	have, at := job.Spec.Template.Labels, check.At("spec", "template", "metadata", "labels")
	labels := podLabels(p, job.UID, job.Name)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch value, ok := have[key]; {
		case !ok:
			f.Required(at.Key(key), "must be '"+labels[key]+"'")
		case value != labels[key]:
			f.Invalid(at.Key(key), have, "must be '"+labels[key]+"'")
		}
	}
	var wrong check.Violations
	if wrong.Selector(nil, job.Spec.Selector); len(wrong) == 0 && !selector.Matches(job.Spec.Selector, labels) {
		f.Invalid(check.At("spec", "selector"), job.Spec.Selector, "`selector` not auto-generated")
	}
	return f
}

// jobFaults checks the spec of a Job, including the selector. See core.CheckPodTemplate for unchanged.
func jobFaults(p names.Profile, found check.Violations, at *check.Path, s *JobSpec, unchanged bool) check.Violations {
	f := specFaults(p, found, at, s, unchanged)
	if s.Selector == nil {
		f.Required(at.Field("selector"), "")
	}
	before := len(f)
	if f.Selector(at.Field("selector"), s.Selector); len(f) == before && !selector.Matches(s.Selector, s.Template.Labels) {
		f.Invalid(at.Field("template").Field("metadata").Field("labels"), s.Template.Labels, "`selector` does not match template `labels`")
	}
	return f
}

// specFaults checks the spec of a Job or of a Job template, which has no selector yet.
func specFaults(p names.Profile, found check.Violations, at *check.Path, s *JobSpec, unchanged bool) check.Violations {
	var f check.Violations
	if s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil {
		f.Required(at.Field("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
	}
	if s.ManagedBy != nil {
		checkManager(&f, at.Field("managedBy"), *s.ManagedBy)
	}
	switch {
	case s.CompletionMode == nil || *s.CompletionMode == nonIndexed:
		for _, n := range []struct {
			field string
			value *int32
		}{{"backoffLimitPerIndex", s.BackoffLimitPerIndex}, {"maxFailedIndexes", s.MaxFailedIndexes}} {
			if n.value != nil {
				f.Invalid(at.Field(n.field), *n.value, "requires indexed completion mode")
			}
		}
	case *s.CompletionMode == indexed:
		s.checkIndexed(&f, at)
	}
	if s.PodFailurePolicy != nil {
		s.PodFailurePolicy.validate(&f, at.Field("podFailurePolicy"), s)
	}
	if s.SuccessPolicy != nil {
		s.SuccessPolicy.validate(&f, at.Field("successPolicy"), s)
	}
	if known := schema.EnumOf[JobSpec]("PodReplacementPolicy"); s.PodReplacementPolicy != nil {
		if s.PodFailurePolicy != nil {
			known = known[:1]
		}
		f.OneOf(at.Field("podReplacementPolicy"), *s.PodReplacementPolicy, known...)
	}
	f = append(f, core.CheckPodTemplate(p, found, at.Field("template"), &s.Template, unchanged)...)
	s.checkRestarts(&f, at.Field("template").Field("spec").Field("restartPolicy"))
	return f
}

// checkRestarts checks that the restart policy lets pods end.
func (s *JobSpec) checkRestarts(f *check.Violations, at *check.Path) {
	switch policy := s.Template.Spec.RestartPolicy; policy {
	case "", "Always":
		f.Required(at, `valid values: "OnFailure", "Never"`)
	case "Never":
	case "OnFailure":
		if s.PodFailurePolicy != nil {
			f.Invalid(at, policy, `only "Never" is supported when podFailurePolicy is specified`)
		}
	default:
		f.NotSupported(at, policy, "OnFailure", "Never")
	}
}

func (s *JobSpec) isIndexed() bool { return s.CompletionMode != nil && *s.CompletionMode == indexed }

// checkIndexed checks the limits of an Indexed Job.
func (s *JobSpec) checkIndexed(f *check.Violations, at *check.Path) {
	atMost := func(field string, n *int32, bound int32, when string) {
		if n != nil && *n > bound {
			f.Invalid(at.Field(field), *n, fmt.Sprintf("must be less than or equal to %d%s", bound, when))
		}
	}
	if s.Completions == nil {
		f.Required(at.Field("completions"), "when completion mode is Indexed")
	}
	atMost("parallelism", s.Parallelism, maxIndexed, " when completion mode is Indexed")
	if s.Completions == nil {
		return
	}
	if n := s.MaxFailedIndexes; n != nil && *n > *s.Completions {
		f.Invalid(at.Field("maxFailedIndexes"), *n, "must be less than or equal to completions")
	}
	atMost("maxFailedIndexes", s.MaxFailedIndexes, maxIndexed, "")
	if *s.Completions <= maxIndexed || s.BackoffLimitPerIndex == nil {
		return
	}
	if s.MaxFailedIndexes == nil {
		f.Required(at.Field("maxFailedIndexes"), fmt.Sprintf("must be specified when completions is above %d", maxIndexed))
	}
	when := fmt.Sprintf(" when completions are above %d and used with backoff limit per index", maxIndexed)
	atMost("parallelism", s.Parallelism, maxIndexedLarge, when)
	atMost("maxFailedIndexes", s.MaxFailedIndexes, maxIndexedLarge, when)
}

// checkManager checks the name of a controller, as domain/path.
func checkManager(f *check.Violations, at *check.Path, name string) {
	domain, path, ok := strings.Cut(name, "/")
	if name == "" {
		f.Required(at, "")
	} else if !ok || domain == "" || path == "" {
		f.Invalid(at, name, `must be a domain-prefixed path (such as "acme.io/foo")`)
	} else {
		f.Format(at, domain, meta.CheckDNSSubdomain(domain))
		f.Format(at, path, meta.CheckPathSegment(path))
	}
	if len(name) > maxManager {
		f.TooLong(at, maxManager)
	}
}

// fixedFaults reports changes of immutable fields. The scheduling directives of the template may change
// while the Job is suspended and has not started.
func fixedFaults(f *check.Violations, at *check.Path, job, before *Job) {
	s, old := &job.Spec, &before.Spec
	switch {
	case !s.isIndexed():
		f.Unchanged(at.Field("completions"), s.Completions, old.Completions)
	case s.Completions != nil && !check.SemanticEqual(s.Completions, old.Completions) && !check.SemanticEqual(s.Completions, s.Parallelism):
		f.Invalid(at.Field("completions"), s.Completions, "can only be modified in tandem with spec.parallelism")
	}
	f.Unchanged(at.Field("selector"), s.Selector, old.Selector)
	if isTrue(old.Suspend) && (before.Status.StartTime == nil || before.Status.hasCondition(suspended)) {
		spec, oldSpec := withoutDirectives(s.Template.Spec), withoutDirectives(old.Template.Spec)
		if !check.SemanticEqual(spec, oldSpec) {
			f.Unchanged(at.Field("template").Field("spec"), &s.Template.Spec, &old.Template.Spec)
		}
	} else {
		f.Unchanged(at.Field("template"), &s.Template, &old.Template)
	}
	f.Unchanged(at.Field("completionMode"), s.CompletionMode, old.CompletionMode)
	f.Unchanged(at.Field("podFailurePolicy"), s.PodFailurePolicy, old.PodFailurePolicy)
	f.Unchanged(at.Field("backoffLimitPerIndex"), s.BackoffLimitPerIndex, old.BackoffLimitPerIndex)
	f.Unchanged(at.Field("managedBy"), s.ManagedBy, old.ManagedBy)
	f.Unchanged(at.Field("successPolicy"), s.SuccessPolicy, old.SuccessPolicy)
}

// withoutDirectives returns the spec without scheduling directives and resources, which may change
// while a Job has no pods.
func withoutDirectives(spec core.PodSpec) core.PodSpec {
	spec.NodeSelector, spec.Tolerations, spec.SchedulingGates = nil, nil, nil
	if a := spec.Affinity; a != nil {
		others := *a
		others.NodeAffinity = nil
		spec.Affinity = &others
		if check.SemanticEqual(others, core.Affinity{}) {
			spec.Affinity = nil
		}
	}
	for _, list := range []*[]core.Container{&spec.Containers, &spec.InitContainers} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Resources = core.ResourceRequirements{}
		}
	}
	return spec
}
