package resource

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// validateSlice checks a slice. The driver, the pool and the node are immutable, because slices are
// selected by them.
func validateSlice(w *registry.Change[ResourceSlice]) {
	s, at := &w.New.Spec, check.At("spec")
	if w.Old != nil {
		w.Unchanged(at.Field("driver"), s.Driver, w.Old.Spec.Driver)
		w.Unchanged(at.Field("pool").Field("name"), s.Pool.Name, w.Old.Spec.Pool.Name)
		w.Unchanged(at.Field("nodeName"), s.NodeName, w.Old.Spec.NodeName)
	}
	checkPool(&w.Violations, at.Field("pool").Field("name"), s.Pool.Name)
	checkSliceNodes(&w.Violations, at, s)
	if s.PartitionTypeAttribute != nil {
		checkFullName(&w.Violations, at.Field("partitionTypeAttribute"), *s.PartitionTypeAttribute)
	}
	if len(s.Devices) > 0 && len(s.SharedCounters) > 0 {
		w.Invalid(at, "", "only one of `sharedCounters` or `devices` is allowed")
	}
	checkDevices(w, at.Field("devices"), s)
	var sets []string
	for i, c := range s.SharedCounters {
		checkCounters(&w.Violations, at.Field("sharedCounters").Index(i).Field("counters"), c.Counters)
		sets = append(sets, c.Name)
	}
	w.Unique(at.Field("sharedCounters"), sets)
}

func checkDevices(w *registry.Change[ResourceSlice], at *check.Path, s *ResourceSliceSpec) {
	const maxDevices, maxSpecial = 128, 64
	limit := maxDevices
	if slices.ContainsFunc(s.Devices, func(d Device) bool { return len(d.Taints) > 0 || len(d.ConsumesCounters) > 0 || d.hasLists() }) {
		limit = maxSpecial
	}
	if len(s.Devices) > limit {
		w.TooMany(at, len(s.Devices), limit)
		return
	}
	perDevice := s.PerDeviceNodeSelection != nil && *s.PerDeviceNodeSelection
	var list []string
	for i := range s.Devices {
		checkDevice(&w.Violations, at.Index(i), &s.Devices[i], perDevice)
		checkNodeResources(w, at.Index(i).Field("nodeAllocatableResources"), &s.Devices[i])
		list = append(list, s.Devices[i].Name)
	}
	w.Unique(at, list)
}

// nodeScope is a way to select the nodes on which devices can be used; exactly one of the pointers is
// set or all are nil.
type nodeScope struct {
	field    string
	name     *string
	selector *core.NodeSelector
	flag     *bool
}

// checkNodeScopes checks the form of the scopes, and returns the quoted fields of the scopes that are
// set validly.
func checkNodeScopes(f *check.Violations, at *check.Path, unset string, scopes ...nodeScope) (set []string) {
	for _, p := range scopes {
		at := at.Field(p.field)
		switch {
		case p.name != nil && *p.name == "":
			f.Invalid(at, "", unset)
		case p.flag != nil && !*p.flag:
			f.Invalid(at, false, "must be either unset or set to true")
		case p.name != nil || p.flag != nil || p.selector != nil:
			set = append(set, "`"+p.field+"`")
		}
		if p.name != nil {
			f.Subdomain(at, *p.name)
		}
		if p.selector != nil {
			*f = append(*f, core.CheckNodeSelector(at, p.selector)...)
		}
	}
	return set
}

// checkSliceNodes checks that a slice has exactly 1 node scope.
func checkSliceNodes(f *check.Violations, at *check.Path, s *ResourceSliceSpec) {
	if s.NodeSelector != nil && len(s.NodeSelector.NodeSelectorTerms) != 1 {
		f.Invalid(at.Field("nodeSelector").Field("nodeSelectorTerms"), s.NodeSelector.NodeSelectorTerms, "must have exactly one node selector term")
	}
	set := checkNodeScopes(f, at, "must be either unset or set to a non-empty string",
		nodeScope{field: "nodeName", name: s.NodeName}, nodeScope{field: "nodeSelector", selector: s.NodeSelector},
		nodeScope{field: "allNodes", flag: s.AllNodes}, nodeScope{field: "perDeviceNodeSelection", flag: s.PerDeviceNodeSelection})
	const why = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
	switch {
	case len(set) == 0:
		f.Required(at, why)
	case len(set) > 1:
		f.Invalid(at, "{"+strings.Join(set, ", ")+"}", why+", but multiple fields are set")
	}
}

