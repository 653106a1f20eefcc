package schema

import (
	"encoding/base64"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"time"
)

var (
	uuidForm     = regexp.MustCompile(`^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$`)
	uuid3Form    = regexp.MustCompile(`^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$`)
	uuid4Form    = regexp.MustCompile(`^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$`)
	uuid5Form    = regexp.MustCompile(`^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$`)
	hexColorForm = regexp.MustCompile(`^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`)
	rgbColorForm = regexp.MustCompile(`^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$`)
	hostForm     = regexp.MustCompile(`^([a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?)(\.[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?)*\.?$`)
	isbn10Form   = regexp.MustCompile(`^(?:\d[ -]?){9}[\dX]$`)
	isbn13Form   = regexp.MustCompile(`^(?:\d[ -]?){13}$`)
	ssnForm      = regexp.MustCompile(`^\d{3}[- ]?\d{2}[- ]?\d{4}$`)
	cardForm     = regexp.MustCompile(`^(?:\d[ -]?){12,18}\d$`)
	labelForm    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	domainForm   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	objectIDForm = regexp.MustCompile(`^[0-9a-fA-F]{24}$`)
)

// hasFormat reports whether text has a named format. Unknown formats say
// nothing, as OpenAPI wants it.
func hasFormat(text, format string) bool {
	switch format {
	case "date-time", "datetime":
		_, err := time.Parse(time.RFC3339, text)
		return err == nil
	case "date":
		_, err := time.Parse(time.DateOnly, text)
		return err == nil
	case "duration":
		_, err := time.ParseDuration(text)
		return err == nil
	case "byte":
		_, err := base64.StdEncoding.DecodeString(text)
		return err == nil
	case "uri":
		u, err := url.ParseRequestURI(text)
		return err == nil && u != nil
	case "email":
		a, err := mail.ParseAddress(text)
		return err == nil && a.Address != ""
	case "hostname":
		return len(text) < 255 && hostForm.MatchString(text)
	case "ipv4":
		a, err := netip.ParseAddr(text)
		return err == nil && a.Is4()
	case "ipv6":
		a, err := netip.ParseAddr(text)
		return err == nil && a.Is6()
	case "cidr":
		_, _, err := net.ParseCIDR(text)
		return err == nil
	case "mac":
		_, err := net.ParseMAC(text)
		return err == nil
	}
	if re := formatPattern(format); re != nil {
		return re.MatchString(text)
	}
	return true
}

func formatPattern(format string) *regexp.Regexp {
	switch format {
	case "k8s-short-name":
		return labelForm
	case "k8s-long-name":
		return domainForm
	case "uuid":
		return uuidForm
	case "uuid3":
		return uuid3Form
	case "uuid4":
		return uuid4Form
	case "uuid5":
		return uuid5Form
	case "hexcolor":
		return hexColorForm
	case "rgbcolor":
		return rgbColorForm
	case "isbn10":
		return isbn10Form
	case "isbn13", "isbn":
		return isbn13Form
	case "ssn":
		return ssnForm
	case "creditcard":
		return cardForm
	case "bsonobjectid":
		return objectIDForm
	}
	return nil
}
