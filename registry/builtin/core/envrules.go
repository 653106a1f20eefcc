package core

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

func (r *podRules) env(at *check.Path, env []EnvVar) {
	for i := range env {
		e, p := &env[i], at.Index(i)
		if e.ValueFrom != nil {
			r.valueFrom(p.Field("valueFrom"), e)
		}
	}
}

func (r *podRules) valueFrom(at *check.Path, e *EnvVar) {
	n, from := 0, e.ValueFrom
	if from.FieldRef != nil {
		n++
		r.fieldRef(at.Field("fieldRef"), from.FieldRef, false)
	}
	if from.ResourceFieldRef != nil {
		n++
		r.resourceRef(at.Field("resourceFieldRef"), from.ResourceFieldRef, false)
	}
	if c := from.ConfigMapKeyRef; c != nil {
		n++
		r.Format(at.Field("configMapKeyRef").Field("name"), c.Name, meta.CheckDNSSubdomain(c.Name))
	}
	if s := from.SecretKeyRef; s != nil {
		n++
		r.Format(at.Field("secretKeyRef").Field("name"), s.Name, meta.CheckDNSSubdomain(s.Name))
	}
	if f := from.FileKeyRef; f != nil {
		n++
		if r.volumes[f.VolumeName] == nil {
			r.NotFound(at.Field("fileKeyRef").Field("volumeName"), f.VolumeName)
		}
	}
	switch {
	case e.Value != "" && n != 0:
		r.Invalid(at, "", "may not be specified when `value` is not empty")
	case n > 1:
		r.Invalid(at, "", "may not have more than one field specified at a time")
	case n == 0:
		r.Invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`")
	}
}

// fieldRef checks a field reference. file tells downward API files from environment variables, which
// support other fields.
func (r *podRules) fieldRef(at *check.Path, f *ObjectFieldSelector, file bool) {
	path := at.Field("fieldPath")
	switch {
	case f.APIVersion == "":
		r.Required(at.Field("apiVersion"), "")
		return
	case f.FieldPath == "":
		r.Required(path, "")
		return
	case f.APIVersion != version:
		r.Invalid(path, f.FieldPath, "unknown version "+f.APIVersion)
		return
	}
	switch field, key, _ := subscript(f.FieldPath); field {
	case "metadata.labels":
		r.Format(at, key, meta.CheckQualifiedName(key))
		return
	case "metadata.annotations":
		r.Format(at, key, meta.CheckQualifiedName(strings.ToLower(key)))
		return
	}
	files := []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
	variables := []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	others := []string{"spec.restartPolicy", "spec.schedulerName", "status.phase"}
	known := variables
	if file {
		known = files
	}
	if !slices.Contains(slices.Concat(files, variables, others), f.FieldPath) {
		r.Invalid(path, f.FieldPath, "field label not supported")
		return
	}
	r.OneOf(path, f.FieldPath, known...)
}

// subscript splits a path such as metadata.labels['key'].
func subscript(path string) (field, key string, ok bool) {
	if !strings.HasSuffix(path, "']") {
		return "", "", false
	}
	return strings.Cut(strings.TrimSuffix(path, "']"), "['")
}

// resourceRef checks a reference to a limit or a request, and its divisor. file demands a container
// name.
func (r *podRules) resourceRef(at *check.Path, f *ResourceFieldSelector, file bool) {
	known := []string{
		"limits.cpu", "limits.ephemeral-storage", "limits.memory",
		"requests.cpu", "requests.ephemeral-storage", "requests.memory",
	}
	_, resource, _ := strings.Cut(f.Resource, ".")
	switch {
	case file && f.ContainerName == "":
		r.Required(at.Field("containerName"), "")
	case f.Resource == "":
		r.Required(at.Field("resource"), "")
	case !slices.Contains(known, f.Resource) && !isHugePages(resource):
		r.NotSupported(at.Field("resource"), f.Resource, known...)
	}
	units := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	if resource == "cpu" {
		units = []string{"1m", "1"}
	}
	if !f.Divisor.IsZero() && (slices.Contains(known, f.Resource) || isHugePages(resource)) && !slices.Contains(units, f.Divisor.String()) {
		r.Invalid(at.Field("divisor"), f.Resource, "only the divisors "+strings.Join(units, ", ")+" are supported")
	}
}

func (r *podRules) envFrom(at *check.Path, list []EnvFromSource) {
	for i, e := range list {
		p := at.Index(i)
		n := 0
		if e.ConfigMapRef != nil {
			n++
			r.sourceName(p.Field("configMapRef").Field("name"), e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			n++
			r.sourceName(p.Field("secretRef").Field("name"), e.SecretRef.Name)
		}
		switch n {
		case 0:
			r.Invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
		case 2:
			r.Invalid(at, "", "may not have more than one field specified at a time")
		}
	}
}

// sourceName checks the required name of a source of environment variables.
func (r *podRules) sourceName(at *check.Path, name string) {
	if name == "" {
		r.Required(at, "")
		return
	}
	r.Format(at, name, meta.NameChecker(meta.CheckDNSSubdomain)(name, true))
}
