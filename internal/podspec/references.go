package podspec

import "orch.io/controlplane/api/meta"

// Resources that a pod refers to by name.
const (
	Accounts       = "serviceaccounts"
	Secrets        = "secrets"
	ConfigMaps     = "configmaps"
	Claims         = "persistentvolumeclaims"
	ResourceClaims = "resourceclaims"
)

// Reference is an object in the namespace of a pod that the pod refers to.
type Reference struct{ Resource, Name string }

// References returns the objects that a pod refers to; its node needs to read them to run the pod. The
// result may have duplicates.
func References(pod *meta.Object) (out []Reference) {
	add := func(resource, name string) {
		if name != "" {
			out = append(out, Reference{resource, name})
		}
	}
	spec := meta.NewObject(pod.Map("spec"))
	add(Accounts, spec.String("serviceAccountName"))
	for _, secret := range spec.Objects("imagePullSecrets") {
		add(Secrets, secret.String("name"))
	}
	for _, c := range Of(spec) {
		for _, e := range c.Objects("env") {
			add(Secrets, e.String("valueFrom", "secretKeyRef", "name"))
			add(ConfigMaps, e.String("valueFrom", "configMapKeyRef", "name"))
		}
		for _, e := range c.Objects("envFrom") {
			add(Secrets, e.String("secretRef", "name"))
			add(ConfigMaps, e.String("configMapRef", "name"))
		}
	}
	for _, v := range spec.Objects("volumes") {
		if v.Map("ephemeral") != nil {
			add(Claims, pod.Name()+"-"+v.String("name"))
		}
		volumeReferences(v, add)
	}
	for _, c := range spec.Objects("resourceClaims") {
		add(ResourceClaims, c.String("resourceClaimName"))
	}
	for _, c := range pod.Objects("status", "resourceClaimStatuses") {
		add(ResourceClaims, c.String("resourceClaimName"))
	}
	add(ResourceClaims, pod.String("status", "extendedResourceClaimStatus", "resourceClaimName"))
	return out
}

// volumeReferences adds the references of a volume. Secrets are found by the few field names that all
// volume sources use for them, so that new sources need no code here.
func volumeReferences(v *meta.Object, add func(resource, name string)) {
	add(Claims, v.String("persistentVolumeClaim", "claimName"))
	add(ConfigMaps, v.String("configMap", "name"))
	for _, s := range v.Objects("projected", "sources") {
		add(Secrets, s.String("secret", "name"))
		add(ConfigMaps, s.String("configMap", "name"))
	}
	for _, source := range v.Tree() {
		if m, ok := source.(map[string]any); ok {
			s := meta.NewObject(m)
			add(Secrets, s.String("secretName"))
			add(Secrets, s.String("secretRef", "name"))
			add(Secrets, s.String("nodePublishSecretRef", "name"))
		}
	}
}
