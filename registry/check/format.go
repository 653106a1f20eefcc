package check

import (
	"fmt"
	"strings"
)

// ConfigKey returns what is wrong with the key of a configuration entry, which
// becomes a file name: letters, digits, '-', '_' and '.', at most 253.
func ConfigKey(key string) []string {
	var faults []string
	if len(key) > 253 {
		faults = append(faults, "must be no more than 253 bytes")
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !letter(r) && !digit(r) && !strings.ContainsRune("-_.", r) }) {
		faults = append(faults, "a key consists of letters, digits, '-', '_' or '.'")
	}
	switch {
	case key == ".", key == "..":
		faults = append(faults, fmt.Sprintf("must not be %q", key))
	case strings.HasPrefix(key, ".."):
		faults = append(faults, "must not start with '..'")
	}
	return faults
}

// PortName returns what is wrong with the name of a port: at most 15
// lower-case letters, digits and '-', with a letter among them.
func PortName(name string) []string {
	var faults []string
	if len(name) > 15 {
		faults = append(faults, "must be no more than 15 characters")
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !lower(r) && !digit(r) && r != '-' }) {
		faults = append(faults, "must contain only lower-case letters, digits and '-'")
	}
	if !strings.ContainsFunc(name, lower) {
		faults = append(faults, "must contain at least one letter")
	}
	if strings.Contains(name, "--") {
		faults = append(faults, "must not contain consecutive hyphens")
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		faults = append(faults, "must not begin or end with a hyphen")
	}
	return faults
}

// EnvName returns what is wrong with the name of an environment variable.
func EnvName(name string) []string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '=' }) {
		return []string{"a variable's name consists of printable ASCII characters other than '='"}
	}
	return nil
}

func letter(r rune) bool { return lower(r) || 'A' <= r && r <= 'Z' }
func lower(r rune) bool  { return 'a' <= r && r <= 'z' }
func digit(r rune) bool  { return '0' <= r && r <= '9' }
