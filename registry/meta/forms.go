package meta

import (
	"fmt"
	"strings"
)

// The Check functions return what is wrong with a text, in words for its
// author; nil means nothing is.

const (
	maxLabel     = 63
	maxSubdomain = 253
)

func lowerAlnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
func alnum(c byte) bool      { return lowerAlnum(c) || c >= 'A' && c <= 'Z' }

// CheckDNSLabel checks an RFC 1123 label: at most 63 of a-z, 0-9 and '-', with
// a letter or digit at both ends.
func CheckDNSLabel(s string) []string {
	var faults []string
	if len(s) > maxLabel {
		faults = append(faults, tooLong(maxLabel))
	}
	if !dnsLabel(s) {
		faults = append(faults, "must consist of lower case letters, digits or '-', and begin and end with a letter or digit (a lowercase RFC 1123 label)")
	}
	return faults
}

// CheckDNSSubdomain checks an RFC 1123 subdomain: at most 253 characters,
// labels (of any length) joined by dots.
func CheckDNSSubdomain(s string) []string {
	var faults []string
	if len(s) > maxSubdomain {
		faults = append(faults, tooLong(maxSubdomain))
	}
	if !dnsSubdomain(s) {
		faults = append(faults, "must consist of lower case letters, digits, '-' or '.', and begin and end with a letter or digit (a lowercase RFC 1123 subdomain)")
	}
	return faults
}

// CheckDNS1035Label checks an RFC 1035 label: as a DNS label, but it begins
// with a letter.
func CheckDNS1035Label(s string) []string {
	var faults []string
	if len(s) > maxLabel {
		faults = append(faults, tooLong(maxLabel))
	}
	if !dnsLabel(s) || s[0] >= '0' && s[0] <= '9' {
		faults = append(faults, "must consist of lower case letters, digits or '-', begin with a letter and end with a letter or digit (an RFC 1035 label)")
	}
	return faults
}

// CheckQualifiedName checks the key of a label or annotation: a name of at most
// 63 letters, digits, '-', '_' and '.', with an optional DNS subdomain and '/'
// before it.
func CheckQualifiedName(s string) []string {
	var faults []string
	prefix, name, hasPrefix := strings.Cut(s, "/")
	switch {
	case !hasPrefix:
		name = prefix
	case strings.Contains(name, "/"):
		return []string{"must be a name of letters, digits, '-', '_' or '.', with an optional DNS subdomain prefix and '/'"}
	case prefix == "":
		faults = append(faults, "the prefix part must not be empty")
	default:
		for _, f := range CheckDNSSubdomain(prefix) {
			faults = append(faults, "the prefix part "+f)
		}
	}
	switch {
	case name == "":
		faults = append(faults, "the name part must not be empty")
	case len(name) > maxLabel:
		faults = append(faults, "the name part "+tooLong(maxLabel))
	}
	if !nameForm(name) {
		faults = append(faults, "the name part must consist of letters, digits, '-', '_' or '.', and begin and end with a letter or digit")
	}
	return faults
}

// CheckLabelValue checks the value of a label: empty, or at most 63 letters,
// digits, '-', '_' and '.', with a letter or digit at both ends.
func CheckLabelValue(s string) []string {
	var faults []string
	if len(s) > maxLabel {
		faults = append(faults, tooLong(maxLabel))
	}
	if s != "" && !nameForm(s) {
		faults = append(faults, "a label value must be empty or consist of letters, digits, '-', '_' or '.', and begin and end with a letter or digit")
	}
	return faults
}

// CheckPathSegment checks that a name can stand as one segment of a path.
func CheckPathSegment(s string) []string {
	if s == "." || s == ".." {
		return []string{fmt.Sprintf("must not be %q", s)}
	}
	return CheckPathSegmentPrefix(s)
}

// CheckPathSegmentPrefix checks that a text can begin a segment of a path.
func CheckPathSegmentPrefix(s string) []string {
	var faults []string
	for _, c := range []string{"/", "%"} {
		if strings.Contains(s, c) {
			faults = append(faults, fmt.Sprintf("must not contain %q", c))
		}
	}
	return faults
}

// NameChecker returns a check for names and, with prefix true, for
// generateNames of a form: CheckDNSSubdomain, CheckDNSLabel, ... A prefix may
// end with '-', which the generated part follows.
func NameChecker(form func(string) []string) func(name string, prefix bool) []string {
	return func(name string, prefix bool) []string {
		if prefix && len(name) > 1 && name[len(name)-1] == '-' {
			name = name[:len(name)-1] + "a"
		}
		return form(name)
	}
}

func tooLong(n int) string { return fmt.Sprintf("must be no more than %d characters", n) }

func dnsLabel(s string) bool {
	if s == "" || !lowerAlnum(s[0]) || !lowerAlnum(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !lowerAlnum(s[i]) && s[i] != '-' {
			return false
		}
	}
	return true
}

func dnsSubdomain(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if !dnsLabel(label) {
			return false
		}
	}
	return true
}

func nameForm(s string) bool {
	if s == "" || !alnum(s[0]) || !alnum(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alnum(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
