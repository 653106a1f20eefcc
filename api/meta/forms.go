package meta

import (
	"fmt"
	"strings"
)

// The Check functions return the reasons why a text is invalid, with the messages of the
// reference server, or nil if it is valid.

const (
	maxLabel     = 63
	maxSubdomain = 253
)

// The formats in messages: as a pattern and as a list of characters.
const (
	labelPattern     = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
	subdomainPattern = labelPattern + `(\.` + labelPattern + ")*"
	namePattern      = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

	nameCharacters = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)

// RegexMessage returns the description of a format with examples and its pattern appended.
func RegexMessage(form, pattern string, examples ...string) string {
	return fmt.Sprintf("%s (e.g. '%s', regex used for validation is '%s')", form, strings.Join(examples, "',  or '"), pattern)
}

func subdomainForm() string {
	return RegexMessage("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
		subdomainPattern, "example.com")
}

func qualifiedForm() string {
	return RegexMessage(nameCharacters, namePattern, "MyName", "my.name", "123-abc")
}

func lowerAlnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
func alnum(c byte) bool      { return lowerAlnum(c) || c >= 'A' && c <= 'Z' }

// CheckDNSLabel checks an RFC 1123 label: at most 63 of a-z, 0-9 and '-', with a letter or
// digit at both ends.
func CheckDNSLabel(s string) []string {
	var faults []string
	if len(s) > maxLabel {
		faults = append(faults, tooLong(maxLabel))
	}
	switch {
	case dnsLabel(s):
	case dnsSubdomain(s):
		faults = append(faults, "must not contain dots")
	default:
		faults = append(faults, RegexMessage("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
			labelPattern, "my-name", "123-abc"))
	}
	return faults
}

// CheckDNSSubdomain checks an RFC 1123 subdomain: labels of any length, joined by dots, with at
// most 253 characters.
func CheckDNSSubdomain(s string) []string {
	var faults []string
	if len(s) > maxSubdomain {
		faults = append(faults, tooLong(maxSubdomain))
	}
	if !dnsSubdomain(s) {
		faults = append(faults, subdomainForm())
	}
	return faults
}

// CheckDNS1035Label checks an RFC 1035 label: a DNS label that begins with a letter.
func CheckDNS1035Label(s string) []string {
	var faults []string
	if len(s) > maxLabel {
		faults = append(faults, tooLong(maxLabel))
	}
	if !dnsLabel(s) || s[0] >= '0' && s[0] <= '9' {
		faults = append(faults, RegexMessage("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
			"[a-z]([-a-z0-9]*[a-z0-9])?", "my-name", "abc-123"))
	}
	return faults
}

// CheckKind checks the name of a kind: an RFC 1035 label that may have upper-case letters.
func CheckKind(s string) []string {
	faults := CheckDNS1035Label(strings.ToLower(s))
	for i, f := range faults {
		faults[i] = "may have mixed case, but should otherwise match: " + f
	}
	return faults
}

// CheckQualifiedName checks the key of a label or annotation: a name of at most 63 letters,
// digits, '-', '_' and '.', optionally preceded by a DNS subdomain and '/'.
func CheckQualifiedName(s string) []string {
	var faults []string
	prefix, name, hasPrefix := strings.Cut(s, "/")
	switch {
	case !hasPrefix:
		name = prefix
	case strings.Contains(name, "/"):
		return []string{"a valid label key " + qualifiedForm() + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"}
	case prefix == "":
		faults = append(faults, "prefix part must be non-empty")
	default:
		if len(prefix) > maxSubdomain {
			faults = append(faults, "prefix part "+tooManyBytes(maxSubdomain))
		}
		if !dnsSubdomain(prefix) {
			faults = append(faults, "prefix part "+subdomainForm())
		}
	}
	switch {
	case name == "":
		faults = append(faults, "name part must be non-empty")
	case len(name) > maxLabel:
		faults = append(faults, "name part "+tooManyBytes(maxLabel))
	}
	if !nameForm(name) {
		faults = append(faults, "name part "+qualifiedForm())
	}
	return faults
}

// CheckLabelValue checks the value of a label: empty, or at most 63 letters, digits, '-', '_'
// and '.', with a letter or digit at both ends.
func CheckLabelValue(s string) []string {
	var faults []string
	if len(s) > maxLabel {
		faults = append(faults, tooManyBytes(maxLabel))
	}
	if s != "" && !nameForm(s) {
		faults = append(faults, RegexMessage("a valid label must be an empty string or "+strings.TrimPrefix(nameCharacters, "must "),
			"("+namePattern+")?", "MyValue", "my_value", "12345"))
	}
	return faults
}

// CheckPathSegment checks that a name can be a segment of a URL path.
func CheckPathSegment(s string) []string {
	if s == "." || s == ".." {
		return []string{fmt.Sprintf("may not be '%s'", s)}
	}
	return checkPathSegmentPrefix(s)
}

// checkPathSegmentPrefix checks that a text can begin a segment of a URL path.
func checkPathSegmentPrefix(s string) []string {
	var faults []string
	for _, c := range []string{"/", "%"} {
		if strings.Contains(s, c) {
			faults = append(faults, fmt.Sprintf("may not contain '%s'", c))
		}
	}
	return faults
}

// NameChecker returns a check for names of a format, which is one of the Check functions. If
// prefix is true, the check is for generateName, which may end with '-' because the generated
// part follows.
func NameChecker(form func(string) []string) func(name string, prefix bool) []string {
	return func(name string, prefix bool) []string {
		if prefix && len(name) > 1 && name[len(name)-1] == '-' {
			name = name[:len(name)-1] + "a"
		}
		return form(name)
	}
}

func tooLong(n int) string      { return fmt.Sprintf("must be no more than %d characters", n) }
func tooManyBytes(n int) string { return fmt.Sprintf("must be no more than %d bytes", n) }

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
