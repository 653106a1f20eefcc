// Package extras knows how headers tell who calls: it reads the extras of a user out of
// those whose names begin with a prefix and end with the name of the extra.
package extras

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The headers by which a server tells those behind it who calls. What is published of them
// is what is sent, or callers could tell it themselves.
const (
	UserHeader  = "X-Remote-User"
	UIDHeader   = "X-Remote-Uid"
	GroupHeader = "X-Remote-Group"
	Prefix      = "X-Remote-Extra-"
)

// Header is a header that carries values of an extra.
type Header struct {
	Name   string // as it stands in the http.Header
	Key    string // of the extra
	Values []string
}

// Headers returns the headers that begin with a prefix, in any case, and have a
// value, sorted by name. The rest of a name is the key: in lower case, then
// percent-decoded; what is no valid encoding stands for itself.
func Headers(h http.Header, prefix string) []Header {
	var out []Header
	for name, values := range h {
		if len(values) == 0 || len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
			continue
		}
		key := strings.ToLower(name[len(prefix):])
		if decoded, err := url.PathUnescape(key); err == nil {
			key = decoded
		}
		out = append(out, Header{name, key, values})
	}
	slices.SortFunc(out, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return out
}
