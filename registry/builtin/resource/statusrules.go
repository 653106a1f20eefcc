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

// checkStatus checks what was found for a claim, and who uses it.
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
		checkDeviceStatus(&w.Faults, at.Field("devices").Index(i), &s.Devices[i], have)
	}
}

// share is a device, or a part of one that is shared.
type share struct{ Driver, Pool, Device, ShareID string }

// allocated are the devices of an allocation.
func allocated(a *AllocationResult) map[share]bool {
	have := map[share]bool{}
	if a != nil {
		for _, r := range a.Devices.Results {
			have[share{r.Driver, r.Pool, r.Device, textOf(r.ShareID)}] = true
		}
	}
	return have
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func checkAllocation(w *registry.Change[ResourceClaim], at *check.Path, a *AllocationResult, seen requestNames) {
	for i := range a.Devices.Results {
		r, p := &a.Devices.Results[i], at.Field("devices").Field("results").Index(i)
		seen.one(&w.Faults, p.Field("request"), r.Request)
		checkPool(&w.Faults, p.Field("pool"), r.Pool)
		checkShare(&w.Faults, p.Field("shareID"), r.ShareID)
		checkTolerations(&w.Faults, p.Field("tolerations"), r.Tolerations)
		checkBinding(&w.Faults, p, r.BindingConditions, r.BindingFailureConditions)
	}
	for i := range a.Devices.Config {
		c, p := &a.Devices.Config[i], at.Field("devices").Field("config").Index(i)
		seen.check(&w.Faults, p.Field("requests"), c.Requests)
		checkConfiguration(&w.Faults, p, &c.DeviceConfiguration)
	}
	if s := a.NodeSelector; s != nil {
		w.Faults = append(w.Faults, core.CheckNodeSelector(at.Field("nodeSelector"), s)...)
	}
}

// maxBindingConditions is the maxItems of either list.
const maxBindingConditions = 4

// checkBinding checks the conditions for which pods with a device wait.
func checkBinding(f *check.Faults, at *check.Path, good, bad []string) {
	const goodField, badField = "bindingConditions", "bindingFailureConditions"
	if max(len(good), len(bad)) > maxBindingConditions {
		return // as the schema says
	}
	f.Unique(at.Field(goodField), good)
	f.Unique(at.Field(badField), bad)
	for i, c := range bad {
		if slices.Contains(good, c) {
			f.Invalid(at.Field(badField).Index(i), c, "bindingFailureConditions must not overlap with bindingConditions")
		}
	}
	switch {
	case len(good) > 0 && len(bad) == 0:
		f.Invalid(at.Field(badField), bad, "bindingFailureConditions are required to use bindingConditions")
	case len(bad) > 0 && len(good) == 0:
		f.Invalid(at.Field(goodField), good, "bindingConditions are required to use bindingFailureConditions")
	}
}

func checkDeviceStatus(f *check.Faults, at *check.Path, d *AllocatedDeviceStatus, have map[share]bool) {
	checkPool(f, at.Field("pool"), d.Pool)
	checkShare(f, at.Field("shareID"), d.ShareID)
	if id := (share{d.Driver, d.Pool, d.Device, textOf(d.ShareID)}); !have[id] {
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

// checkInterface checks the address of an interface with the length of its network.
func checkInterface(f *check.Faults, at *check.Path, text string) {
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

func checkShare(f *check.Faults, at *check.Path, id *string) {
	if id != nil && !uuid.MatchString(*id) {
		f.Invalid(at, *id, "must be a UUID in small letters, xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
	}
}

// checkPool checks the parts of the name of a pool.
func checkPool(f *check.Faults, at *check.Path, name string) {
	if name == "" {
		return
	}
	for part := range strings.SplitSeq(name, "/") {
		f.Format(at, part, meta.CheckDNSSubdomain(part))
	}
}

// dropGone takes out what was told of devices that the claim gives back.
func dropGone(w *registry.Change[meta.Object]) {
	if w.Old == nil || w.Subresource != "status" {
		return
	}
	told := w.New.List("status", "devices")
	if len(told) == 0 {
		return
	}
	results := []string{"status", "allocation", "devices", "results"}
	kept := map[share]bool{}
	for _, r := range w.New.Objects(results...) {
		kept[shareOf(r)] = true
	}
	gone := map[share]bool{}
	for _, r := range w.Old.Objects(results...) {
		gone[shareOf(r)] = !kept[shareOf(r)]
	}
	var rest []any
	for _, v := range told {
		d, _ := v.(map[string]any)
		if !gone[shareOf(meta.NewObject(d))] {
			rest = append(rest, v)
		}
	}
	if len(rest) == 0 {
		w.New.Delete("status", "devices")
	} else if len(rest) < len(told) {
		w.New.Set(rest, "status", "devices")
	}
}

// shareOf is the device that a result or a status names.
func shareOf(o *meta.Object) share {
	return share{o.String("driver"), o.String("pool"), o.String("device"), o.String("shareID")}
}
