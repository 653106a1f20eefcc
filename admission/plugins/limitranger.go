package plugins

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// limitRanger fills in default requests and limits of the containers of new pods from the limit ranges of the
// namespace, and checks pods, containers and claims against their bounds.
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
			spec, annotation := meta.NewObject(r.Object.Map("spec")), r.Server.Wire(wellknown.LimitsSet)
			ranges, err := r.Server.List(ctx, "", "limitranges", r.Namespace)
			for _, of := range ranges {
				for _, limit := range of.Objects("spec", "limits") {
					if limit.String("type") != "Container" {
						continue
					}
					names := len(limit.Map("default")) + len(limit.Map("defaultRequest"))
					if containers := len(podspec.Of(spec, podspec.Containers, podspec.Init)); containers*names > maxChecks {
						return fmt.Errorf("too many default limits to fill in: %d containers, %d defaults", containers, names)
					}
					defaultContainers(r.Object, limit, annotation)
				}
			}
			return err
		},
		Validate: func(ctx context.Context, r *admission.Request) error {
			if r.Old.Terminating() && meta.Equal(r.Old.Map("spec"), r.Object.Map("spec")) { // finalizers of a terminating object must be removable
				return nil
			}
			ranges, err := r.Server.List(ctx, "", "limitranges", r.Namespace)
			if err != nil {
				return err
			}
			for _, of := range ranges {
				var faults []string
				for _, limit := range of.Objects("spec", "limits") {
					parts, bounds := limited(r, limit.String("type")), boundsOf(limit)
					if len(parts)*len(bounds) > maxChecks {
						return fmt.Errorf("too many limits to check: %d containers, %d resources", len(parts), len(bounds))
					}
					for _, part := range parts {
						faults = append(faults, part.check(bounds)...)
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

// defaultContainers fills in missing limits and requests of containers, and lists them in an annotation.
func defaultContainers(pod, limit *meta.Object, annotation string) {
	var defaulted []string
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
					defaulted = append(defaulted, fmt.Sprintf("%s %s for %s %s", strings.Join(set, ", "), field.word, kind.word, c.String("name")))
				}
			}
		}
	}
	if len(defaulted) > 0 {
		pod.Set("LimitRanger plugin set: "+strings.Join(defaulted, "; "), "metadata", "annotations", annotation)
	}
}

// limitedPart is a pod, a container or a claim with its requests and limits. limits is nil for a claim.
type limitedPart struct {
	kind             string
	requests, limits podspec.Amounts
}

// limited returns the parts of an object to which limits of a type apply.
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

// maxChecks is the maximum number of amounts that are compared, or filled in, for an object.
const maxChecks = 1_000_000

// bound is the minimum, the maximum and the maximum ratio of limit to request for a resource. nil: unbounded.
type bound struct {
	name               string
	least, most, times *meta.Quantity
}

// boundsOf returns the bounds of a limit, sorted by resource name.
func boundsOf(limit *meta.Object) []bound {
	least, most, times := podspec.AmountsOf(limit.Map("min")), podspec.AmountsOf(limit.Map("max")), podspec.AmountsOf(limit.Map("maxLimitRequestRatio"))
	all := maps.Clone(least)
	maps.Copy(all, most)
	maps.Copy(all, times)
	of := func(sort podspec.Amounts, name string) *meta.Quantity {
		if q, ok := sort[name]; ok {
			return &q
		}
		return nil
	}
	var list []bound
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, bound{name, of(least, name), of(most, name), of(times, name)})
	}
	return list
}

// check returns the violations of the bounds: first of minimums, then of maximums, then of ratios.
func (p limitedPart) check(bounds []bound) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, b := range bounds {
		request, asked := p.requests[b.name]
		most, limited := p.limits[b.name]
		switch {
		case b.least == nil:
		case !asked:
			fault("minimum %s usage per %s is %s.  No request is specified", b.name, p.kind, b.least)
		case request.Cmp(*b.least) < 0:
			fault("minimum %s usage per %s is %s, but request is %s", b.name, p.kind, b.least, request)
		case limited && most.Cmp(*b.least) < 0:
			fault("minimum %s usage per %s is %s, but limit is %s", b.name, p.kind, b.least, most)
		}
	}
	for _, b := range bounds {
		request, asked := p.requests[b.name]
		most, limited := p.limits[b.name]
		switch {
		case b.most == nil:
		case p.limits == nil && !asked:
			fault("maximum %s usage per %s is %s.  No request is specified", b.name, p.kind, b.most)
		case p.limits != nil && !limited:
			fault("maximum %s usage per %s is %s.  No limit is specified", b.name, p.kind, b.most)
		case limited && most.Cmp(*b.most) > 0:
			fault("maximum %s usage per %s is %s, but limit is %s", b.name, p.kind, b.most, most)
		case asked && request.Cmp(*b.most) > 0:
			fault("maximum %s usage per %s is %s, but request is %s", b.name, p.kind, b.most, request)
		}
	}
	for _, b := range bounds {
		request, most := p.requests[b.name], p.limits[b.name]
		switch {
		case b.times == nil || p.limits == nil:
		case request.IsZero():
			fault("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", b.name, p.kind, b.times)
		case most.IsZero():
			fault("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", b.name, p.kind, b.times)
		case new(big.Rat).Quo(most.Rat(), request.Rat()).Cmp(b.times.Rat()) > 0:
			fault("%s max limit to request ratio per %s is %s, but the limit is %s for a request of %s", b.name, p.kind, b.times, most, request)
		}
	}
	return faults
}
