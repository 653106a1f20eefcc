package schema

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// fieldFormat returns the check for a string format of Go struct fields, or nil if format is
// not one of them. The check returns one reason for each violation.
func fieldFormat(format string) func(text string) []string {
	switch format {
	case "dns-label":
		return meta.CheckDNSLabel
	case "dns-1035-label":
		return meta.CheckDNS1035Label
	case "dns-subdomain":
		return meta.CheckDNSSubdomain
	case "qualified-name":
		return meta.CheckQualifiedName
	case "label-value":
		return meta.CheckLabelValue
	case "path-segment":
		return meta.CheckPathSegment
	case "port-name":
		return check.PortName
	case "config-key":
		return check.ConfigKey
	case "env-name":
		return check.EnvName
	case "header-name":
		return check.HeaderName
	case "sysctl-name":
		return check.SysctlName
	case formatDriver:
		return meta.CheckDNSSubdomain
	case "inner-path":
		return check.InnerPath
	case "relative-path":
		return check.RelativePath
	case "file-path":
		return check.FilePath
	case "ip":
		return check.IP
	case "cidr":
		return func(text string) []string {
			if !isCIDR(text) {
				return []string{"must be a valid CIDR value"}
			}
			return nil
		}
	}
	return nil
}

// formatDriver is a DNS subdomain that may have upper case letters.
const formatDriver = "csi-driver"

// Formats of Go struct fields that need more than a check of a single string.
const (
	formatSigner   = "signer-name"    // domain/name; violations of each part are reported on their own
	formatPort     = "port"           // a port number or name
	formatPercent  = "int-or-percent" // an integer or a percentage
	formatLabels   = "labels"         // a map of labels
	formatSelector = "label-selector" // a meta.LabelSelector
)

func hasWholeFormat(s *Schema) bool {
	switch s.Format {
	case formatSigner, formatPort, formatPercent, formatLabels, formatSelector:
		return true
	}
	return false
}

// wholeFormat checks a value with one of these formats, including everything below it.
func (v *validator) wholeFormat(x any, s *Schema) {
	switch x := x.(type) {
	case int64:
		switch {
		case s.Format == formatPercent && x < 0:
			v.violation(wording.Minimum, x, "0", true)
		case s.Format == formatPort && (x < 1 || x > 65535):
			v.violation(wording.Between, x, "1 and 65535", true)
		}
	case string:
		switch s.Format {
		case formatSigner:
			v.signer(x)
			return
		case formatPort:
			v.addReasons(x, check.PortName(x))
			return
		}
		if _, ok := (meta.IntOrString{IsString: true, Text: x}).Percent(); !ok {
			v.violation(wording.Invalid, x, "must be an integer or a percentage (such as '1%' or '93%')", true)
		}
	case map[string]any:
		var f check.Violations
		if s.Format == formatLabels {
			f.Labels(nil, textsOf(x))
		} else {
			f.Selector(nil, selectorOf(x))
		}
		v.addBelow(f)
	}
}

// signer checks the name of a certificate signer.
func (v *validator) signer(name string) {
	const maxDomain, maxLabel = 253, 63
	domain, path, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(path, "/") {
		v.violation(wording.Invalid, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'", true)
		return
	}
	if len(domain) > maxDomain {
		v.violation(wording.MaxLength, domain, decimal(maxDomain), true)
	}
	for label := range strings.SplitSeq(domain, ".") {
		v.addReasons(domain, meta.CheckDNSLabel(label))
	}
	if !strings.Contains(domain, ".") {
		v.violation(wording.Invalid, domain, "should be a domain with at least two segments separated by dots", true)
	}
	for word := range strings.SplitSeq(path, ".") {
		v.addReasons(path, meta.CheckDNSSubdomain(word))
	}
	if most := 2*maxDomain + maxLabel + 2; len(name) > most {
		v.violation(wording.MaxLength, name, decimal(int64(most)), true)
	}
}

// addReasons adds a cause for each reason why text does not have its format.
func (v *validator) addReasons(text string, reasons []string) {
	for _, why := range reasons {
		v.violation(wording.Invalid, text, why, true)
	}
}

// addBelow adds causes with fields relative to the value at the path.
func (v *validator) addBelow(causes []meta.StatusCause) {
	for _, c := range causes {
		if v.full() {
			return
		}
		c.Field = meta.TruncatePath([]byte(join(v.path.String(), c.Field)))
		v.causes = append(v.causes, c)
	}
}

// selectorOf converts a normalized label selector.
func selectorOf(m map[string]any) *meta.LabelSelector {
	o := meta.NewObject(m)
	s := &meta.LabelSelector{MatchLabels: textsOf(o.Map("matchLabels"))}
	for _, e := range o.Objects("matchExpressions") {
		s.MatchExpressions = append(s.MatchExpressions,
			meta.LabelSelectorRequirement{Key: e.String("key"), Operator: e.String("operator"), Values: e.Strings("values")})
	}
	return s
}

// textsOf converts a normalized map of strings.
func textsOf(m map[string]any) map[string]string {
	texts := make(map[string]string, len(m))
	for k, v := range m {
		texts[k], _ = v.(string)
	}
	return texts
}
