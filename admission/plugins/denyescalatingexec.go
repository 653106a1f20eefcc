package plugins

import (
	"context"
	"errors"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// denyEscalatingExec refuses exec and attach to pods that are privileged or share namespaces with their node.
func denyEscalatingExec() admission.Plugin {
	return denyExec("DenyEscalatingExec", func(pod *meta.Object) error {
		for _, shared := range []struct{ field, word string }{{"hostPID", "pid"}, {"hostIPC", "ipc"}, {"hostNetwork", "network"}} {
			if pod.Bool("spec", shared.field) {
				return errors.New("cannot exec into or attach to a container using host " + shared.word)
			}
		}
		return refusePrivileged(pod)
	})
}

// denyExec returns a plugin that refuses exec and attach to the pods for which refuse returns an error.
func denyExec(name string, refuse func(pod *meta.Object) error) admission.Plugin {
	return admission.Plugin{
		Name: name, Default: admission.Off, Deprecated: "use RBAC on pods/exec and pods/attach, and PodSecurity",
		Rules: on("", []string{"pods/exec", "pods/attach"}, admission.Connect),
		Validate: func(ctx context.Context, r *admission.Request) error {
			pod, err := r.Server.Find(ctx, "", "pods", meta.Key{Namespace: r.Namespace, Name: r.Name})
			if err != nil {
				return err
			}
			return refuse(pod)
		},
	}
}

func refusePrivileged(pod *meta.Object) error {
	if slices.ContainsFunc(podspec.Of(meta.NewObject(pod.Map("spec"))), func(c *meta.Object) bool { return c.Bool("securityContext", "privileged") }) {
		return errors.New("cannot exec into or attach to a privileged container")
	}
	return nil
}