// checkDeviceNodes checks that a device has exactly 1 node scope if perDevice is true, else none.
func checkDeviceNodes(f *check.Violations, at *check.Path, d *Device, perDevice bool) {
	if !perDevice {
		if d.NodeName != nil || d.NodeSelector != nil || d.AllNodes != nil {
			f.Invalid(at, nil, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec")
		}
		return
	}
	set := checkNodeScopes(f, at, "must not be empty",
		nodeScope{field: "nodeName", name: d.NodeName}, nodeScope{field: "nodeSelector", selector: d.NodeSelector}, nodeScope{field: "allNodes", flag: d.AllNodes})
	const why = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
	switch {
	case len(set) == 0:
		f.Required(at, why)
	case len(set) > 1:
		f.Invalid(at, "{"+strings.Join(set, ", ")+"}", why)
	}
}

func checkDevice(f *check.Violations, at *check.Path, d *Device, perDevice bool) {
	const maxProperties, maxValues = 32, 48
	attributes, capacity := at.Field("attributes"), at.Field("capacity")
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		a := d.Attributes[name]
		checkName(f, attributes, name)
		a.validate(f, attributes.Key(name))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		checkName(f, capacity, name)
		if c := d.Capacity[name]; c.RequestPolicy != nil {
			p := capacity.Key(name).Field("requestPolicy")
			if d.AllowMultipleAllocations == nil || !*d.AllowMultipleAllocations {
				f.Forbidden(p, "allowMultipleAllocations must be true")
				continue
			}
			c.RequestPolicy.validate(f, p, c.Value)
		}
	}
	if n := len(d.Attributes) + len(d.Capacity); n > maxProperties {
		f.Invalid(at, n, "the total number of attributes and capacities must not exceed 32")
	}
	values := 0
	for _, a := range d.Attributes {
		values += a.valueCount()
	}
	if values > maxValues {
		f.Invalid(attributes, values, "the total number of attribute values must not exceed 48")
	}
	var sets []string
	for i, c := range d.ConsumesCounters {
		p := at.Field("consumesCounters").Index(i)
		checkCounters(f, p.Field("counters"), c.Counters)
		f.Unique(p.Field("compatibilityGroups"), c.CompatibilityGroups)
		sets = append(sets, c.CounterSet)
	}
	f.Unique(at.Field("consumesCounters"), sets)
	checkDeviceNodes(f, at, d, perDevice)
	checkBinding(f, at, d.BindingConditions, d.BindingFailureConditions)
}

// hasLists reports whether an attribute of the device is a list.
func (d *Device) hasLists() bool {
	for _, a := range d.Attributes {
		if a.listLength() > 0 {
			return true
		}
	}
	return false
}

// listLength returns the number of list items in the attribute.
func (a *DeviceAttribute) listLength() int {
	return len(a.IntValues) + len(a.BoolValues) + len(a.StringValues) + len(a.VersionValues)
}

// valueCount returns the number of values for the limit of attribute values: a scalar counts as 1.
func (a *DeviceAttribute) valueCount() int { return max(a.listLength(), 1) }

// checkCounters checks the names of counters.
func checkCounters(f *check.Violations, at *check.Path, counters map[string]Counter) {
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		f.Format(at, name, meta.CheckDNSLabel(name))
	}
}

