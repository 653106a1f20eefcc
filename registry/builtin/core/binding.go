package core

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/acts"
)

// Binding assigns a pod to a node. It is the body of the subresource binding of pods.
type Binding struct {
	meta.TypeMeta `json:",inline"`
	// ObjectMeta must have the name of the pod. Labels and annotations are added to the pod.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Target is the node.
	Target ObjectReference `json:"target" protobuf:"2"`
}

// bindings returns the kind Binding, which assigns pods under a path of its own.
func bindings() *registry.Kind {
	k := bindingBody()
	k.Act = func(ctx context.Context, call *registry.Call) (*meta.Object, error) {
		if call.Key.Name = call.Object.Name(); call.Key.Name == "" {
			return nil, meta.BadRequest("the name of a pod is required")
		}
		return bind(ctx, call)
	}
	return k
}

func bindingBody() *registry.Kind {
	return registry.Of(registry.Definition[Binding]{Version: version, Validate: func(w *registry.Change[Binding]) {
		at := check.At("target")
		w.RequiredField(at, "name", w.New.Target.Name)
		if kind := w.New.Target.Kind; kind != "" {
			w.OneOf(at.Field("kind"), kind, "Node")
		}
	}})
}

// podBinding returns the subresource binding of pods.
func podBinding() registry.Subresource {
	return registry.Subresource{Name: "binding", Body: bindingBody(), Act: bind, Merge: func(obj, in *meta.Object) {
		obj.CopyField(in, "spec", "nodeName")
		obj.CopyField(in, "status")
		obj.CopyField(in, "metadata", "labels")
		obj.CopyField(in, "metadata", "annotations")
	}}
}

// bind assigns the pod of the call to a node.
func bind(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	if err := acts.Agrees(call); err != nil {
		return nil, err
	}
	pods := meta.GroupResource{Resource: "pods"}
	change := func(pod *meta.Object) error { return assignNode(pod, call.Object) }
	if call.DryRun {
		pod, err := call.Client.Get(ctx, pods, call.Key)
		if err != nil {
			return nil, err
		}
		return nil, change(pod.Clone())
	}
	_, err := call.Client.Update(ctx, pods, call.Key, "binding", change)
	return nil, err
}

// assignNode sets the node of a pod, unless the pod is assigned, being deleted or held by scheduling
// gates.
func assignNode(pod, binding *meta.Object) error {
	name := pod.Name()
	conflict := func(resource, why string) error {
		return meta.Conflict(meta.GroupResource{Resource: resource}, name, why)
	}
	switch on := pod.String("spec", "nodeName"); {
	case binding.UID() != "" && binding.UID() != pod.UID():
		return conflict("pods", fmt.Sprintf("the UID in the binding (%s) does not match the UID of the pod (%s)", binding.UID(), pod.UID()))
	case binding.ResourceVersion() != "" && binding.ResourceVersion() != pod.ResourceVersion():
		return conflict("pods", fmt.Sprintf("the resourceVersion in the binding (%s) does not match the resourceVersion of the pod (%s)", binding.ResourceVersion(), pod.ResourceVersion()))
	case pod.Terminating():
		return conflict("pods/binding", "pod "+name+" is being deleted, cannot be assigned to a host")
	case on != "":
		return conflict("pods/binding", fmt.Sprintf("pod %s is already assigned to node %q", name, on))
	case len(pod.List("spec", "schedulingGates")) > 0:
		return conflict("pods/binding", "pod "+name+" has non-empty .spec.schedulingGates")
	}
	pod.Set(binding.String("target", "name"), "spec", "nodeName")
	for field, added := range map[string]map[string]string{"labels": binding.Labels(), "annotations": binding.Annotations()} {
		for k, v := range added {
			pod.Set(v, "metadata", field, k)
		}
	}
	pod.SetCondition("PodScheduled", "True", "", "")
	return nil
}
