// Package hooks defines the client configuration of webhooks, which admission webhooks and conversion
// webhooks share.
package hooks

import (
	"net/url"
	"strconv"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// WebhookClientConfig locates a webhook. Exactly one of url and service must be set.
type WebhookClientConfig struct {
	// URL of the webhook, in the form https://host[/path]. User information, queries and fragments are
	// not permitted.
	URL *string `json:"url,omitempty" protobuf:"3"`
	// Service behind which the webhook runs.
	Service *ServiceReference `json:"service,omitempty" protobuf:"1"`
	// CABundle is a PEM bundle of the CA certificates that verify the webhook's serving certificate.
	// Unset means the system's CA certificates.
	CABundle []byte `json:"caBundle,omitempty" protobuf:"2"`
}

// ServiceReference identifies a service and a path.
type ServiceReference struct {
	// Name of the service.
	Name string `json:"name" protobuf:"2"`
	// Namespace of the service.
	Namespace string `json:"namespace" protobuf:"1"`
	// Path of the requests; default /.
	Path *string `json:"path,omitempty" protobuf:"3"`
	// Port of the service: 1 to 65535, default 443.
	Port *int32 `json:"port,omitempty" protobuf:"4" schema:"default=443,range=1|65535,reason.range=port is not valid: must be between 1 and 65535\\, inclusive"`
}

// Validate checks that exactly one of url and service is set, and its form.
func (c *WebhookClientConfig) Validate(f *check.Violations, at *check.Path) {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		f.Required(at, "exactly one of url or service is required")
	case c.URL != nil:
		checkURL(f, at.Field("url"), *c.URL)
	default:
		c.Service.validate(f, at.Field("service"))
	}
}

// validate reports a missing namespace at the field name and a missing name at namespace, because
// kube-apiserver does.
func (s *ServiceReference) validate(f *check.Violations, at *check.Path) {
	if s.Namespace == "" {
		f.Required(at.Field("name"), "")
	}
	if s.Name == "" {
		f.Required(at.Field("namespace"), "")
	}
	if s.Path != nil {
		checkPath(f, at.Field("path"), *s.Path)
	}
}

func checkURL(f *check.Violations, at *check.Path, text string) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		f.Required(at, "url must be a valid URL: "+err.Error()+form)
		return
	}
	if u.Scheme != "https" {
		f.Invalid(at, u.Scheme, "'https' is the only allowed URL scheme"+form)
	}
	if u.Host == "" {
		f.Invalid(at, u.Host, "host must be specified"+form)
	}
	if u.User != nil {
		f.Invalid(at, u.User.String(), "user information is not permitted in the URL")
	}
	if u.Fragment != "" {
		f.Invalid(at, u.Fragment, "fragments are not permitted in the URL")
	}
	if u.RawQuery != "" {
		f.Invalid(at, u.RawQuery, "query parameters are not permitted in the URL")
	}
}

// checkPath checks that each segment of a URL path is a DNS subdomain. A trailing slash is allowed.
func checkPath(f *check.Violations, at *check.Path, path string) {
	if path == "/" || path == "" {
		return
	}
	if path[0] != '/' {
		f.Invalid(at, path, "must start with a '/'")
	}
	parts := strings.Split(strings.TrimSuffix(path[1:], "/"), "/")
	for i, part := range parts {
		segment := "segment[" + strconv.Itoa(i) + "]"
		if part == "" {
			f.Invalid(at, path, segment+" may not be empty")
			continue
		}
		for _, why := range meta.CheckDNSSubdomain(part) {
			f.Invalid(at, path, segment+": "+why)
		}
	}
}

// CheckReviews checks the review versions that a webhook accepts. known demands that the server can
// send one of them; updates of stored configurations do without, as long as the list does not change.
func CheckReviews(f *check.Violations, at *check.Path, versions []string, known bool) {
	seen := map[string]bool{}
	for i, v := range versions {
		f.Format(at.Index(i), v, meta.CheckDNS1035Label(v))
		if seen[v] {
			f.Invalid(at.Index(i), v, "duplicate version")
		}
		seen[v] = true
	}
	if known && len(versions) > 0 && !seen["v1"] && !seen["v1beta1"] {
		f.Invalid(at, versions, "must include at least one of v1, v1beta1")
	}
}
