package resource

import (
	"encoding/json"
	"regexp"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// Modes of allocation.
const (
	allDevices = "All"
	exactCount = "ExactCount"
)

// checkClaim checks what a claim asks for.
func checkClaim(f *check.Faults, at *check.Path, c *DeviceClaim) {
	seen := requestNames{}
	var list []string
	for i := range c.Requests {
		r := &c.Requests[i]
		checkRequest(f, at.Field("requests").Index(i), r)
		seen.add(r)
		list = append(list, r.Name)
	}
	f.Unique(at.Field("requests"), list)
	for i := range c.Constraints {
		checkConstraint(f, at.Field("constraints").Index(i), &c.Constraints[i], seen)
	}
	for i := range c.Config {
		p := at.Field("config").Index(i)
		seen.check(f, p.Field("requests"), c.Config[i].Requests)
		checkConfiguration(f, p, &c.Config[i].DeviceConfiguration)
	}
}

func checkRequest(f *check.Faults, at *check.Path, r *DeviceRequest) {
	const one = "exactly one of `exactly` or `firstAvailable` is required"
	switch e := r.Exactly; {
	case e == nil && len(r.FirstAvailable) == 0:
		f.Required(at, one)
	case e != nil && len(r.FirstAvailable) > 0:
		f.Invalid(at, nil, one+", but multiple fields are set")
	case e != nil:
		checkSort(f, at.Field("exactly"), e.AllocationMode, e.Count, e.Tolerations, e.DerivedAttributes)
	default:
		var list []string
		for i, s := range r.FirstAvailable {
			checkSort(f, at.Field("firstAvailable").Index(i), s.AllocationMode, s.Count, s.Tolerations, s.DerivedAttributes)
			list = append(list, s.Name)
		}
		f.Unique(at.Field("firstAvailable"), list)
	}
}

// checkSort checks a sort of devices.
func checkSort(f *check.Faults, at *check.Path, mode string, count int64, tolerations []DeviceToleration, derived []DeviceDerivedAttribute) {
	switch {
	case mode == allDevices && count != 0:
		f.Invalid(at.Field("count"), count, "must not be specified when allocationMode is 'All'")
	case mode == exactCount && count <= 0:
		f.Invalid(at.Field("count"), count, "must be greater than zero")
	}
	checkTolerations(f, at.Field("tolerations"), tolerations)
	for i, d := range derived {
		if d.Name != "" {
			checkFullName(f, at.Field("derivedAttributes").Index(i).Field("name"), d.Name)
		}
	}
}

// checkTolerations checks the values of tolerations.
func checkTolerations(f *check.Faults, at *check.Path, tolerations []DeviceToleration) {
	for i, t := range tolerations {
		p := at.Index(i).Field("value")
		switch {
		case t.Operator != "Exists":
			f.Format(p, t.Value, meta.CheckLabelValue(t.Value))
		case t.Value != "":
			f.Invalid(p, t.Value, "must be empty for operator `Exists`")
		}
	}
}

func checkConstraint(f *check.Faults, at *check.Path, c *DeviceConstraint, seen requestNames) {
	seen.check(f, at.Field("requests"), c.Requests)
	if c.MatchAttribute == nil && c.DistinctAttribute == nil {
		f.Required(at, `one of "matchAttribute" or "distinctAttribute" is required`)
	}
	if c.MatchAttribute != nil {
		checkFullName(f, at.Field("matchAttribute"), *c.MatchAttribute)
	}
	if c.DistinctAttribute != nil {
		checkFullName(f, at.Field("distinctAttribute"), *c.DistinctAttribute)
	}
}

// requestNames are what the requests of a claim, and their sorts, are called.
type requestNames map[string]bool

func (n requestNames) add(r *DeviceRequest) {
	n[r.Name] = true
	for _, s := range r.FirstAvailable {
		n[r.Name+"/"+s.Name] = true
	}
}

// check checks names of requests, each of which may be there once.
func (n requestNames) check(f *check.Faults, at *check.Path, list []string) {
	for i, name := range list {
		n.one(f, at.Index(i), name)
	}
	f.Unique(at, list)
}

func (n requestNames) one(f *check.Faults, at *check.Path, name string) {
	if request, sort, _ := strings.Cut(name, "/"); !strings.Contains(sort, "/") {
		f.Format(at, request, meta.CheckDNSLabel(request))
		if request != name {
			f.Format(at, sort, meta.CheckDNSLabel(sort))
		}
	}
	if !n[name] {
		f.Invalid(at, name, "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'")
	}
}

// checkConfiguration checks what only a driver can read.
func checkConfiguration(f *check.Faults, at *check.Path, c *DeviceConfiguration) {
	if c.Opaque == nil {
		return
	}
	at = at.Field("opaque").Field("parameters")
	if len(c.Opaque.Parameters.Raw) == 0 {
		f.Required(at, "")
		return
	}
	checkRaw(f, at, c.Opaque.Parameters.Raw)
}

// checkRaw checks that a value that nobody here can read is an object and not too big.
// The value is not told.
func checkRaw(f *check.Faults, at *check.Path, raw json.RawMessage) {
	const maxBytes = 10 << 10
	switch {
	case len(raw) > maxBytes:
		f.TooLong(at, maxBytes)
	case raw[0] != '{':
		f.Invalid(at, "<value omitted>", "must be a valid JSON object")
	}
}

// identifier is the form of names of attributes and capacities without their domain.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkName checks the name of an attribute or a capacity: name or domain/name. Like kube-apiserver,
// it accepts any name with more than one slash.
func checkName(f *check.Faults, at *check.Path, name string) {
	const maxDomain, maxName = 63, 32
	if strings.Count(name, "/") > 1 {
		return
	}
	domain, id, ok := strings.Cut(name, "/")
	switch {
	case !ok:
		id = name
	case domain == "":
		f.Invalid(at, domain, "the domain must not be empty")
	case len(domain) > maxDomain:
		f.TooLong(at, maxDomain)
	default:
		f.Format(at, domain, meta.CheckDNSSubdomain(strings.ToLower(domain)))
	}
	switch {
	case ok && id == "":
		f.Invalid(at, id, "the name must not be empty")
	case len(id) > maxName:
		f.TooLong(at, maxName)
	case !identifier.MatchString(id):
		f.Invalid(at, id, meta.Like("a name must be an identifier of letters, digits and '_' that does not begin with a digit", "[A-Za-z_][A-Za-z0-9_]*", "my_name", "MyName"))
	}
}

// checkFullName checks a name of an attribute that must have a domain.
func checkFullName(f *check.Faults, at *check.Path, name string) {
	checkName(f, at, name)
	if !strings.Contains(name, "/") {
		f.Invalid(at, name, "a fully qualified name must be a domain and a name separated by a slash")
	}
}
