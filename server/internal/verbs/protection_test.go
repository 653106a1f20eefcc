package verbs_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

const (
	claims  = "/api/v1/namespaces/default/persistentvolumeclaims"
	volumes = "/api/v1/persistentvolumes"
)

func newClaim(name string, metadata map[string]any) map[string]any {
	metadata["name"] = name
	return map[string]any{"metadata": metadata, "spec": map[string]any{
		"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}}
}

// podWith returns a pod with a volume.
func podWith(name string, volume map[string]any) map[string]any {
	volume["name"] = "data"
	return map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{
		"containers": []any{map[string]any{"name": "c", "image": "i"}}, "volumes": []any{volume},
	}}
}

func claimVolume(claim string) map[string]any {
	return map[string]any{"persistentVolumeClaim": map[string]any{"claimName": claim}}
}

// TestClaimProtection: a claim is kept as long as a pod that is not finished uses it.
func TestClaimProtection(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	for _, name := range []string{"unused", "used"} {
		made := a.Must(201, "POST", claims, newClaim(name, map[string]any{"finalizers": []any{"kubernetes.io/pvc-protection"}}))
		assert.Equal(t, []any{"kubernetes.io/pvc-protection"}, apitest.Nested(made.Body, "metadata", "finalizers"))
	}
	for _, name := range []string{"one", "two", "three"} {
		a.Must(201, "POST", pods, podWith(name, claimVolume("used")))
	}
	a.Must(200, "DELETE", claims+"/unused", nil)
	a.Must(200, "DELETE", claims+"/used", nil)
	s.Settle()
	a.Must(404, "GET", claims+"/unused", nil)

	a.Must(200, "DELETE", pods+"/one?gracePeriodSeconds=0", nil)
	a.Must(200, "PATCH", pods+"/two/status", `{"status":{"phase":"Succeeded"}}`)
	s.Settle()
	a.Must(200, "GET", claims+"/used", nil)
	a.Must(200, "DELETE", pods+"/three?gracePeriodSeconds=0", nil)
	s.Settle()
	a.Must(404, "GET", claims+"/used", nil)
}

// TestClaimIsUsedWhileItsPodExists: a pod uses its claims even if it is reported as failed, as long as a container
// may run, and even if its grace period is over.
func TestClaimIsUsedWhileItsPodExists(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	const ended, running = `{"name":"c","state":{"terminated":{"exitCode":1}}}`, `{"name":"c","state":{"running":{}}}`
	for name, c := range map[string]struct {
		status string
		used   bool
	}{
		"pending":   {`{}`, true},
		"lost":      {`{"phase":"Failed","containerStatuses":[` + running + `]}`, true},
		"waits":     {`{"phase":"Failed","containerStatuses":[{"name":"c","state":{"waiting":{}}}]}`, true},
		"beside":    {`{"phase":"Succeeded","containerStatuses":[` + ended + `],"initContainerStatuses":[` + running + `]}`, true},
		"attached":  {`{"phase":"Succeeded","containerStatuses":[` + ended + `],"ephemeralContainerStatuses":[` + running + `]}`, true},
		"running":   {`{"phase":"Running","containerStatuses":[` + ended + `]}`, true},
		"failed":    {`{"phase":"Failed","containerStatuses":[` + ended + `],"initContainerStatuses":[` + ended + `]}`, false},
		"succeeded": {`{"phase":"Succeeded"}`, false},
	} {
		a.Must(201, "POST", claims, newClaim(name, map[string]any{}))
		pod := podWith(name, claimVolume(name))
		if name != "pending" {
			pod["spec"].(map[string]any)["nodeName"] = "n"
		}
		a.Must(201, "POST", pods, pod)
		a.Must(200, "PATCH", pods+"/"+name+"/status", `{"status":`+c.status+`}`)
		a.Must(200, "DELETE", claims+"/"+name, nil)
		s.Settle()
		if !c.used {
			a.Must(404, "GET", claims+"/"+name, nil)
			continue
		}
		a.Must(200, "GET", claims+"/"+name, nil)
		a.Must(200, "PATCH", pods+"/"+name, `{"metadata":{"finalizers":["example.com/wait"]}}`)
		a.Must(200, "DELETE", pods+"/"+name+"?gracePeriodSeconds=0", nil)
		s.Settle()
		a.Must(200, "GET", claims+"/"+name, nil)
		a.Must(200, "PATCH", pods+"/"+name, `{"metadata":{"finalizers":null}}`)
		s.Settle()
		a.Must(404, "GET", pods+"/"+name, nil)
		a.Must(404, "GET", claims+"/"+name, nil)
	}
}

// TestClaimProtectionOfEphemeralClaims: a claim that was created for the volume of a pod is used by that pod, and not
// by another pod of that name. A pod that only waits for the claim does not keep it.
func TestClaimProtectionOfEphemeralClaims(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	template := map[string]any{"ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{"spec": newClaim("", map[string]any{})["spec"]}}}
	pod := a.Must(201, "POST", pods, podWith("p", template))
	owner := map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": apitest.Nested(pod.Body, "metadata", "uid"), "controller": true, "blockOwnerDeletion": true}
	a.Must(201, "POST", pods, podWith("q", template))
	a.Must(201, "POST", claims, newClaim("p-data", map[string]any{"ownerReferences": []any{owner}}))
	a.Must(201, "POST", claims, newClaim("q-data", map[string]any{}))
	a.Must(200, "DELETE", claims+"/p-data", nil)
	a.Must(200, "DELETE", claims+"/q-data", nil)
	s.Settle()
	a.Must(200, "GET", claims+"/p-data", nil)
	a.Must(404, "GET", claims+"/q-data", nil)

	a.Must(200, "DELETE", pods+"/p?gracePeriodSeconds=0&propagationPolicy=Foreground", nil)
	s.Settle()
	a.Must(404, "GET", claims+"/p-data", nil)
	a.Must(404, "GET", pods+"/p", nil)
}

// TestVolumeProtection: a volume is kept as long as it is bound.
func TestVolumeProtection(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	made := a.Must(201, "POST", volumes, map[string]any{"metadata": map[string]any{"name": "v"}, "spec": map[string]any{
		"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"}, "hostPath": map[string]any{"path": "/data"},
	}})
	assert.Equal(t, []any{"kubernetes.io/pv-protection"}, apitest.Nested(made.Body, "metadata", "finalizers"))
	a.Must(200, "PATCH", volumes+"/v/status", `{"status":{"phase":"Bound"}}`)
	a.Must(200, "DELETE", volumes+"/v", nil)
	s.Settle()
	a.Must(200, "GET", volumes+"/v", nil)
	a.Must(200, "PATCH", volumes+"/v/status", `{"status":{"phase":"Released"}}`)
	s.Settle()
	a.Must(404, "GET", volumes+"/v", nil)
}

// TestClassProtection: a class of volume attributes is kept as long as a claim or volume has it or will get it.
func TestClassProtection(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	const classes = "/apis/storage.k8s.io/v1/volumeattributesclasses"
	for _, name := range []string{"unused", "used"} {
		made := a.Must(201, "POST", classes, map[string]any{"metadata": map[string]any{"name": name}, "driverName": "d", "parameters": map[string]any{"a": "b"}})
		assert.Equal(t, []any{"kubernetes.io/vac-protection"}, apitest.Nested(made.Body, "metadata", "finalizers"))
	}
	a.Must(201, "POST", volumes, map[string]any{"metadata": map[string]any{"name": "v"}, "spec": map[string]any{
		"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"}, "volumeAttributesClassName": "used",
		"csi": map[string]any{"driver": "d", "volumeHandle": "h"},
	}})
	a.Must(201, "POST", claims, newClaim("c", map[string]any{}))
	a.Must(200, "PATCH", claims+"/c/status", `{"status":{"modifyVolumeStatus":{"targetVolumeAttributesClassName":"used","status":"Pending"}}}`)
	a.Must(200, "DELETE", classes+"/unused", nil)
	a.Must(200, "DELETE", classes+"/used", nil)
	s.Settle()
	a.Must(404, "GET", classes+"/unused", nil)
	a.Must(200, "DELETE", volumes+"/v", nil)
	s.Settle()
	a.Must(200, "GET", classes+"/used", nil)
	a.Must(200, "DELETE", claims+"/c", nil)
	s.Settle()
	a.Must(404, "GET", classes+"/used", nil)
}