// checkNodeResources checks the node resources that a device provides or consumes.
func checkNodeResources(w *registry.Change[ResourceSlice], at *check.Path, d *Device) {
	native := w.Names.Wire(wellknown.NativeResource)
	for _, name := range slices.Sorted(maps.Keys(d.NodeAllocatableResources)) {
		r, at := d.NodeAllocatableResources[name], at.Key(name)
		if strings.Contains(name, "/") && !strings.Contains(name, native) {
			w.Invalid(at, name, "must be a node allocatable resource name")
		}
		if r.Mapping == nil && r.Overhead == nil {
			w.Required(at, "at least one of `mapping` and `overhead`")
		}
		if m := r.Mapping; m != nil {
			m.validate(&w.Violations, at.Field("mapping"), d.Capacity)
		}
		if o := r.Overhead; o != nil {
			o.validate(&w.Violations, at.Field("overhead"))
		}
	}
}

func (o *NodeAllocatableOverhead) validate(f *check.Violations, at *check.Path) {
	if o.PerPod == nil && o.PerContainer == nil {
		f.Required(at, "at least one of `perPod` and `perContainer`")
	}
	if o.PerPod != nil && o.PerPod.Sign() < 0 {
		f.Invalid(at.Field("perPod"), *o.PerPod, "must be greater than or equal to 0")
	}
	if o.PerContainer != nil && o.PerContainer.Sign() < 0 {
		f.Invalid(at.Field("perContainer"), *o.PerContainer, "must be greater than or equal to 0")
	}
}

// validate checks a mapping of a device with the given capacities.
func (m *NodeAllocatableMapping) validate(f *check.Violations, at *check.Path, capacity map[string]DeviceCapacity) {
	if m.CapacityKey != nil {
		if _, ok := capacity[*m.CapacityKey]; !ok {
			f.NotFound(at.Field("capacityKey"), *m.CapacityKey)
		}
	}
	if m.CapacityMultiplier != nil && m.CapacityMultiplier.Sign() <= 0 {
		f.Invalid(at.Field("capacityMultiplier"), *m.CapacityMultiplier, "must be positive")
	}
	if m.DeviceMultiplier != nil && m.DeviceMultiplier.Sign() <= 0 {
		f.Invalid(at.Field("deviceMultiplier"), *m.DeviceMultiplier, "must be positive")
	}
	if (m.CapacityKey == nil) == (m.DeviceMultiplier == nil) {
		f.Invalid(at, "", "exactly one of `capacityKey` and `deviceMultiplier` is required")
	}
	if (m.CapacityKey == nil) != (m.CapacityMultiplier == nil) {
		f.Invalid(at, "", "`capacityKey` and `capacityMultiplier` are required together")
	}
}

// version is the form of a semantic version (semver.org 2.0.0).
var version = regexp.MustCompile(`^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-` + preRelease + `(\.` + preRelease + `)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

const preRelease = `(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)`

// validate checks that exactly 1 field is set, and the form of strings and versions.
func (a *DeviceAttribute) validate(f *check.Violations, at *check.Path) {
	if a.StringValue != nil {
		checkText(f, at.Field("string"), *a.StringValue, false)
	}
	for i, text := range a.StringValues {
		checkText(f, at.Field("strings").Index(i), text, false)
	}
	if a.VersionValue != nil {
		checkText(f, at.Field("version"), *a.VersionValue, true)
	}
	for i, text := range a.VersionValues {
		checkText(f, at.Field("versions").Index(i), text, true)
	}
	set := 0
	for _, isSet := range []bool{
		a.IntValue != nil, a.BoolValue != nil, a.StringValue != nil, a.VersionValue != nil,
		len(a.IntValues) > 0, len(a.BoolValues) > 0, len(a.StringValues) > 0, len(a.VersionValues) > 0,
	} {
		if isSet {
			set++
		}
	}
	if set != 1 {
		f.Invalid(at, "", "exactly one value must be specified")
	}
}

// checkText checks the length of an attribute value and, if isVersion is true, its form.
func checkText(f *check.Violations, at *check.Path, text string, isVersion bool) {
	const maxBytes = 64
	switch {
	case len(text) > maxBytes:
		f.TooLong(at, maxBytes)
	case isVersion && !version.MatchString(text):
		f.Invalid(at, text, "must be a string compatible with semver.org spec 2.0.0")
	}
}

// validate checks a policy for a capacity of the given total amount.
func (p *CapacityRequestPolicy) validate(f *check.Violations, at *check.Path, capacity meta.Quantity) {
	switch {
	case len(p.ValidValues) > 0 && p.ValidRange != nil:
		f.Forbidden(at, `exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)
	case len(p.ValidValues) > 0:
		p.checkValidValues(f, at, capacity)
	case p.ValidRange != nil:
		if p.Default == nil {
			f.Required(at.Field("default"), "required when validRange is defined")
		}
		p.ValidRange.validate(f, at.Field("validRange"), p.Default, capacity)
	}
}

