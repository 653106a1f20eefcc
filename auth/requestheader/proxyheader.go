// Package requestheader authenticates callers by the headers of a proxy that has
// authenticated them. The proxy proves itself by a client certificate, which is
// checked before any header is read.
package requestheader

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/internal/verifier"
	"orch.io/controlplane/internal/extras"
)

// maxValues bounds how many groups, or values of extras, one request has.
const maxValues = 10_000

// Config says who the proxy is and what its headers mean.
type Config struct {
	// Roots are the authorities of the proxy's certificate, used for nothing
	// else. Required.
	Roots *x509.CertPool
	// AllowedNames are the common names that a proxy may have; none: any.
	AllowedNames []string
	// UserHeaders name the user: the first that has a value. Required.
	UserHeaders []string
	// UIDHeaders name the user's uid: the first that has a value.
	UIDHeaders []string
	// GroupHeaders name groups: all values of all of them.
	GroupHeaders []string
	// ExtraPrefixes begin the headers whose rest names an extra.
	ExtraPrefixes []string

	Now func() time.Time // nil: time.Now
}

// Authenticator reads the headers of a proxy.
type Authenticator struct {
	config Config
	proxy  *verifier.Verifier
}

// New checks c.
func New(c Config) (*Authenticator, error) {
	var errs []error
	if c.Roots == nil {
		errs = append(errs, errors.New("proxyheader: no authority for the proxy's certificate"))
	}
	if len(c.UserHeaders) == 0 {
		errs = append(errs, errors.New("proxyheader: no header for the user name"))
	}
	c.UserHeaders, c.UIDHeaders, c.GroupHeaders = trim(c.UserHeaders), trim(c.UIDHeaders), trim(c.GroupHeaders)
	c.ExtraPrefixes, c.AllowedNames = trim(c.ExtraPrefixes), slices.Clone(c.AllowedNames)
	if slices.Contains(slices.Concat(c.UserHeaders, c.UIDHeaders, c.GroupHeaders, c.ExtraPrefixes), "") {
		errs = append(errs, errors.New("proxyheader: an empty header name"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &Authenticator{c, verifier.New(c.Roots, c.Now)}, nil
}

func trim(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.TrimSpace(s)
	}
	return out
}

// Authenticate implements auth.Authenticator. A request without a certificate,
// or of the proxy for nobody, is none of its business.
func (a *Authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	c := &a.config
	leaf, err := a.proxy.Verify(r)
	if leaf == nil || err != nil {
		return nil, err
	}
	if len(c.AllowedNames) > 0 && !slices.Contains(c.AllowedNames, leaf.Subject.CommonName) {
		return nil, fmt.Errorf("proxyheader: the proxy may not be %q", leaf.Subject.CommonName)
	}
	u := &auth.User{Name: first(r.Header, c.UserHeaders), UID: first(r.Header, c.UIDHeaders)}
	if u.Name == "" {
		return nil, nil
	}
	for _, h := range c.GroupHeaders {
		u.Groups = append(u.Groups, r.Header.Values(h)...)
	}
	n := a.addExtras(r.Header, u)
	if n+len(u.Groups) > maxValues {
		return nil, fmt.Errorf("proxyheader: more than %d groups and extras", maxValues)
	}
	return u, nil
}

func first(h http.Header, headers []string) string {
	for _, name := range headers {
		if v := strings.TrimSpace(h.Get(name)); v != "" {
			return v
		}
	}
	return ""
}

// addExtras fills u.Extra and returns how many values there are.
func (a *Authenticator) addExtras(h http.Header, u *auth.User) int {
	n := 0
	for _, prefix := range a.config.ExtraPrefixes {
		for _, e := range extras.Headers(h, prefix) {
			if u.Extra == nil {
				u.Extra = map[string][]string{}
			}
			u.Extra[e.Key] = append(u.Extra[e.Key], e.Values...)
			n += len(e.Values)
		}
	}
	return n
}

// Strip removes the headers that only a proxy may send, so that nothing behind
// authentication can take them for true.
func (a *Authenticator) Strip(h http.Header) {
	c := &a.config
	for _, name := range slices.Concat(c.UserHeaders, c.UIDHeaders, c.GroupHeaders) {
		h.Del(name)
	}
	for _, prefix := range c.ExtraPrefixes {
		for _, e := range extras.Headers(h, prefix) {
			delete(h, e.Name)
		}
	}
}