// TestProtectionWithoutServedUsers: if the kinds that could use an object are not served, the object is not kept.
func TestProtectionWithoutServedUsers(t *testing.T) {
	t.Parallel()
	claims, classes := meta.GroupResource{Resource: "persistentvolumeclaims"}, meta.GroupResource{Group: "storage.orch.io", Resource: "volumeattributesclasses"}
	for served, r := range map[string]meta.GroupResource{"PersistentVolumeClaim": claims, "VolumeAttributesClass": classes} {
		ctx := t.Context()
		b := &server.Builder{Names: names.Orch, Authorizer: auth.AllowAll}
		b.Register(slices.DeleteFunc(builtin.Kinds(), func(k *registry.Kind) bool { return k.Kind != served && k.Kind != "Namespace" })...)
		s, err := b.Build(ctx)
		require.NoError(t, err)
		ran := make(chan error)
		go func() { ran <- s.Run(ctx) }()
		o := newClaim("a", map[string]any{"namespace": "default"})
		if served == "VolumeAttributesClass" {
			o = map[string]any{"metadata": map[string]any{"name": "a"}, "driverName": "d", "parameters": map[string]any{"a": "b"}}
		}
		made, err := s.Objects().Create(ctx, r, meta.NewObject(o))
		require.NoError(t, err)
		require.Len(t, made.Finalizers(), 1)
		key := meta.Key{Namespace: made.Namespace(), Name: "a"}
		require.NoError(t, s.Objects().Delete(ctx, r, key, registry.DeleteOptions{}))
		require.NoError(t, s.Settle(ctx))
		_, err = s.Objects().Get(ctx, r, key)
		assert.True(t, meta.IsNotFound(err), "%v", err)
		require.NoError(t, errors.Join(s.Shutdown(context.Background()), <-ran))
	}
}
