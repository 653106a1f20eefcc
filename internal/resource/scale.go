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

// scalePaths are the paths of a Scale, parsed.
type scalePaths struct{ spec, status, selector []string }

// scales are the paths of each version, by apiVersion. Others have those of "".
type scales map[string]scalePaths

// of returns the paths in an object.
func (s scales) of(obj *meta.Object) scalePaths {
	if p, ok := s[obj.APIVersion()]; ok {
		return p
	}
	return s[""]
}

// scalePaths parses those of a scale in objects of a schema.
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
			c.fault("scale: %w", err)
			continue
		}
		if path.under != "" && fields[0] != path.under {
			c.fault("scale: the path %q must be under .%s", path.text, path.under)
		}
		if _, ok := of.At(fields...); !ok && of.Struct.Canonical() {
			c.fault("scale: the path %q leads nowhere%s", path.text, nearField(of, fields))
		}
		*path.to = fields
	}
	return p
}

// scaleFields returns the field names of a path. Everything between two dots of a custom
// kind's path is one field name, as in the reference: ".spec.a[0]" names the field "a[0]".
func (c *compiler) scaleFields(path string) ([]string, error) {
	if c.kind.Custom() {
		return strings.Split(strings.TrimPrefix(path, "."), "."), nil
	}
	return jsonpath.Fields(path)
}

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
		t.Validate = p.validateWhole // whichever way the numbers come
	case !t.ScaleIsObject: // else its schema says what replicas may be
		sub.Validate = p.validateSizes
	}
	compiled := Subresource{Subresource: sub, Body: c.body(sub)}
	if c.kind.Custom() {
		compiled.Readable = p.readable
	}
	t.Subresources = append(t.Subresources, compiled)
}

// readable returns an error that names the path if an item has no wanted size. A size of
// zero instead could make a controller remove the instances.
func (all scales) readable(obj *meta.Object) error {
	path := all.of(obj).spec
	if n, ok := obj.Get(path...); ok && n != nil {
		return nil
	}
	return meta.Internal(fmt.Errorf("the spec replicas field %q does not exist", dotted(path)))
}

// scaleBody returns the kind of the body: with the columns of a Scale, unless it has its own.
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

// show makes the Scale of an item.
func (all scales) show(obj *meta.Object) *meta.Object {
	p := all.of(obj)
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

// merge takes the wanted size over into the item.
func (all scales) merge(obj, in *meta.Object) {
	obj.Set(in.Int("spec", "replicas"), all.of(obj).spec...)
}

func (all scales) validateSizes(w *change) {
	p := all.of(w.New)
	w.Violations = append(append(w.Violations, size(w.New, p.spec)...), size(w.New, p.status)...)
}

// validateWhole checks all that the sub-resource shows of a custom object, whose
// schema may let anything stand there.
func (all scales) validateWhole(w *change) {
	all.validateSizes(w)
	p := all.of(w.New)
	if p.selector == nil {
		return
	}
	if _, wrong := valueAt[string](w.New, p.selector); wrong != "" {
		w.Violations = append(w.Violations, meta.StatusCause{Reason: meta.CauseInvalid, Field: dotted(p.selector), Message: `Invalid value: "": ` + wrong})
	}
}

// size is the fault of a number of replicas that a Scale cannot show.
func size(obj *meta.Object, path []string) []meta.StatusCause {
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

// valueAt returns the value at a path, the zero value where there is none, or
// what is wrong with the one that stands there or on the way: the words are
// those that clients know.
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
