package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
)

// tokenForNode allows a node agent to request service account tokens that are bound to a pod on its node. A token may
// have at most one audience, which the pod uses or for which the node has the right to request tokens.
func tokenForNode(ctx context.Context, node string, r *admission.Request) error {
	spec := meta.NewObject(r.Object.Map("spec"))
	to := meta.NewObject(spec.Map("boundObjectRef"))
	if to.APIVersion() != "v1" || to.Kind() != "Pod" || to.String("name") == "" {
		return errors.New("node requested token not bound to a pod")
	}
	uid := to.String("uid")
	if uid == "" {
		return errors.New("node requested token with a pod binding without a uid")
	}
	pods := meta.GroupResource{Resource: "pods"}
	pod, err := r.Server.Find(ctx, "", "pods", meta.Key{Namespace: r.Namespace, Name: to.String("name")})
	switch {
	case err != nil:
		return err
	case pod == nil:
		return meta.NotFound(pods, to.String("name"))
	case pod.UID() != uid:
		return fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", uid)
	case pod.String("spec", "nodeName") != node:
		return errors.New("node requested token bound to a pod scheduled on a different node")
	}
	audience, audiences := "", spec.Strings("audiences")
	switch len(audiences) {
	case 0:
	case 1:
		audience = audiences[0]
	default:
		return errors.New("node may only request 0 or 1 audiences")
	}
	used, err := usesAudience(ctx, r, pod, audience)
	if err != nil || used || audience != "" && mayRequestAudience(ctx, r, audience) {
		return err
	}
	return fmt.Errorf("audience %q not found in pod spec volume", audience)
}

// usesAudience reports whether a pod needs a token for an audience, because it projects such a token into a volume, or
// because the CSI driver of a volume requests such tokens. The empty audience is the API server.
func usesAudience(ctx context.Context, r *admission.Request, pod *meta.Object, audience string) (bool, error) {
	for _, v := range pod.Objects("spec", "volumes") {
		for _, source := range v.Objects("projected", "sources") {
			if token := source.Map("serviceAccountToken"); token != nil && meta.NewObject(token).String("audience") == audience {
				return true, nil
			}
		}
		driver, err := driverOf(ctx, r, pod, v)
		if err != nil {
			return false, err
		}
		wants := slices.ContainsFunc(driver.Objects("spec", "tokenRequests"), func(t *meta.Object) bool { return t.String("audience") == audience })
		if wants {
			return true, nil
		}
	}
	return false, nil
}

// driverOf returns the CSIDriver of a volume of a pod, or nil.
func driverOf(ctx context.Context, r *admission.Request, pod, v *meta.Object) (*meta.Object, error) {
	name, claimed := v.String("csi", "driver"), v.String("persistentVolumeClaim", "claimName")
	if v.Map("ephemeral") != nil {
		claimed = pod.Name() + "-" + v.String("name")
	}
	if claimed != "" {
		claim, err := r.Server.Find(ctx, "", "persistentvolumeclaims", meta.Key{Namespace: r.Namespace, Name: claimed})
		if err != nil || claim.String("spec", "volumeName") == "" {
			return nil, err
		}
		volume, err := r.Server.Find(ctx, "", "persistentvolumes", meta.Key{Name: claim.String("spec", "volumeName")})
		if err != nil {
			return nil, err
		}
		name = volume.String("spec", "csi", "driver")
	}
	if name == "" {
		return nil, nil
	}
	return r.Server.Find(ctx, wellknown.GroupStorage, "csidrivers", meta.Key{Name: name})
}

// mayRequestAudience reports whether the node has the right to request tokens of the account for an audience
// that none of its pods needs.
func mayRequestAudience(ctx context.Context, r *admission.Request, audience string) bool {
	return allowed(ctx, r, auth.Attributes{User: r.User, Verb: "request-serviceaccounts-token-audience",
		Version: "*", Resource: audience, Namespace: r.Namespace, Name: r.Name})
}
