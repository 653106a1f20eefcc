package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
)

// ConfigKey returns the reasons why key is not a valid key of configuration data, or nil. Keys
// become file names: they consist of at most 253 letters, digits, '-', '_' and '.'.
func ConfigKey(key string) []string {
	var faults []string
	if len(key) > 253 {
		faults = append(faults, "must be no more than 253 characters")
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !letter(r) && !digit(r) && !strings.ContainsRune("-_.", r) }) {
		faults = append(faults, meta.RegexMessage("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
			"[-._a-zA-Z0-9]+", "key.name", "KEY_NAME", "key-name"))
	}
	switch {
	case key == ".", key == "..":
		faults = append(faults, fmt.Sprintf("must not be '%s'", key))
	case strings.HasPrefix(key, ".."):
		faults = append(faults, "must not start with '..'")
	}
	return faults
}

// PortName returns the reasons why name is not a valid port name, or nil. A port name has at
// most 15 lower-case letters, digits and '-', and at least one letter.
func PortName(name string) []string {
	var faults []string
	if len(name) > 15 {
		faults = append(faults, "must be no more than 15 characters")
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !lower(r) && !digit(r) && r != '-' }) {
		faults = append(faults, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
	}
	if !strings.ContainsFunc(name, lower) {
		faults = append(faults, "must contain at least one letter (a-z)")
	}
	if strings.Contains(name, "--") {
		faults = append(faults, "must not contain consecutive hyphens")
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		faults = append(faults, "must not begin or end with a hyphen")
	}
	return faults
}

// InnerPath returns a reason if path contains "..", or nil.
func InnerPath(path string) []string {
	if slices.Contains(strings.Split(path, "/"), "..") {
		return []string{"must not contain '..'"}
	}
	return nil
}

// RelativePath returns the reasons why path is not a valid path inside a volume, or nil.
func RelativePath(path string) (faults []string) {
	if strings.HasPrefix(path, "/") {
		faults = append(faults, "must be a relative path")
	}
	return append(faults, InnerPath(path)...)
}

// FilePath returns the reasons why path is not a valid path of a file that is written into a
// volume, or nil. It must be a RelativePath and must not begin with two dots.
func FilePath(path string) []string {
	faults := RelativePath(path)
	if strings.HasPrefix(path, "..") && !strings.HasPrefix(path, "../") {
		faults = append(faults, "must not start with '..'")
	}
	return faults
}

// EnvName returns the reason why name is not a valid name of an environment variable, or nil.
func EnvName(name string) []string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '=' }) {
		return []string{"a valid environment variable name must consist only of printable ASCII characters other than '='"}
	}
	return nil
}

// SysctlName returns the reason why name is not a valid name of a kernel parameter, or nil. A
// name has at most 253 characters: words of lower-case letters, digits, '-' and '_', joined by
// dots or slashes.
func SysctlName(name string) []string {
	wrong := len(name) > 253
	for word := range strings.SplitSeq(strings.ReplaceAll(name, "/", "."), ".") {
		inner := strings.Trim(word, "-_")
		wrong = wrong || inner == "" || inner != word || strings.ContainsFunc(word, func(r rune) bool {
			return !lower(r) && !digit(r) && r != '-' && r != '_'
		})
	}
	if wrong {
		return []string{"must have at most 253 characters, in words joined by '.' or '/'"}
	}
	return nil
}

// HeaderName returns the reason why name is not a valid name of an HTTP header, or nil.
func HeaderName(name string) []string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !letter(r) && !digit(r) && r != '-' }) {
		return []string{"a valid HTTP header consists of letters, digits or '-'"}
	}
	return nil
}

// IP returns the reason why text is not a valid IP address without a zone, or nil.
func IP(text string) []string {
	if a, err := netip.ParseAddr(text); err != nil || a.Zone() != "" {
		return []string{"must be a valid IP address"}
	}
	return nil
}

func letter(r rune) bool { return lower(r) || 'A' <= r && r <= 'Z' }
func lower(r rune) bool  { return 'a' <= r && r <= 'z' }
func digit(r rune) bool  { return '0' <= r && r <= '9' }
