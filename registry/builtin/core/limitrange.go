package core

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// Built-in types of limits. Other types have a domain.
const (
	limitPod       = "Pod"
	limitContainer = "Container"
	limitClaim     = "PersistentVolumeClaim"
)

// LimitRange limits the resources of each object in its namespace, and sets defaults for containers
// without requests or limits.
type LimitRange struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec lists the limits.
	Spec LimitRangeSpec `json:"spec,omitempty" protobuf:"2"`
}

// LimitRangeSpec lists limits.
type LimitRangeSpec struct {
	// Limits, at most one entry for each type of object.
	Limits []LimitRangeItem `json:"limits" protobuf:"1" schema:"listType=atomic"`
}

// LimitRangeItem limits the resources of objects of a type.
type LimitRangeItem struct {
	// Type is Pod, Container, PersistentVolumeClaim or a name with a domain.
	Type string `json:"type" protobuf:"1" schema:"format=qualified-name"`

	// Max is the largest amount of each resource.
	Max map[string]meta.Quantity `json:"max,omitempty" protobuf:"2" schema:"values.milli"`

	// Min is the smallest amount of each resource.
	Min map[string]meta.Quantity `json:"min,omitempty" protobuf:"3" schema:"values.milli"`

	// Default is the default limit of containers; itself by default max. Not for pods.
	Default map[string]meta.Quantity `json:"default,omitempty" protobuf:"4" schema:"values.milli"`

	// DefaultRequest is the default request of containers; itself by default default or min. Not for
	// pods.
	DefaultRequest map[string]meta.Quantity `json:"defaultRequest,omitempty" protobuf:"5" schema:"values.milli"`

	// MaxLimitRequestRatio is the largest ratio of limit and request; at least 1.
	MaxLimitRequestRatio map[string]meta.Quantity `json:"maxLimitRequestRatio,omitempty" protobuf:"6" schema:"values.milli"`
}

func limitRanges() *registry.Kind {
	created := registry.TextColumn("Created At", "The time of creation.", "metadata", "creationTimestamp")
	created.Type = "date"
	return registry.Of(registry.Definition[LimitRange]{
		Version:    version,
		ShortNames: []string{"limits"},
		Columns:    []registry.Column{created},
		Default:    defaultLimits,
		Validate:   validateLimits,
		Behavior: registry.Behavior{Prepare: func(w *registry.Change[meta.Object]) {
			if len(w.New.List("spec", "limits")) == 0 {
				w.New.Set(nil, "spec", "limits") // clients expect null for an empty list
			}
		}},
		Reference: &compat.Reference{
			NoGeneration: true, DeleteAnswersStatus: true, CreateOnPut: true,
		},
	})
}

// defaultLimits sets the defaults of containers: the limit from max, the request from the limit or min.
func defaultLimits(w *registry.Change[LimitRange]) {
	for i := range w.New.Spec.Limits {
		if l := &w.New.Spec.Limits[i]; l.Type == limitContainer {
			l.Default = withMissing(l.Default, l.Max)
			l.DefaultRequest = withMissing(withMissing(l.DefaultRequest, l.Default), l.Min)
		}
	}
}

// withMissing returns amounts with the missing entries of others.
func withMissing(amounts, others map[string]meta.Quantity) map[string]meta.Quantity {
	out := maps.Clone(others)
	if out == nil {
		return amounts
	}
	maps.Copy(out, amounts)
	return out
}

func validateLimits(w *registry.Change[LimitRange]) {
	r := &podRules{specRules: specRules{names: w.Names}}
	seen := map[string]bool{}
	for i := range w.New.Spec.Limits {
		l, at := &w.New.Spec.Limits[i], check.At("spec", "limits").Index(i)
		if !w.SchemaViolations.In(at.Field("type")) && !strings.Contains(l.Type, "/") && l.Type != limitPod && l.Type != limitContainer && l.Type != limitClaim {
			r.Invalid(at.Field("type"), l.Type, "must be a standard limit type or fully qualified")
		}
		if seen[l.Type] {
			r.Duplicate(at.Field("type"), l.Type)
		}
		seen[l.Type] = true
		r.limit(at, l)
	}
	w.Violations = append(w.Violations, r.Violations...)
}

