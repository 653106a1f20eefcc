package schema

import (
	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
)

// fieldFormat returns what finds out what is wrong with a text of a format that
// fields of Go structs have, nil for a format that is not one of these. Each
// reason is told by itself.
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
	case "ip":
		return unless(check.IsIP, "must be a valid IP address")
	case "cidr":
		return unless(isCIDR, "must be a valid CIDR value")
	}
	return nil
}

// unless gives the reason why a text that is not good is not.
func unless(good func(string) bool, why string) func(string) []string {
	return func(text string) []string {
		if good(text) {
			return nil
		}
		return []string{why}
	}
}
