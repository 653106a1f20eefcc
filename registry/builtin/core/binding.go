package core

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/acts"
)

// Binding puts a pod on a node.
type Binding struct {
	meta.TypeMeta `json:",inline"`
	// ObjectMeta names the pod; its labels and annotations are added to those of the pod.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Target is the node.
	Target ObjectReference `json:"target" protobuf:"2"`
}

// bindings is the kind of the same acts under a path of its own.
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
		w.Needs(at, "name", w.New.Target.Name)
		if kind := w.New.Target.Kind; kind != "" {
			w.OneOf(at.Field("kind"), kind, "Node")
		}
	}})
}

// podBinding is the sub-resource of pods.
func podBinding() registry.Subresource {
	return registry.Subresource{Name: "binding", Body: bindingBody(), Act: bind, Merge: func(obj, in *meta.Object) {
		obj.CopyField(in, "spec", "nodeName")
		obj.CopyField(in, "status")
		obj.CopyField(in, "metadata", "labels")
		obj.CopyField(in, "metadata", "annotations")
	}}
}

// bind gives a pod that waits for a node the one of the call.
func bind(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	if err := acts.Agrees(call); err != nil {
		return nil, err
	}
	pods := meta.GroupResource{Resource: "pods"}
	change := func(pod *meta.Object) error { return bound(pod, call.Object) }
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

// bound puts a pod on the node of a binding, if the pod can have one.
func bound(pod, binding *meta.Object) error {
	name := pod.Name()
	refuse := func(what, why string) error { return meta.Conflict(meta.GroupResource{Resource: what}, name, why) }
	switch on := pod.String("spec", "nodeName"); {
	case binding.UID() != "" && binding.UID() != pod.UID():
		return refuse("pods", fmt.Sprintf("the UID of the binding (%s) is not that of the pod (%s)", binding.UID(), pod.UID()))
	case binding.ResourceVersion() != "" && binding.ResourceVersion() != pod.ResourceVersion():
		return refuse("pods", fmt.Sprintf("the resourceVersion of the binding (%s) is not that of the pod (%s)", binding.ResourceVersion(), pod.ResourceVersion()))
	case pod.Terminating():
		return refuse("pods/binding", "pod "+name+" is being deleted, cannot be assigned to a host")
	case on != "":
		return refuse("pods/binding", fmt.Sprintf("pod %s is already assigned to node %q", name, on))
	case len(pod.List("spec", "schedulingGates")) > 0:
		return refuse("pods/binding", "pod "+name+" has non-empty .spec.schedulingGates")
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
