package resource

import (
	"encoding/json"
	"regexp"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// Allocation modes.
const (
	allDevices = "All"
	exactCount = "ExactCount"
)

// checkClaim checks the requests of a claim, then constraints and configurations, which refer to
// requests by name.
func checkClaim(f *check.Violations, at *check.Path, c *DeviceClaim) {
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

func checkRequest(f *check.Violations, at *check.Path, r *DeviceRequest) {
	const why = "exactly one of `exactly` or `firstAvailable` is required"
	switch e := r.Exactly; {
	case e == nil && len(r.FirstAvailable) == 0:
		f.Required(at, why)
	case e != nil && len(r.FirstAvailable) > 0:
		f.Invalid(at, nil, why+", but multiple fields are set")
	case e != nil:
		checkAlternative(f, at.Field("exactly"), e.AllocationMode, e.Count, e.Tolerations, e.DerivedAttributes)
	default:
		var list []string
		for i, s := range r.FirstAvailable {
			checkAlternative(f, at.Field("firstAvailable").Index(i), s.AllocationMode, s.Count, s.Tolerations, s.DerivedAttributes)
			list = append(list, s.Name)
		}
		f.Unique(at.Field("firstAvailable"), list)
	}
}

// checkAlternative checks a request or an alternative of it. mode, count and the other arguments are
// its fields.
func checkAlternative(f *check.Violations, at *check.Path, mode string, count int64, tolerations []DeviceToleration, derived []DeviceDerivedAttribute) {
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

// checkTolerations checks the values of tolerations; the schema checks the other fields.
func checkTolerations(f *check.Violations, at *check.Path, tolerations []DeviceToleration) {
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

func checkConstraint(f *check.Violations, at *check.Path, c *DeviceConstraint, seen requestNames) {
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

// requestNames are the names of the requests of a claim, and of their alternatives as
// request/alternative.
type requestNames map[string]bool

func (n requestNames) add(r *DeviceRequest) {
	n[r.Name] = true
	for _, s := range r.FirstAvailable {
		n[r.Name+"/"+s.Name] = true
	}
}

// check checks references to requests and reports duplicates.
func (n requestNames) check(f *check.Violations, at *check.Path, list []string) {
	for i, name := range list {
		n.checkReference(f, at.Index(i), name)
	}
	f.Unique(at, list)
}

// checkReference checks a reference to a request. A reference with several slashes is reported once, as
// unknown.
func (n requestNames) checkReference(f *check.Violations, at *check.Path, name string) {
	if request, alternative, _ := strings.Cut(name, "/"); !strings.Contains(alternative, "/") {
		f.Format(at, request, meta.CheckDNSLabel(request))
		if request != name {
			f.Format(at, alternative, meta.CheckDNSLabel(alternative))
		}
	}
	if !n[name] {
		f.Invalid(at, name, "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'")
	}
}

// checkConfiguration checks the opaque parameters of a configuration.
func checkConfiguration(f *check.Violations, at *check.Path, c *DeviceConfiguration) {
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

// checkRaw checks that a value is a JSON object of at most 10 KiB. The message omits the value, because
// it may be confidential to the driver.
func checkRaw(f *check.Violations, at *check.Path, raw json.RawMessage) {
	const maxBytes = 10 << 10
	switch {
	case len(raw) > maxBytes:
		f.TooLong(at, maxBytes)
	case raw[0] != '{':
		f.Invalid(at, "<value omitted>", "must be a valid JSON object")
	}
}

// identifier is the form of the name of an attribute or a capacity without the domain.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkName checks the name of an attribute or a capacity, as name or domain/name. It accepts any name
// with more than a single slash, as kube-apiserver does.
func checkName(f *check.Violations, at *check.Path, name string) {
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
		f.Invalid(at, id, meta.RegexMessage("a name must be an identifier of letters, digits and '_' that does not begin with a digit", "[A-Za-z_][A-Za-z0-9_]*", "my_name", "MyName"))
	}
}

// checkFullName checks the name of an attribute, as domain/name.
func checkFullName(f *check.Violations, at *check.Path, name string) {
	checkName(f, at, name)
	if !strings.Contains(name, "/") {
		f.Invalid(at, name, "a fully qualified name must be a domain and a name separated by a slash")
	}
}
