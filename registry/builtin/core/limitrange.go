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

// What limits of the product's own are about. Others have a name with a domain.
const (
	limitPod       = "Pod"
	limitContainer = "Container"
	limitClaim     = "PersistentVolumeClaim"
)

// LimitRange bounds how much single objects of its namespace may ask for, and
// gives containers that ask for nothing a default.
type LimitRange struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec holds the limits.
	Spec LimitRangeSpec `json:"spec,omitempty" protobuf:"2"`
}

// LimitRangeSpec holds limits, each for another type of object.
type LimitRangeSpec struct {
	// Limits that are kept, one for each type of object.
	Limits []LimitRangeItem `json:"limits" protobuf:"1" schema:"listType=atomic"`
}

// LimitRangeItem bounds what objects of one type may ask for.
type LimitRangeItem struct {
	// Type of object: Pod, Container, PersistentVolumeClaim or a name with a domain.
	Type string `json:"type" protobuf:"1" schema:"format=qualified-name"`

	// Max is the most of each resource that one object may ask for.
	Max map[string]meta.Quantity `json:"max,omitempty" protobuf:"2" schema:"values.milli"`

	// Min is the least of each resource that one object must ask for.
	Min map[string]meta.Quantity `json:"min,omitempty" protobuf:"3" schema:"values.milli"`

	// Default is the limit of containers that have none; what max says by default. Not
	// for pods.
	Default map[string]meta.Quantity `json:"default,omitempty" protobuf:"4" schema:"values.milli"`

	// DefaultRequest is the request of containers that have none; what default says,
	// or else min, by default. Not for pods.
	DefaultRequest map[string]meta.Quantity `json:"defaultRequest,omitempty" protobuf:"5" schema:"values.milli"`

	// MaxLimitRequestRatio is how many times the request a limit may be, at least 1.
	MaxLimitRequestRatio map[string]meta.Quantity `json:"maxLimitRequestRatio,omitempty" protobuf:"6" schema:"values.milli"`
}

func limitRanges() *registry.Kind {
	created := registry.Text("Created At", "When the limits were made.", "metadata", "creationTimestamp")
	created.Type = "date"
	return registry.Of(registry.Definition[LimitRange]{
		Version:    version,
		ShortNames: []string{"limits"},
		Columns:    []registry.Column{created},
		Default:    defaultLimits,
		Validate:   validateLimits,
		Behavior: registry.Behavior{Prepare: func(w *registry.Change[meta.Object]) {
			if len(w.New.List("spec", "limits")) == 0 {
				w.New.Set(nil, "spec", "limits") // as clients know an empty list
			}
		}},
		Reference: &compat.Reference{
			NoGeneration: true, DeleteAnswersStatus: true, CreateOnPut: true,
		},
	})
}

// defaultLimits gives containers as much as they may have, and asks for what they get.
func defaultLimits(w *registry.Change[LimitRange]) {
	for i := range w.New.Spec.Limits {
		if l := &w.New.Spec.Limits[i]; l.Type == limitContainer {
			l.Default = filled(l.Default, l.Max)
			l.DefaultRequest = filled(filled(l.DefaultRequest, l.Default), l.Min)
		}
	}
}

// filled returns amounts with those of others that are missing.
func filled(amounts, others map[string]meta.Quantity) map[string]meta.Quantity {
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
		if !w.Found.In(at.Field("type")) && !strings.Contains(l.Type, "/") && l.Type != limitPod && l.Type != limitContainer && l.Type != limitClaim {
			r.Invalid(at.Field("type"), l.Type, "must be a standard limit type or fully qualified")
		}
		if seen[l.Type] {
			r.Duplicate(at.Field("type"), l.Type)
		}
		seen[l.Type] = true
		r.limit(at, l)
	}
	w.Faults = append(w.Faults, r.Faults...)
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
	_, least := l.Min["storage"]
	if _, most := l.Max["storage"]; l.Type == limitClaim && !least && !most {
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
	for _, name := range sorted(amounts) {
		if limit == limitPod || limit == limitContainer {
			r.resourceName(at.Key(name), name)
		} else {
			r.standardName(at.Key(name), name)
		}
	}
}

// limitOf checks that what is said of one resource can be kept.
func (r *podRules) limitOf(at *check.Path, name string, l *LimitRangeItem) {
	above := func(field, lowWord, highWord string, low, high map[string]meta.Quantity, told meta.Quantity) {
		a, ok := low[name]
		b, bounded := high[name]
		if ok && bounded && a.Cmp(b) > 0 {
			r.Invalid(at.Field(field).Key(name), told, fmt.Sprintf("%s value %s is greater than %s value %s", lowWord, a, highWord, b))
		}
	}
	above("min", "min", "max", l.Min, l.Max, l.Min[name])
	above("defaultRequest", "min", "default request", l.Min, l.DefaultRequest, l.DefaultRequest[name])
	above("defaultRequest", "default request", "max", l.DefaultRequest, l.Max, l.DefaultRequest[name])
	above("defaultRequest", "default request", "default limit", l.DefaultRequest, l.Default, l.DefaultRequest[name])
	above("default", "min", "default", l.Min, l.Default, l.Min[name])
	above("default", "default", "max", l.Default, l.Max, l.Max[name])
	r.ratio(at.Field("maxLimitRequestRatio").Key(name), name, l)
	limit, limited := l.Default[name]
	request, asked := l.DefaultRequest[name]
	if limited && asked && (hugePages(name) || !r.native(name)) && limit.Cmp(request) != 0 {
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
	most, bounded := l.Max[name]
	least, ok := l.Min[name]
	if !bounded || !ok || least.Sign() <= 0 {
		return
	}
	if bound := new(big.Rat).Quo(most.Rat(), least.Rat()); ratio.Rat().Cmp(bound) > 0 {
		r.Invalid(at, ratio, fmt.Sprintf("ratio %s is greater than max/min = %s", ratio, bound.FloatString(6)))
	}
}
