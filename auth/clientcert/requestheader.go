package clientcert

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

// maxValues bounds the number of groups and extra values of a request.
const maxValues = 10_000

// RequestHeaderConfig describes an authenticating proxy and its headers.
type RequestHeaderConfig struct {
	// Roots are the certificate authorities of the proxy. Do not use them for
	// other clients. Required.
	Roots *x509.CertPool
	// AllowedNames are the common names that the proxy's certificate may have; empty allows any.
	AllowedNames []string
	// UserHeaders are the headers of the user name; the first with a value counts. Required.
	UserHeaders []string
	// UIDHeaders are the headers of the user's uid; the first with a value counts.
	UIDHeaders []string
	// GroupHeaders are the headers of groups; all values of all headers count.
	GroupHeaders []string
	// ExtraPrefixes are prefixes of extra headers; the rest of the header's name is the key.
	ExtraPrefixes []string

	Now func() time.Time // nil: time.Now
}

// RequestHeader is an Authenticator for the requests of an authenticating proxy, which passes the user in
// headers. It is safe for concurrent use.
type RequestHeader struct {
	config RequestHeaderConfig
	proxy  *verifier.Verifier
}

// NewRequestHeader returns a RequestHeader, or an error that joins everything that is wrong with c.
func NewRequestHeader(c RequestHeaderConfig) (*RequestHeader, error) {
	var errs []error
	if c.Roots == nil {
		errs = append(errs, errors.New("request header: Roots is required"))
	}
	if len(c.UserHeaders) == 0 {
		errs = append(errs, errors.New("request header: UserHeaders is required"))
	}
	c.UserHeaders, c.UIDHeaders, c.GroupHeaders = trim(c.UserHeaders), trim(c.UIDHeaders), trim(c.GroupHeaders)
	c.ExtraPrefixes, c.AllowedNames = trim(c.ExtraPrefixes), slices.Clone(c.AllowedNames)
	if slices.Contains(slices.Concat(c.UserHeaders, c.UIDHeaders, c.GroupHeaders, c.ExtraPrefixes), "") {
		errs = append(errs, errors.New("request header: empty header name"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &RequestHeader{c, verifier.New(c.Roots, c.Now)}, nil
}

func trim(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.TrimSpace(s)
	}
	return out
}

// Authenticate implements auth.Authenticator. It returns nil, nil for a request without a client
// certificate or without a user header.
func (a *RequestHeader) Authenticate(r *http.Request) (*auth.User, error) {
	c := &a.config
	leaf, err := a.proxy.Verify(r)
	if leaf == nil || err != nil {
		return nil, err
	}
	if len(c.AllowedNames) > 0 && !slices.Contains(c.AllowedNames, leaf.Subject.CommonName) {
		return nil, fmt.Errorf("request header: common name %q is not in AllowedNames", leaf.Subject.CommonName)
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
		return nil, fmt.Errorf("request header: more than %d groups and extra values", maxValues)
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

// addExtras fills u.Extra and returns the number of values.
func (a *RequestHeader) addExtras(h http.Header, u *auth.User) int {
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

// Strip removes the proxy's headers from h, so that no handler after authentication trusts
// them.
func (a *RequestHeader) Strip(h http.Header) {
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
