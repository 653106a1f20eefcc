package registry

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"orch.io/controlplane/registry/meta"
)

// Scale is where a kind keeps what the sub-resource scale shows: paths such as
// .spec.replicas. Selector may be empty, or lead to a label selector as text or
// as an object.
type Scale struct{ SpecReplicas, StatusReplicas, Selector string }

// scaleBody is the body of the sub-resource scale, autoscaling/v1 Scale.
type scaleBody struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata" doc:"Standard object metadata."`

	Spec   scaleSpec   `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec" doc:"The wanted size."`
	Status scaleStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status" doc:"The current size."`
}

// scaleSpec is the wanted size.
type scaleSpec struct {
	Replicas int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas" doc:"How many instances are wanted."`
}

// scaleStatus is the current size, as the owner of the object reports it.
type scaleStatus struct {
	Replicas int32  `json:"replicas" protobuf:"varint,1,opt,name=replicas" doc:"How many instances there are."`
	Selector string `json:"selector,omitempty" protobuf:"bytes,2,opt,name=selector" doc:"The label selector of the instances, as text."`
}

// scaleSource holds this file, whose comments document the sub-resource.
//
//go:embed scale.go
var scaleSource embed.FS

// scalePaths are the paths of a Scale, parsed.
type scalePaths struct{ spec, status, selector []string }

func (c *compiler) scale(t *Type) {
	var p scalePaths
	for _, path := range []struct {
		to    *[]string
		text  string
		under string
	}{{&p.spec, t.Scale.SpecReplicas, "spec"}, {&p.status, t.Scale.StatusReplicas, "status"}, {&p.selector, t.Scale.Selector, ""}} {
		if path.text == "" && path.under == "" {
			continue
		}
		fields, err := plainPath(path.text)
		if err != nil {
			c.fault("scale: %w", err)
			continue
		}
		if path.under != "" && fields[0] != path.under {
			c.fault("scale: the path %q must be under .%s", path.text, path.under)
		}
		if _, ok := t.Storage.Schema.At(fields...); !ok && t.Storage.Schema.Struct.Canonical() {
			c.fault("scale: the path %q leads nowhere", path.text)
		}
		*path.to = fields
	}
	body, err := Of(Definition[scaleBody]{
		Group: "autoscaling", Version: "v1", Kind: "Scale", Source: scaleSource,
		Columns: []Column{
			{Name: "Name", Type: "string", Doc: "Name of the object.", JSONPath: ".metadata.name"},
			{Name: "Desired", Type: "integer", Doc: "How many instances are wanted.", JSONPath: ".spec.replicas"},
			{Name: "Available", Type: "integer", Doc: "How many instances there are.", JSONPath: ".status.replicas"},
			Age(),
		},
	}).Compile(c.names)
	if err != nil {
		c.fault("scale: %w", err)
		return
	}
	sub := Subresource{Name: "scale", Kind: body.Storage.GVK(), Body: body.Storage, Show: p.show, Merge: p.merge}
	switch {
	case t.Custom:
		t.Validate = p.validateCustom // whichever way the numbers come
	case c.kind.SelfChecked:
		sub.Validate = p.validate
	default:
		sub.Validate = p.validateCustom
	}
	t.Subresources = append(t.Subresources, sub)
}

// show makes the Scale of an item.
func (p scalePaths) show(obj *meta.Object) *meta.Object {
	s := meta.NewObject(nil)
	s.SetGVK(meta.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
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
	sel, err := meta.LabelSelectorFromObject(m)
	if err != nil {
		return ""
	}
	return sel.String()
}

// merge takes the wanted size over into the item.
func (p scalePaths) merge(obj, in *meta.Object) { obj.Set(in.Int("spec", "replicas"), p.spec...) }

func (p scalePaths) validate(_ context.Context, obj, _ *meta.Object) []meta.Cause {
	return natural(obj, p.spec, strings.Join(p.spec, "."), "must be greater than or equal to 0")
}

func (p scalePaths) validateCustom(_ context.Context, obj, _ *meta.Object) []meta.Cause {
	const why = "should be a non-negative integer"
	return append(natural(obj, p.spec, "."+strings.Join(p.spec, "."), why), natural(obj, p.status, "."+strings.Join(p.status, "."), why)...)
}

// natural is the fault of a number of replicas below 0.
func natural(obj *meta.Object, path []string, field, why string) []meta.Cause {
	n := obj.Int(path...)
	if n >= 0 {
		return nil
	}
	return []meta.Cause{{Reason: meta.CauseInvalid, Field: field, Message: fmt.Sprintf("Invalid value: %d: %s", n, why)}}
}
