package schema

import (
	"encoding/base64"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"orch.io/controlplane/internal/duration"
)

var (
	uuidForm     = regexp.MustCompile(`^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$`)
	uuid3Form    = regexp.MustCompile(`^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$`)
	uuid4Form    = regexp.MustCompile(`^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$`)
	uuid5Form    = regexp.MustCompile(`^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$`)
	hexColorForm = regexp.MustCompile(`^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`)
	rgbColorForm = regexp.MustCompile(`^rgb\(` + rgbPart + `,` + rgbPart + `,` + rgbPart + `\)$`)
	hostLabel    = regexp.MustCompile(`^[\pL\pS0-9]([-\pL\pS0-9]*[\pL\pS0-9])?$`)
	ssnForm      = regexp.MustCompile(`^\d{3}[- ]\d{2}[- ]\d{4}$`)
	cardForm     = regexp.MustCompile(`^(4\d{12}(\d{3})?|(5[1-5]|35)\d{14}|6(011|5\d\d)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(2131|1800)\d{11})$`)
	labelForm    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	domainForm   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	objectIDForm = regexp.MustCompile(`^[0-9a-fA-F]{24}$`)
)

// rgbPart matches one of the three components of a color, 0 to 255.
const rgbPart = `\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*`

// HasFormat reports whether text has the named format. As OpenAPI requires, every text has an
// unknown format.
func HasFormat(text, format string) bool {
	check := formatCheck(format)
	return check == nil || check(text)
}

// knowsFormat reports whether HasFormat checks the format.
func knowsFormat(format string) bool { return formatCheck(format) != nil }

func formatCheck(format string) func(string) bool {
	switch format {
	case "date-time", "datetime":
		return parses(func(s string) (time.Time, error) { return time.Parse(time.RFC3339, strings.ToUpper(s)) })
	case "date":
		return parses(func(s string) (time.Time, error) { return time.Parse(time.DateOnly, s) })
	case "duration":
		return parses(duration.Parse)
	case "byte":
		return func(s string) bool {
			_, err := base64.StdEncoding.DecodeString(s)
			return err == nil && s != "" && !strings.ContainsAny(s, "\r\n")
		}
	case "uri":
		return parses(url.ParseRequestURI)
	case "email":
		return parses(mail.ParseAddress)
	case "hostname":
		return isHostname
	case "ipv4":
		return func(s string) bool { return isAddress(s) && strings.Contains(s, ".") }
	case "ipv6":
		return func(s string) bool { return isAddress(s) && strings.Contains(s, ":") }
	case "cidr":
		return isCIDR
	case "mac":
		return parses(net.ParseMAC)
	case "isbn":
		return func(s string) bool { return isISBN(s, 10) || isISBN(s, 13) }
	case "isbn10":
		return func(s string) bool { return isISBN(s, 10) }
	case "isbn13":
		return func(s string) bool { return isISBN(s, 13) }
	case "creditcard":
		return isCard
	case "k8s-long-name":
		return func(s string) bool { return len(s) <= 253 && domainForm.MatchString(s) }
	}
	if re := formatPattern(format); re != nil {
		return re.MatchString
	}
	return nil
}

func formatPattern(format string) *regexp.Regexp {
	switch format {
	case "k8s-short-name":
		return labelForm
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
	case "ssn":
		return ssnForm
	case "bsonobjectid":
		return objectIDForm
	}
	return nil
}

// parses returns a check that accepts a text if parse does.
func parses[T any](parse func(string) (T, error)) func(string) bool {
	return func(s string) bool {
		_, err := parse(s)
		return err == nil
	}
}

// isHostname reports whether text is a single label, or a domain name with a top-level domain
// of letters.
func isHostname(text string) bool {
	labels := strings.Split(text, ".")
	last := len(labels) - 1
	if len(text) > 255 || last > 0 && !isTopDomain(labels[last]) || last == 0 && strings.Contains(text, "--") {
		return false
	}
	return !slices.ContainsFunc(labels, func(label string) bool { return len(label) > 63 || !hostLabel.MatchString(label) })
}

// isTopDomain reports whether label consists of 2 to 63 letters. A regular expression that
// counts letters of all scripts would need megabytes.
func isTopDomain(label string) bool {
	n := utf8.RuneCountInString(label)
	return n >= 2 && n <= 63 && !strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsLetter(r) })
}

// plainAddress removes leading zeros from the decimal parts of an IP address.
func plainAddress(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	head, dotted := "", text
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		head, dotted = text[:i+1], text[i+1:]
	}
	parts := strings.Split(dotted, ".")
	for i, p := range parts {
		if short := strings.TrimLeft(p, "0"); short != p {
			parts[i] = short
			if short == "" {
				parts[i] = "0"
			}
		}
	}
	return head + strings.Join(parts, ".")
}

func isAddress(text string) bool {
	a, err := netip.ParseAddr(plainAddress(text))
	return err == nil && a.Zone() == ""
}

func isCIDR(text string) bool {
	address, bits, ok := strings.Cut(text, "/")
	n, err := strconv.ParseUint(bits, 10, 8)
	most := uint64(32)
	if strings.Contains(address, ":") {
		most = 128
	}
	return ok && err == nil && n <= most && isAddress(address)
}

// isISBN reports whether text is a valid ISBN of the given length, including its check digit.
func isISBN(text string, digits int) bool {
	text = strings.NewReplacer("-", "", " ", "").Replace(text)
	if len(text) != digits {
		return false
	}
	sum, modulus := 0, 11
	if digits == 13 {
		modulus = 10
	}
	for i, c := range text {
		n := int(c - '0')
		switch {
		case c == 'X' && digits == 10 && i == 9:
			n = 10
		case c < '0' || c > '9':
			return false
		}
		weight := 10 - i
		if digits == 13 {
			weight = 1 + 2*(i%2)
		}
		sum += weight * n
	}
	return sum%modulus == 0
}

// isCard reports whether text is a valid payment card number, including its check digit.
func isCard(text string) bool {
	text = strings.NewReplacer("-", "", " ", "").Replace(text)
	if !cardForm.MatchString(text) {
		return false
	}
	sum := 0
	for i := range len(text) {
		n := int(text[len(text)-1-i] - '0')
		if i%2 == 1 {
			n *= 2
		}
		sum += n/10 + n%10
	}
	return sum%10 == 0
}
