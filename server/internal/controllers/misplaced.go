package controllers

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
)

// reportMisplaced creates the event for an object with an owner reference to another namespace. The event has a fixed
// name, so an object has at most one such event at a time.
func reportMisplaced(o *object, owner meta.Owner) step {
	return func(ctx context.Context, cl client.Client) error {
		_, err := cl.Create(ctx, events, misplacedEvent(o, owner, cl.Types()))
		var refused *meta.Status
		if errors.As(err, &refused) && refused.Code < 500 {
			return nil // the event exists, or events are not served, or the namespace is being deleted
		}
		return err
	}
}

func misplacedEvent(o *object, owner meta.Owner, types []*registry.Type) *meta.Object {
	involved := map[string]any{"name": o.key.Name, "uid": o.uid}
	for _, t := range types {
		if t.GroupResource() == o.resource {
			kind := meta.GroupVersionKind{Group: t.Group, Version: t.HubVersion, Kind: t.Kind}
			involved["kind"], involved["apiVersion"] = t.Kind, kind.APIVersion()
		}
	}
	namespace := "default" // for the events of cluster-scoped objects
	if o.key.Namespace != "" {
		namespace = o.key.Namespace
		involved["namespace"] = namespace
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(o.uid))
	name := fmt.Sprintf("%.200s.%x", o.key.Name, sum.Sum64())
	if len(meta.CheckDNSSubdomain(name)) > 0 {
		name = o.uid
	}
	now := meta.FormatTime(time.Now())
	return meta.NewObject(map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": name, "namespace": namespace},
		"type": "Warning", "reason": "OwnerRefInvalidNamespace",
		"message": fmt.Sprintf("ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			owner.APIVersion, owner.Kind, o.key.Namespace, owner.Name, owner.UID, o.key.Namespace),
		"involvedObject": involved, "count": int64(1), "firstTimestamp": now, "lastTimestamp": now,
		"source": map[string]any{"component": "garbage-collector-controller"}, "reportingComponent": "garbage-collector-controller",
	})
}
