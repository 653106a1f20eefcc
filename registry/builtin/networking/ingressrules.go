package networking

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// validateIngress checks the spec, or for a write of the status only the status.
func validateIngress(w *registry.Change[Ingress]) {
	if w.Subresource == "status" {
		w.New.Status.validate(&w.Violations)
		return
	}
	f, at, s := &w.Violations, check.At("spec"), &w.New.Spec
	key := w.Names.Wire(wellknown.IngressClass)
	if class, there := w.New.Annotations[key]; there && w.Old == nil && s.IngressClassName != nil && class != *s.IngressClassName {
		f.Invalid(check.At("annotations").Field(key), class, "must match `ingressClassName` when both are specified")
	}
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		f.Invalid(at, s.Rules, "either `defaultBackend` or `rules` must be specified")
	}
	if s.DefaultBackend != nil {
		s.DefaultBackend.validate(f, at.Field("defaultBackend"))
	}
	for i, t := range s.TLS {
		for j, host := range t.Hosts {
			checkHost(f, at.Field("tls").Index(i).Field("hosts").Index(j), host)
		}
	}
	for i, r := range s.Rules {
		at := at.Field("rules").Index(i)
		switch {
		case r.Host == "":
		case len(check.IP(r.Host)) == 0:
			f.Invalid(at.Field("host"), r.Host, "must be a DNS name, not an IP address")
		default:
			checkHost(f, at.Field("host"), r.Host)
		}
		if r.HTTP == nil {
			continue
		}
		for j := range r.HTTP.Paths {
			r.HTTP.Paths[j].validate(f, at.Field("http").Field("paths").Index(j))
		}
	}
}

// checkHost checks a DNS name; its first label may be *.
func checkHost(f *check.Violations, at *check.Path, host string) {
	suffix, wildcard := strings.CutPrefix(host, "*.")
	switch {
	case !strings.Contains(host, "*"):
		f.Format(at, host, meta.CheckDNSSubdomain(host))
	case !wildcard || len(meta.CheckDNSSubdomain(suffix)) > 0:
		f.Invalid(at, host, "must be a DNS subdomain behind '*.', such as '*.example.com'")
	}
}

func (p *HTTPIngressPath) validate(f *check.Violations, at *check.Path) {
	if p.PathType == nil {
		return
	}
	path := at.Field("path")
	switch exact := *p.PathType == "Exact" || *p.PathType == "Prefix"; {
	case !strings.HasPrefix(p.Path, "/") && (p.Path != "" && *p.PathType == "ImplementationSpecific" || exact):
		f.Invalid(path, p.Path, "must be an absolute path")
	case exact:
		for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, part) {
				f.Invalid(path, p.Path, "must not contain '"+part+"'")
			}
		}
		for _, end := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, end) {
				f.Invalid(path, p.Path, "cannot end with '"+end+"'")
			}
		}
	}
	p.Backend.validate(f, at.Field("backend"))
}

// validate checks that exactly one of service and resource is set, and that a service backend has
// exactly one of port name and number.
func (b *IngressBackend) validate(f *check.Violations, at *check.Path) {
	switch r, s := b.Resource, b.Service; {
	case r != nil && s != nil:
		f.Invalid(at, "", "cannot set both resource and service backends")
	case r != nil:
		at = at.Field("resource")
		if r.APIGroup != nil {
			f.Format(at.Field("apiGroup"), *r.APIGroup, meta.CheckDNSSubdomain(*r.APIGroup))
		}
		checkPathSegment(f, at, "kind", r.Kind)
		checkPathSegment(f, at, "name", r.Name)
	case s == nil:
		f.Invalid(at, "", "resource or service backend is required")
	case s.Port.Name != "" && s.Port.Number != 0:
		f.Invalid(at, "", "cannot set both port name & port number")
	case s.Port.Name == "" && s.Port.Number == 0:
		f.Required(at, "port name or number is required")
	}
}

// checkPathSegment checks that a required field can be part of a URL path.
func checkPathSegment(f *check.Violations, at *check.Path, field, value string) {
	if f.RequiredField(at, field, value); value != "" {
		f.Format(at.Field(field), value, meta.CheckPathSegment(value))
	}
}

func (s *IngressStatus) validate(f *check.Violations) {
	for i, in := range s.LoadBalancer.Ingress {
		if len(check.IP(in.Hostname)) == 0 {
			f.Invalid(check.At("status", "loadBalancer", "ingress").Index(i).Field("hostname"), in.Hostname, "must be a DNS name, not an IP address")
		}
	}
}
