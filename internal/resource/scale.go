package resource

import (
	"fmt"
	"math"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/jsonpath"
	"orch.io/controlplane/internal/scale"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// scalePaths are the parsed paths of a registry.Scale.
type scalePaths struct{ spec, status, selector []string }

// scales maps each apiVersion to its paths. The key "" has the paths of all other versions.
type scales map[string]scalePaths

// paths returns the paths for obj.
func (s scales) paths(obj *meta.Object) scalePaths {
	if p, ok := s[obj.APIVersion()]; ok {
		return p
	}
	return s[""]
}

// scalePaths parses the paths of a scale and checks them against the schema of the objects.
func (c *compiler) scalePaths(where *registry.Scale, of *schema.Schema) (p scalePaths) {
	for _, path := range []struct {
		to    *[]string
		text  string
		under string
	}{{&p.spec, where.SpecReplicas, "spec"}, {&p.status, where.StatusReplicas, "status"}, {&p.selector, where.Selector, ""}} {
		if path.text == "" && path.under == "" {
			continue
		}
		fields, err := c.scaleFields(path.text)
		if err != nil {
			c.errorf("scale: %w", err)
			continue
		}
		if path.under != "" && fields[0] != path.under {
			c.errorf("scale: the path %q must be under .%s", path.text, path.under)
		}
		if _, ok := of.At(fields...); !ok && of.Struct.Canonical() {
			c.errorf("scale: the path %q does not exist in the schema%s", path.text, nearField(of, fields))
		}
		*path.to = fields
	}
	return p
}

// scaleFields splits a path into field names. In a custom kind, everything between two dots is one
// field name, as in kube-apiserver: ".spec.a[0]" names the field "a[0]".
func (c *compiler) scaleFields(path string) ([]string, error) {
	if c.kind.Custom() {
		return strings.Split(strings.TrimPrefix(path, "."), "."), nil
	}
	return jsonpath.Fields(path)
}

// scale adds the scale subresource to the type.
func (c *compiler) scale(t *Type) {
	p := scales{"": c.scalePaths(c.kind.Scale, t.Hub.schema)}
	for _, kv := range c.kind.Versions {
		if v := t.Version(kv.Name); kv.Scale != nil && v != nil {
			p[v.GVK().APIVersion()] = c.scalePaths(kv.Scale, v.schema)
		}
	}
	sub := registry.Subresource{Name: "scale", Body: scaleBody(c.kind.Scale), Show: p.show, Merge: p.merge}
	switch {
	case c.kind.Custom():
		t.Validate = p.validateWhole // on each write, not only through the subresource
	case !t.ScaleIsObject: // otherwise the schema of the object limits replicas
		sub.Validate = p.validateSizes
	}
	compiled := Subresource{Subresource: sub, Body: c.body(sub)}
	if c.kind.Custom() {
		compiled.Readable = p.readable
	}
	t.Subresources = append(t.Subresources, compiled)
}

// readable returns an error that names the path if obj has no desired size. Showing a size of zero
// instead could make a controller remove all instances.
func (all scales) readable(obj *meta.Object) error {
	path := all.paths(obj).spec
	if n, ok := obj.Get(path...); ok && n != nil {
		return nil
	}
	return meta.Internal(fmt.Errorf("the spec replicas field %q does not exist", dotted(path)))
}

// scaleBody returns the kind of the body. Its versions without columns get the columns of a Scale.
func scaleBody(s *registry.Scale) *registry.Kind {
	if s.Body == nil {
		return registry.Of(registry.Definition[scale.Scale]{Group: wellknown.GroupAutoscaling, Version: "v1", Columns: scaleColumns()})
	}
	body := s.Body.Clone()
	for i := range body.Versions {
		if v := &body.Versions[i]; v.Conversion == nil && v.Columns == nil {
			v.Columns = scaleColumns()
		}
	}
	return body
}

func scaleColumns() []registry.Column {
	return []registry.Column{
		{Name: "Name", Type: "string", Doc: "Name of the object.", JSONPath: ".metadata.name"},
		{Name: "Desired", Type: "integer", Doc: "How many instances are wanted.", JSONPath: ".spec.replicas"},
		{Name: "Available", Type: "integer", Doc: "How many instances there are.", JSONPath: ".status.replicas"},
		registry.AgeColumn(),
	}
}

// show returns the Scale of an object.
func (all scales) show(obj *meta.Object) *meta.Object {
	p := all.paths(obj)
	s := meta.NewObject(nil)
	s.SetGVK(meta.GroupVersionKind{Group: wellknown.GroupAutoscaling, Version: "v1", Kind: "Scale"})
	for _, f := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if v, ok := obj.Get("metadata", f); ok {
			s.Metadata()[f] = v
		}
	}
	s.Set(map[string]any{}, "spec")
	if n := obj.Int(p.spec...); n != 0 {
		s.Set(n, "spec", "replicas")
	}
	s.Set(obj.Int(p.status...), "status", "replicas")
	if text := p.selectorText(obj); text != "" {
		s.Set(text, "status", "selector")
	}
	return s
}

