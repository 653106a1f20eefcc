// Package extras reads the extra attributes of a user from request headers with names that consist of a
// prefix and the name of the attribute.
package extras

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The headers by which a server passes the identity of the client to the servers behind it. A server removes all
// X-Remote-* headers from a client's request before it sets its own. The header names that it publishes for the
// servers behind it must be these, because clients could forge any other header.
const (
	UserHeader  = "X-Remote-User"
	UIDHeader   = "X-Remote-Uid"
	GroupHeader = "X-Remote-Group"
	Prefix      = "X-Remote-Extra-"
)

// Header is a header with the values of an extra attribute.
type Header struct {
	Name   string // key in the http.Header
	Key    string // name of the attribute
	Values []string
}

// Headers returns the headers that begin with a prefix, in any case, and have a value, sorted by
// name. The Key is the rest of the header name in lower case, percent-decoded if it is a valid
// encoding.
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
