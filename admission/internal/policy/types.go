package policy

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/cel"
)

// The limits of checking a policy: types for each rule and in total, and bytes of warnings.
const (
	maxTypesPerRule = 10
	maxTypes        = 100
	maxWarnings     = 256 << 10
)

// checks returns the controller that checks the expressions of policies against the types in their rules, and writes
// type errors to their statuses. A policy is checked when its spec changes, but not when a type changes.
func (s *policies) checks() client.Controller {
	return client.Controller{
		Name: "validatingadmissionpolicy-status", Types: []meta.GroupResource{s.kind},
		MapEvent: func(e client.Event) []string {
			if e.Object == nil || checked(e.Object) {
				return nil
			}
			return []string{e.Key.Name}
		},
		Reconcile: func(ctx context.Context, client client.Client, name string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			_, err := client.Update(ctx, s.kind, meta.Key{Name: name}, "status", func(o *meta.Object) error {
				if checked(o) {
					return nil
				}
				found := map[string]any{}
				if warnings := s.warnings(ctx, o); len(warnings) > 0 {
					found["expressionWarnings"] = warnings
				}
				o.Set(o.Int("metadata", "generation"), "status", "observedGeneration")
				o.Set(found, "status", "typeChecking")
				return ctx.Err()
			})
			if meta.IsNotFound(err) {
				err = nil
			}
			return 0, err
		},
	}
}

// checked reports whether the status belongs to the current spec.
func checked(o *meta.Object) bool {
	return o.Int("metadata", "generation") <= o.Int("status", "observedGeneration")
}

// warnings checks the validations of a policy against each type in its rules, and returns the value of
// status.typeChecking.expressionWarnings.
func (s *policies) warnings(ctx context.Context, o *meta.Object) (list []any) {
	spec := sub(o, "spec")
	kinds := s.kindsOf(spec)
	envs := make([]*cel.RequestEnv, len(kinds))
	for i, kind := range kinds {
		envs[i] = s.typed(spec, kind)
	}
	size := 0
	for i, v := range spec.Objects("validations") {
		for _, field := range []string{"expression", "messageExpression"} {
			text := v.String(field)
			if text == "" || size > maxWarnings || ctx.Err() != nil {
				continue
			}
			var errs []string
			for i, kind := range kinds {
				if envs[i] == nil {
					continue
				}
				if why := envs[i].Check(text); why != "" {
					errs = append(errs, kind.String()+": "+why+"\n")
				}
			}
			if len(errs) == 0 {
				continue
			}
			warning := strings.Join(errs, "\n")
			size += len(warning)
			list = append(list, map[string]any{"fieldRef": "spec.validations[" + strconv.Itoa(i) + "]." + field, "warning": warning})
		}
	}
	return list
}

// typed returns a CEL environment with the schemas of a kind and of paramKind, or nil if it cannot be created.
func (s *policies) typed(spec *meta.Object, kind meta.GroupVersionKind) *cel.RequestEnv {
	sees := cel.Sees{Namespace: true, Asks: true, Variables: true, Object: s.env.Schema(kind)}
	if params := spec.Map("paramKind"); params != nil {
		gv := meta.ParseAPIVersion(spec.String("paramKind", "apiVersion"))
		sees.Params = true
		sees.ParamsOf = s.env.Schema(meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: spec.String("paramKind", "kind")})
	}
	env, err := cel.NewRequestEnv(s.env.Names, sees)
	if err != nil {
		s.log.Error("failed to check the types of policy expressions", "error", err)
		return nil
	}
	for _, v := range spec.Objects("variables") {
		_ = env.Variable(v.String("name"), v.String("expression")) // an expression that uses an invalid variable reports its error
	}
	return env
}

// kindsOf returns the kinds in the rules of a policy, sorted. Rules with wildcards are skipped.
func (s *policies) kindsOf(spec *meta.Object) (kinds []meta.GroupVersionKind) {
	types := s.env.Client.Types()
	for _, rule := range sub(spec, "matchConstraints").Objects("resourceRules") {
		groups, versions, resources := rule.Strings("apiGroups"), rule.Strings("apiVersions"), rule.Strings("resources")
		if slices.Contains(groups, "*") || slices.Contains(versions, "*") {
			continue
		}
		remaining := maxTypesPerRule
		for _, t := range types {
			if !slices.Contains(resources, t.Plural) {
				continue
			}
			for _, v := range t.ServedVersions {
				kind := meta.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: t.Kind}
				if remaining == 0 || len(kinds) == maxTypes || !slices.Contains(groups, v.Group) || !slices.Contains(versions, v.Version) || slices.Contains(kinds, kind) {
					continue
				}
				remaining--
				kinds = append(kinds, kind)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b meta.GroupVersionKind) int {
		return strings.Compare(a.Group+"\x00"+a.Version+"\x00"+a.Kind, b.Group+"\x00"+b.Version+"\x00"+b.Kind)
	})
	return kinds
}