// selectorText returns the label selector of an object as text, or "" if there is none or it is
// invalid.
func (p scalePaths) selectorText(obj *meta.Object) string {
	if p.selector == nil {
		return ""
	}
	m := obj.Map(p.selector...)
	if m == nil {
		return obj.String(p.selector...)
	}
	if _, structured := m["matchLabels"]; !structured && m["matchExpressions"] == nil {
		m = map[string]any{"matchLabels": m}
	}
	sel, err := meta.LabelSelectorAsSelector(m)
	if err != nil {
		return ""
	}
	return sel.String()
}

// merge copies the desired size of the Scale in into the object.
func (all scales) merge(obj, in *meta.Object) {
	obj.Set(in.Int("spec", "replicas"), all.paths(obj).spec...)
}

// validateSizes adds the violations of the desired and the actual size.
func (all scales) validateSizes(w *change) {
	p := all.paths(w.New)
	w.Violations = append(append(w.Violations, sizeCauses(w.New, p.spec)...), sizeCauses(w.New, p.status)...)
}

// validateWhole validates all values of a custom object that its Scale shows, because the schema
// may allow values of any type at these paths.
func (all scales) validateWhole(w *change) {
	all.validateSizes(w)
	p := all.paths(w.New)
	if p.selector == nil {
		return
	}
	if _, wrong := valueAt[string](w.New, p.selector); wrong != "" {
		w.Violations = append(w.Violations, meta.StatusCause{Reason: meta.CauseInvalid, Field: dotted(p.selector), Message: `Invalid value: "": ` + wrong})
	}
}

// sizeCauses returns the violation if the number at path cannot be shown in a Scale.
func sizeCauses(obj *meta.Object, path []string) []meta.StatusCause {
	n, why := valueAt[int64](obj, path)
	switch {
	case why != "":
	case n < 0:
		why = "should be a non-negative integer"
	case n > math.MaxInt32:
		why = fmt.Sprintf("should be less than or equal to %d", math.MaxInt32)
	default:
		return nil
	}
	return []meta.StatusCause{{Reason: meta.CauseInvalid, Field: dotted(path), Message: fmt.Sprintf("Invalid value: %d: %s", n, why)}}
}

// valueAt returns the value at path, or the zero value if it is not set. If it or a value on the
// way has another type, wrong is kube-apiserver's message for that.
func valueAt[T int64 | string](obj *meta.Object, path []string) (value T, wrong string) {
	var at any = obj.Tree()
	for i, name := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return value, unexpected(path[:i+1], at, "map[string]interface{}")
		}
		if at, ok = m[name]; !ok || at == nil && i < len(path)-1 {
			return value, ""
		}
	}
	value, ok := at.(T)
	if !ok {
		wrong = unexpected(path, at, fmt.Sprintf("%T", value))
	}
	return value, wrong
}

func unexpected(path []string, found any, want string) string {
	const most = 1 << 10 // bytes
	text := fmt.Sprint(found)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return fmt.Sprintf("%s accessor error: %s is of the type %T, expected %s", dotted(path), text, found, want)
}

func dotted(path []string) string { return "." + strings.Join(path, ".") }
