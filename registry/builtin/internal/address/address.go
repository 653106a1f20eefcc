// Package address validates IP addresses and networks in objects.
package address

import (
	"cmp"
	"net/netip"
	"strings"

	"orch.io/controlplane/api/check"
)

// HostIP reports a violation unless text is an IP address in canonical form, and returns whether it is.
// It refuses IPv4-mapped IPv6 addresses and numbers with leading zeros, which other parsers read as
// octal.
func HostIP(f *check.Violations, at *check.Path, text string) bool {
	_, why := hostIP(text)
	if why != "" {
		f.Invalid(at, text, why)
	}
	return why == ""
}

// Reachable reports a violation if text is an unspecified, loopback or link-local address: these mean a
// different host on each node. It does not check the form of the text; call HostIP for that.
func Reachable(f *check.Violations, at *check.Path, text string) {
	switch a, why := hostIP(text); {
	case !a.IsValid():
		f.Invalid(at, text, why)
	case a.IsUnspecified():
		f.Invalid(at, text, "may not be unspecified ("+text+")")
	case a.IsLoopback():
		f.Invalid(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
	case a.IsLinkLocalUnicast():
		f.Invalid(at, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
	case a.IsLinkLocalMulticast():
		f.Invalid(at, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
	}
}

// hostIP parses an address. why describes an error in its form and is "" if there is none; the address
// is valid even for a text in the wrong form, if its meaning is clear.
func hostIP(text string) (a netip.Addr, why string) {
	a, err := netip.ParseAddr(text)
	switch {
	case err == nil && a.Is4In6():
		return a.Unmap(), "must not be an IPv4-mapped IPv6 address"
	case err == nil && a.Zone() == "":
		return a, ""
	}
	if a, err := netip.ParseAddr(trimZeros(text)); err == nil && a.Is4() {
		return a, "must not have leading 0s"
	}
	return netip.Addr{}, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
}

// trimZeros removes the leading zeros of each number in a dotted text.
func trimZeros(text string) string {
	numbers := strings.Split(text, ".")
	for i, n := range numbers {
		if short := strings.TrimLeft(n, "0"); n != "" {
			numbers[i] = cmp.Or(short, "0")
		}
	}
	return strings.Join(numbers, ".")
}

// Network reports a violation unless text is a network in CIDR notation without host bits, and returns
// the network and whether it is valid.
func Network(f *check.Violations, at *check.Path, text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	why := ""
	switch a, bits, _ := strings.Cut(text, "/"); {
	case err == nil && p.Addr().Is4In6():
		why = "must not have an IPv4-mapped IPv6 address"
	case err == nil && p != p.Masked():
		why = "must not have bits set beyond the prefix length"
	case err == nil:
		return p, true
	default:
		why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
		if _, err := netip.ParsePrefix(trimZeros(a) + "/" + trimZeros(bits)); err == nil {
			why = "must not have leading 0s in IP or prefix length"
		}
	}
	f.Invalid(at, text, why)
	return p, false
}
