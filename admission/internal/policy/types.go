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

// What one policy may cost to check, and to tell of: types for one of its rules and for all,
// and bytes of warnings.
const (
	typesOfRule  = 10
	typesOfAll   = 100
	mostWarnings = 256 << 10
)

// checks returns the controller that writes into the status of a policy which of its
// expressions do not fit the types that its rules name. That a type comes later, or
// changes, makes no policy due.
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

// checked reports whether the status tells of a policy as it is.
func checked(o *meta.Object) bool {
	return o.Int("metadata", "generation") <= o.Int("status", "observedGeneration")
}

// warnings checks the validations of a policy against each type that its rules name.
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
			if text == "" || size > mostWarnings || ctx.Err() != nil {
				continue
			}
			var told []string
			for i, kind := range kinds {
				if envs[i] == nil {
					continue
				}
				if why := envs[i].Check(text); why != "" {
					told = append(told, kind.String()+": "+why+"\n")
				}
			}
			if len(told) == 0 {
				continue
			}
			warning := strings.Join(told, "\n")
			size += len(warning)
			list = append(list, map[string]any{"fieldRef": "spec.validations[" + strconv.Itoa(i) + "]." + field, "warning": warning})
		}
	}
	return list
}

// typed returns the environment of a policy's expressions about objects of one kind, nil if
// there is none.
func (s *policies) typed(spec *meta.Object, kind meta.GroupVersionKind) *cel.RequestEnv {
	sees := cel.Sees{Namespace: true, Asks: true, Variables: true, Object: s.env.Schema(kind)}
	if params := spec.Map("paramKind"); params != nil {
		gv := meta.ParseAPIVersion(spec.String("paramKind", "apiVersion"))
		sees.Params = true
		sees.ParamsOf = s.env.Schema(meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: spec.String("paramKind", "kind")})
	}
	env, err := cel.NewRequestEnv(s.env.Names, sees)
	if err != nil {
		s.log.Error("the expressions of a policy cannot be checked", "error", err)
		return nil
	}
	for _, v := range spec.Objects("variables") {
		_ = env.Variable(v.String("name"), v.String("expression")) // what is wrong with it is told where it is used
	}
	return env
}

// kindsOf returns the kinds that the rules of a policy name. Rules that stand for many, as *
// does, name none.
func (s *policies) kindsOf(spec *meta.Object) (kinds []meta.GroupVersionKind) {
	types := s.env.Client.Types()
	for _, rule := range sub(spec, "matchConstraints").Objects("resourceRules") {
		groups, versions, resources := rule.Strings("apiGroups"), rule.Strings("apiVersions"), rule.Strings("resources")
		if slices.Contains(groups, "*") || slices.Contains(versions, "*") {
			continue
		}
		left := typesOfRule
		for _, t := range types {
			if !slices.Contains(resources, t.Plural) {
				continue
			}
			for _, v := range t.ServedVersions {
				kind := meta.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: t.Kind}
				if left == 0 || len(kinds) == typesOfAll || !slices.Contains(groups, v.Group) || !slices.Contains(versions, v.Version) || slices.Contains(kinds, kind) {
					continue
				}
				left--
				kinds = append(kinds, kind)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b meta.GroupVersionKind) int {
		return strings.Compare(a.Group+"\x00"+a.Version+"\x00"+a.Kind, b.Group+"\x00"+b.Version+"\x00"+b.Kind)
	})
	return kinds
}