// checkValidValues checks that the values are ascending, at most the total amount, and contain the
// default.
func (p *CapacityRequestPolicy) checkValidValues(f *check.Violations, at *check.Path, capacity meta.Quantity) {
	const maxValues = 10
	values := at.Field("validValues")
	if len(p.ValidValues) > maxValues {
		f.TooMany(values, len(p.ValidValues), maxValues)
		return
	}
	for i, v := range p.ValidValues {
		at := values.Index(i)
		if v.Cmp(capacity) > 0 {
			f.Invalid(at, v, "option is larger than capacity value: "+capacity.String())
		}
		if i == 0 {
			continue
		}
		switch c := v.Cmp(p.ValidValues[i-1]); {
		case c == 0:
			f.Duplicate(at, v)
		case c < 0:
			f.Invalid(at, v, "values must be sorted in ascending order")
		}
	}
	switch d := p.Default; {
	case d == nil:
		f.Required(at.Field("default"), "required when validValues is defined")
	case !slices.ContainsFunc(p.ValidValues, d.Equal):
		f.Invalid(values, *d, "default value is not valid according to the requestPolicy")
	}
}

// validate checks that the range lies within the total amount and contains the default, which may be
// nil.
func (r *CapacityRequestPolicyRange) validate(f *check.Violations, at *check.Path, defaultValue *meta.Quantity, capacity meta.Quantity) {
	if r.Min == nil {
		f.Required(at.Field("min"), "required when validRange is defined")
		return
	}
	low, high := at.Field("min"), at.Field("max")
	if defaultValue != nil && defaultValue.Cmp(*r.Min) < 0 {
		f.Invalid(low, *defaultValue, "default is less than min: "+r.Min.String())
	}
	if r.Min.Cmp(capacity) > 0 {
		f.Invalid(low, *r.Min, "min is larger than capacity value: "+capacity.String())
	}
	if r.Max != nil {
		if r.Min.Cmp(*r.Max) > 0 {
			f.Invalid(high, *r.Min, "min is larger than max: "+r.Max.String())
		}
		if r.Max.Cmp(capacity) > 0 {
			f.Invalid(high, *r.Max, "max is larger than capacity value: "+capacity.String())
		}
		if defaultValue != nil && defaultValue.Cmp(*r.Max) > 0 {
			f.Invalid(high, *defaultValue, "default is more than max: "+r.Max.String())
		}
	}
	if r.Step != nil {
		r.checkSteps(f, at.Field("step"), defaultValue, capacity)
	}
}

// checkSteps checks that the distances of the default and of max from min are multiples of the step.
func (r *CapacityRequestPolicyRange) checkSteps(f *check.Violations, at *check.Path, defaultValue *meta.Quantity, capacity meta.Quantity) {
	if r.Step.Sign() <= 0 {
		f.Invalid(at, *r.Step, "must be greater than zero")
		return
	}
	if first := r.Min.Add(*r.Step); first.Cmp(capacity) > 0 {
		f.Invalid(at, *r.Step, "one step "+first.String()+" is larger than capacity value: "+capacity.String())
		return
	}
	for _, v := range []*meta.Quantity{defaultValue, r.Max} {
		if v == nil {
			continue
		}
		if distance := v.Sub(*r.Min).Rat(); !distance.Quo(distance, r.Step.Rat()).IsInt() {
			f.Invalid(at, *v, "value is not a multiple of a given step ("+r.Step.String()+") from ("+r.Min.String()+")")
		}
	}
}