func (r *podRules) limit(at *check.Path, l *LimitRangeItem) {
	r.limitNames(at.Field("max"), l.Type, l.Max)
	r.limitNames(at.Field("min"), l.Type, l.Min)
	if l.Type == limitPod {
		const why = "may not be specified when `type` is 'Pod'"
		if len(l.Default) > 0 {
			r.Forbidden(at.Field("default"), why)
		}
		if len(l.DefaultRequest) > 0 {
			r.Forbidden(at.Field("defaultRequest"), why)
		}
	} else {
		r.limitNames(at.Field("default"), l.Type, l.Default)
		r.limitNames(at.Field("defaultRequest"), l.Type, l.DefaultRequest)
	}
	_, hasMin := l.Min["storage"]
	if _, hasMax := l.Max["storage"]; l.Type == limitClaim && !hasMin && !hasMax {
		r.Required(at.Field("limits"), "either minimum or maximum storage value is required, but neither was provided")
	}
	all := map[string]bool{}
	for _, amounts := range []map[string]meta.Quantity{l.Max, l.Min, l.Default, l.DefaultRequest, l.MaxLimitRequestRatio} {
		for name := range amounts {
			all[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r.limitOf(at, name, l)
	}
}

func (r *podRules) limitNames(at *check.Path, limit string, amounts map[string]meta.Quantity) {
	for _, name := range sortedNames(amounts) {
		if limit == limitPod || limit == limitContainer {
			r.resourceName(at.Key(name), name)
		} else {
			r.standardName(at.Key(name), name)
		}
	}
}

// limitOf checks the relations between the amounts of a resource.
func (r *podRules) limitOf(at *check.Path, name string, l *LimitRangeItem) {
	above := func(field, lowName, highName string, low, high map[string]meta.Quantity, reported meta.Quantity) {
		a, ok := low[name]
		b, bounded := high[name]
		if ok && bounded && a.Cmp(b) > 0 {
			r.Invalid(at.Field(field).Key(name), reported, fmt.Sprintf("%s value %s is greater than %s value %s", lowName, a, highName, b))
		}
	}
	above("min", "min", "max", l.Min, l.Max, l.Min[name])
	above("defaultRequest", "min", "default request", l.Min, l.DefaultRequest, l.DefaultRequest[name])
	above("defaultRequest", "default request", "max", l.DefaultRequest, l.Max, l.DefaultRequest[name])
	above("defaultRequest", "default request", "default limit", l.DefaultRequest, l.Default, l.DefaultRequest[name])
	above("default", "min", "default", l.Min, l.Default, l.Min[name])
	above("default", "default", "max", l.Default, l.Max, l.Max[name])
	r.ratio(at.Field("maxLimitRequestRatio").Key(name), name, l)
	limit, hasLimit := l.Default[name]
	request, hasRequest := l.DefaultRequest[name]
	if hasLimit && hasRequest && (isHugePages(name) || !r.isNative(name)) && limit.Cmp(request) != 0 {
		r.Invalid(at.Field("defaultRequest").Key(name), request, fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", limit, request, name))
	}
}

func (r *podRules) ratio(at *check.Path, name string, l *LimitRangeItem) {
	ratio, ok := l.MaxLimitRequestRatio[name]
	if !ok {
		return
	}
	if ratio.Cmp(meta.NewQuantity(1, meta.DecimalSI)) < 0 {
		r.Invalid(at, ratio, fmt.Sprintf("ratio %s is less than 1", ratio))
	}
	largest, bounded := l.Max[name]
	smallest, ok := l.Min[name]
	if !bounded || !ok || smallest.Sign() <= 0 {
		return
	}
	if bound := new(big.Rat).Quo(largest.Rat(), smallest.Rat()); ratio.Rat().Cmp(bound) > 0 {
		r.Invalid(at, ratio, fmt.Sprintf("ratio %s is greater than max/min = %s", ratio, bound.FloatString(6)))
	}
}
