package plugins

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/podspec"
)

// limitRanger gives containers of new pods what the limit ranges of the namespace say
// of those that say nothing, and keeps pods, their containers and claims between the
// bounds.
func limitRanger() admission.Plugin {
	return admission.Plugin{
		Name: "LimitRanger",
		Rules: slices.Concat(
			on("", []string{"pods", "persistentvolumeclaims"}, admission.Create),
			on("", []string{"pods/resize", "persistentvolumeclaims"}, admission.Update)),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			if r.Operation != admission.Create || r.Resource.Resource != "pods" {
				return nil
			}
			ranges, err := r.Server.List(ctx, "", "limitranges", r.Namespace)
			for _, of := range ranges {
				for _, limit := range of.Objects("spec", "limits") {
					if limit.String("type") == "Container" {
						defaultContainers(r.Object, limit, r.Server.Wire(names.LimitsSet))
					}
				}
			}
			return err
		},
		Validate: func(ctx context.Context, r *admission.Request) error {
			if r.Old.Terminating() { // it goes, whatever it is
				return nil
			}
			ranges, err := r.Server.List(ctx, "", "limitranges", r.Namespace)
			if err != nil {
				return err
			}
			for _, of := range ranges {
				var faults []string
				for _, limit := range of.Objects("spec", "limits") {
					for _, part := range limited(r, limit.String("type")) {
						faults = append(faults, part.check(limit)...)
					}
				}
				if err := refusal(faults); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// defaultContainers fills in the limits and requests that containers lack, and tells in
// an annotation which.
func defaultContainers(pod, limit *meta.Object, annotation string) {
	var told []string
	spec := meta.NewObject(pod.Map("spec"))
	for _, kind := range []struct{ list, word string }{{podspec.Containers, "container"}, {podspec.Init, "init container"}} {
		for _, c := range spec.Objects(kind.list) {
			for _, field := range []struct{ name, of, word string }{{"requests", "defaultRequest", "request"}, {"limits", "default", "limit"}} {
				var set []string
				for name, amount := range limit.Map(field.of) {
					if _, have := c.Get("resources", field.name, name); !have {
						c.Set(amount, "resources", field.name, name)
						set = append(set, name)
					}
				}
				if len(set) > 0 {
					slices.Sort(set)
					told = append(told, fmt.Sprintf("%s %s for %s %s", strings.Join(set, ", "), field.word, kind.word, c.String("name")))
				}
			}
		}
	}
	if len(told) > 0 {
		pod.Set("LimitRanger plugin set: "+strings.Join(told, "; "), "metadata", "annotations", annotation)
	}
}

// limitedPart is a pod, one of its containers or a claim, which has requests alone.
type limitedPart struct {
	kind             string
	requests, limits podspec.Amounts
}

// limited returns the parts of an object that limits of a type bound.
func limited(r *admission.Request, kind string) (parts []limitedPart) {
	spec := meta.NewObject(r.Object.Map("spec"))
	switch claim := r.Resource.Resource == "persistentvolumeclaims"; {
	case claim && kind == "PersistentVolumeClaim":
		parts = append(parts, limitedPart{kind: kind, requests: podspec.Resources(spec, "requests")})
	case claim:
	case kind == "Container":
		for _, c := range podspec.Of(spec, podspec.Containers, podspec.Init) {
			parts = append(parts, limitedPart{kind, podspec.Resources(c, "requests"), podspec.Resources(c, "limits")})
		}
	case kind == "Pod":
		parts = append(parts, limitedPart{kind, podspec.Whole(spec, "requests"), podspec.Whole(spec, "limits")})
	}
	return parts
}

// check returns where a part is outside the bounds.
func (p limitedPart) check(limit *meta.Object) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for name, least := range bounds(limit, "min") {
		request, asked := p.requests[name]
		most, limited := p.limits[name]
		switch {
		case !asked:
			fault("minimum %s usage per %s is %s.  No request is specified", name, p.kind, least)
		case request.Cmp(least) < 0:
			fault("minimum %s usage per %s is %s, but request is %s", name, p.kind, least, request)
		case limited && most.Cmp(least) < 0:
			fault("minimum %s usage per %s is %s, but limit is %s", name, p.kind, least, most)
		}
	}
	for name, bound := range bounds(limit, "max") {
		request, asked := p.requests[name]
		most, limited := p.limits[name]
		switch {
		case p.limits == nil && !asked:
			fault("maximum %s usage per %s is %s.  No request is specified", name, p.kind, bound)
		case p.limits != nil && !limited:
			fault("maximum %s usage per %s is %s.  No limit is specified", name, p.kind, bound)
		case limited && most.Cmp(bound) > 0:
			fault("maximum %s usage per %s is %s, but limit is %s", name, p.kind, bound, most)
		case asked && request.Cmp(bound) > 0:
			fault("maximum %s usage per %s is %s, but request is %s", name, p.kind, bound, request)
		}
	}
	if p.limits == nil {
		return faults
	}
	for name, ratio := range bounds(limit, "maxLimitRequestRatio") {
		request, most := p.requests[name], p.limits[name]
		switch {
		case request.IsZero():
			fault("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name, p.kind, ratio)
		case most.IsZero():
			fault("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name, p.kind, ratio)
		case new(big.Rat).Quo(most.Rat(), request.Rat()).Cmp(ratio.Rat()) > 0:
			fault("%s max limit to request ratio per %s is %s, but the limit is %s for a request of %s", name, p.kind, ratio, most, request)
		}
	}
	return faults
}

// bounds are those of one sort in a limit, by the names of resources in order.
func bounds(limit *meta.Object, sort string) iter.Seq2[string, meta.Quantity] {
	return func(yield func(string, meta.Quantity) bool) {
		all := podspec.AmountsOf(limit.Map(sort))
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(name, all[name]) {
				return
			}
		}
	}
}
