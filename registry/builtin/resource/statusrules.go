package resource

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/address"
	"orch.io/controlplane/registry/builtin/internal/conditions"
)

// checkStatus checks the status of a claim. An allocation that exists must not change; new users cannot
// be added to a claim that is being deleted.
func checkStatus(w *registry.Change[ResourceClaim]) {
	s, before, at := &w.New.Status, &w.Old.Status, check.At("status")
	if a := s.Allocation; a != nil {
		seen := requestNames{}
		for i := range w.New.Spec.Devices.Requests {
			seen.add(&w.New.Spec.Devices.Requests[i])
		}
		if before.Allocation != nil {
			w.Unchanged(at.Field("allocation"), a, before.Allocation)
		} else {
			checkAllocation(w, at.Field("allocation"), a, seen)
		}
	}
	if len(s.ReservedFor) > 0 {
		reserved := at.Field("reservedFor")
		added := func(r ResourceClaimConsumerReference) bool { return !slices.Contains(before.ReservedFor, r) }
		switch {
		case s.Allocation == nil:
			w.Forbidden(reserved, "may not be specified when `allocated` is not set")
		case w.New.DeletionTimestamp != nil && slices.ContainsFunc(s.ReservedFor, added):
			w.Forbidden(reserved, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set")
		}
	}
	have := allocated(s.Allocation)
	for i := range s.Devices {
		checkDeviceStatus(&w.Violations, at.Field("devices").Index(i), &s.Devices[i], have)
	}
}

// share identifies an allocated device, or a share of it.
type share struct{ Driver, Pool, Device, ShareID string }

// allocated returns the devices of an allocation.
func allocated(a *AllocationResult) map[share]bool {
	have := map[share]bool{}
	if a != nil {
		for _, r := range a.Devices.Results {
			have[share{r.Driver, r.Pool, r.Device, valueOrEmpty(r.ShareID)}] = true
		}
	}
	return have
}

func valueOrEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func checkAllocation(w *registry.Change[ResourceClaim], at *check.Path, a *AllocationResult, seen requestNames) {
	for i := range a.Devices.Results {
		r, p := &a.Devices.Results[i], at.Field("devices").Field("results").Index(i)
		seen.checkReference(&w.Violations, p.Field("request"), r.Request)
		checkPool(&w.Violations, p.Field("pool"), r.Pool)
		checkShare(&w.Violations, p.Field("shareID"), r.ShareID)
		checkTolerations(&w.Violations, p.Field("tolerations"), r.Tolerations)
		checkBinding(&w.Violations, p, r.BindingConditions, r.BindingFailureConditions)
	}
	for i := range a.Devices.Config {
		c, p := &a.Devices.Config[i], at.Field("devices").Field("config").Index(i)
		seen.check(&w.Violations, p.Field("requests"), c.Requests)
		checkConfiguration(&w.Violations, p, &c.DeviceConfiguration)
	}
	if s := a.NodeSelector; s != nil {
		w.Violations = append(w.Violations, core.CheckNodeSelector(at.Field("nodeSelector"), s)...)
	}
}

// maxBindingConditions is the limit of both lists in the schema.
const maxBindingConditions = 4

// checkBinding checks that both lists of conditions are set or none, and that they are disjoint.
func checkBinding(f *check.Violations, at *check.Path, binding, failing []string) {
	const bindingField, failureField = "bindingConditions", "bindingFailureConditions"
	if max(len(binding), len(failing)) > maxBindingConditions {
		return // the schema reports it
	}
	f.Unique(at.Field(bindingField), binding)
	f.Unique(at.Field(failureField), failing)
	for i, c := range failing {
		if slices.Contains(binding, c) {
			f.Invalid(at.Field(failureField).Index(i), c, "bindingFailureConditions must not overlap with bindingConditions")
		}
	}
	switch {
	case len(binding) > 0 && len(failing) == 0:
		f.Invalid(at.Field(failureField), failing, "bindingFailureConditions are required to use bindingConditions")
	case len(failing) > 0 && len(binding) == 0:
		f.Invalid(at.Field(bindingField), binding, "bindingConditions are required to use bindingFailureConditions")
	}
}

func checkDeviceStatus(f *check.Violations, at *check.Path, d *AllocatedDeviceStatus, have map[share]bool) {
	checkPool(f, at.Field("pool"), d.Pool)
	checkShare(f, at.Field("shareID"), d.ShareID)
	if id := (share{d.Driver, d.Pool, d.Device, valueOrEmpty(d.ShareID)}); !have[id] {
		f.Invalid(at, id, "must be an allocated device in the claim")
	}
	const maxConditions = 8
	if n := len(d.Conditions); n > maxConditions {
		f.TooMany(at.Field("conditions"), n, maxConditions)
	} else {
		conditions.Check(f, at.Field("conditions"), d.Conditions)
	}
	if d.Data != nil && len(d.Data.Raw) > 0 {
		checkRaw(f, at.Field("data"), d.Data.Raw)
	}
	if d.NetworkData != nil {
		ips := at.Field("networkData").Field("ips")
		for i, text := range d.NetworkData.IPs {
			checkInterface(f, ips.Index(i), text)
		}
		f.Unique(ips, d.NetworkData.IPs)
	}
}

// checkInterface checks an address in CIDR notation; unlike a network it may have host bits.
func checkInterface(f *check.Violations, at *check.Path, text string) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		f.Invalid(at, text, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)")
	case p.String() != text:
		f.Invalid(at, text, `must be in canonical form ("`+p.String()+`")`)
	default:
		address.HostIP(f, at, p.Addr().String())
	}
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func checkShare(f *check.Violations, at *check.Path, id *string) {
	if id != nil && !uuid.MatchString(*id) {
		f.Invalid(at, *id, "must be a UUID in small letters, xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
	}
}

// checkPool checks the segments of the name of a pool.
func checkPool(f *check.Violations, at *check.Path, name string) {
	if name == "" {
		return
	}
	for part := range strings.SplitSeq(name, "/") {
		f.Format(at, part, meta.CheckDNSSubdomain(part))
	}
}

// dropDeallocated removes the driver status of devices that a status update deallocates. Status for
// devices that were never allocated stays and is rejected by validation.
func dropDeallocated(w *registry.Change[meta.Object]) {
	if w.Old == nil || w.Subresource != "status" {
		return
	}
	statuses := w.New.List("status", "devices")
	if len(statuses) == 0 {
		return
	}
	results := []string{"status", "allocation", "devices", "results"}
	kept := map[share]bool{}
	for _, r := range w.New.Objects(results...) {
		kept[shareOf(r)] = true
	}
	deallocated := map[share]bool{}
	for _, r := range w.Old.Objects(results...) {
		deallocated[shareOf(r)] = !kept[shareOf(r)]
	}
	var remaining []any
	for _, v := range statuses {
		d, _ := v.(map[string]any)
		if !deallocated[shareOf(meta.NewObject(d))] {
			remaining = append(remaining, v)
		}
	}
	if len(remaining) == 0 {
		w.New.Delete("status", "devices")
	} else if len(remaining) < len(statuses) {
		w.New.Set(remaining, "status", "devices")
	}
}

// shareOf returns the device that an allocation result or a driver status refers to.
func shareOf(o *meta.Object) share {
	return share{o.String("driver"), o.String("pool"), o.String("device"), o.String("shareID")}
}
