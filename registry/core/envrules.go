package core

import (
	"slices"
	"strings"

	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
)

func (r *podRules) env(at *check.Path, env []EnvVar) {
	for i := range env {
		e, p := &env[i], at.Index(i)
		if e.Name == "" {
			r.Required(p.Field("name"), "")
		} else {
			r.Format(p.Field("name"), e.Name, check.EnvName(e.Name))
		}
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
		r.keyRef(at.Field("configMapKeyRef"), c.Name, c.Key)
	}
	if s := from.SecretKeyRef; s != nil {
		n++
		r.keyRef(at.Field("secretKeyRef"), s.Name, s.Key)
	}
	if f := from.FileKeyRef; f != nil {
		n++
		r.fileRef(at.Field("fileKeyRef"), f)
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

// fieldRef checks the choice of a field of the pod; files may hold fewer of
// them than variables.
func (r *podRules) fieldRef(at *check.Path, f *ObjectFieldSelector, file bool) {
	switch {
	case f.APIVersion == "":
		r.Required(at.Field("apiVersion"), "")
		return
	case f.FieldPath == "":
		r.Required(at.Field("fieldPath"), "")
		return
	}
	if path, key, ok := subscript(f.FieldPath); ok {
		switch path {
		case "metadata.labels", "metadata.annotations":
			r.Format(at, key, meta.CheckQualifiedName(key))
		default:
			r.Invalid(at, f.FieldPath, "does not support subscript")
		}
		return
	}
	known := []string{"metadata.name", "metadata.namespace", "metadata.uid"}
	if file {
		known = append(known, "metadata.annotations", "metadata.labels")
	} else {
		known = append(known, "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
	}
	r.OneOf(at.Field("fieldPath"), f.FieldPath, known...)
}

// subscript splits metadata.labels['key'].
func subscript(path string) (field, key string, ok bool) {
	if !strings.HasSuffix(path, "']") {
		return "", "", false
	}
	field, key, ok = strings.Cut(strings.TrimSuffix(path, "']"), "['")
	return field, key, ok
}

func (r *podRules) resourceRef(at *check.Path, f *ResourceFieldSelector, file bool) {
	if file && f.ContainerName == "" {
		r.Required(at.Field("containerName"), "")
		return
	}
	if f.Resource == "" {
		r.Required(at.Field("resource"), "")
		return
	}
	known := []string{
		"limits.cpu", "limits.ephemeral-storage", "limits.memory",
		"requests.cpu", "requests.ephemeral-storage", "requests.memory",
	}
	if !slices.Contains(known, f.Resource) && !strings.HasPrefix(f.Resource, "limits.hugepages-") && !strings.HasPrefix(f.Resource, "requests.hugepages-") {
		r.NotSupported(at.Field("resource"), f.Resource, known...)
	}
	if f.Divisor.Sign() < 0 {
		r.Invalid(at.Field("divisor"), f.Divisor, "must be greater than or equal to 0")
	}
}

func (r *podRules) keyRef(at *check.Path, name, key string) {
	if name == "" {
		r.Required(at.Field("name"), "")
	}
	if key == "" {
		r.Required(at.Field("key"), "")
		return
	}
	r.Format(at.Field("key"), key, check.ConfigKey(key))
}

func (r *podRules) fileRef(at *check.Path, f *FileKeySelector) {
	if f.VolumeName == "" {
		r.Required(at.Field("volumeName"), "")
	} else if r.volumes[f.VolumeName] == nil {
		r.NotFound(at.Field("volumeName"), f.VolumeName)
	}
	if f.Path == "" {
		r.Required(at.Field("path"), "")
	} else {
		r.relative(at.Field("path"), f.Path)
	}
	if f.Key == "" {
		r.Required(at.Field("key"), "")
	}
}

func (r *podRules) envFrom(at *check.Path, list []EnvFromSource) {
	for i, e := range list {
		p := at.Index(i)
		if e.Prefix != "" {
			r.Format(p.Field("prefix"), e.Prefix, check.EnvName(e.Prefix))
		}
		n := 0
		if e.ConfigMapRef != nil {
			n++
			if e.ConfigMapRef.Name == "" {
				r.Required(p.Field("configMapRef").Field("name"), "")
			}
		}
		if e.SecretRef != nil {
			n++
			if e.SecretRef.Name == "" {
				r.Required(p.Field("secretRef").Field("name"), "")
			}
		}
		switch n {
		case 0:
			r.Invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
		case 2:
			r.Invalid(at, "", "may not have more than one field specified at a time")
		}
	}
}
