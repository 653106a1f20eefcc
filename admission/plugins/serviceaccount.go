package plugins

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

const defaultAccount = "default"

// accountWait is how long the creation of a pod waits for the default account of a new namespace, which a
// controller creates.
const accountWait = time.Second

// serviceAccount sets the service account of new pods, mounts its token and adds its image pull secrets. The
// account must exist. Mirror pods must not use accounts or secrets. If no controller creates default
// accounts, a pod is admitted without the default account.
func serviceAccount() admission.Plugin {
	return admission.Plugin{
		Name:  "ServiceAccount",
		Rules: append(on("", []string{"pods"}, admission.Create), on("", []string{"pods/ephemeralcontainers"}, admission.Update)...),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			if r.Old != nil {
				return nil
			}
			if isMirrorPod(r) { // check now, before a later plugin fills in fields that a mirror pod must not have
				return checkMirror(r)
			}
			spec := meta.NewObject(r.Object.Map("spec"))
			if spec.String("serviceAccountName") == "" {
				spec.Set(defaultAccount, "serviceAccountName")
				spec.Set(defaultAccount, "serviceAccount") // the older name of the field
			}
			account, err := accountOf(ctx, r)
			if err != nil || account == nil {
				return err
			}
			if mountsToken(spec, account) {
				mountToken(r, spec)
			}
			if secrets := account.List("imagePullSecrets"); len(spec.List("imagePullSecrets")) == 0 && len(secrets) > 0 {
				spec.Set(meta.Clone(secrets), "imagePullSecrets")
			}
			return nil
		},
		Validate: func(ctx context.Context, r *admission.Request) error {
			if r.Operation == admission.Create && isMirrorPod(r) {
				return checkMirror(r)
			}
			// A kind of the embedding program that is also named pods may have neither containers nor the field.
			if r.Object.String("spec", "serviceAccountName") == "" && len(r.Object.List("spec", "containers")) > 0 && r.Server.Serves("", "serviceaccounts") {
				return fmt.Errorf("no service account specified for pod %s/%s", r.Namespace, r.Name)
			}
			account, err := accountOf(ctx, r)
			if err != nil || account == nil {
				return err
			}
			return checkMountable(r, account)
		},
	}
}

func isMirrorPod(r *admission.Request) bool {
	_, is := r.Object.Get("metadata", "annotations", r.Server.Wire(wellknown.MirrorPod))
	return is
}

// checkMirror refuses a mirror pod that uses a service account, its token or secrets.
func checkMirror(r *admission.Request) error {
	if r.Object.String("spec", "serviceAccountName") != "" {
		return fmt.Errorf("a mirror pod may not reference service accounts")
	}
	if slices.ContainsFunc(podspec.References(r.Object), func(to podspec.Reference) bool { return to.Resource == podspec.Secrets }) {
		return fmt.Errorf("a mirror pod may not reference secrets")
	}
	for _, v := range r.Object.Objects("spec", "volumes") {
		for _, source := range v.Objects("projected", "sources") {
			if source.Map("serviceAccountToken") != nil {
				return fmt.Errorf("a mirror pod may not use ServiceAccountToken volume projections")
			}
		}
	}
	return nil
}

// accountOf returns the service account of a pod. It returns nil if the server does not serve accounts, or if the
// default account does not exist and no controller creates it.
func accountOf(ctx context.Context, r *admission.Request) (*meta.Object, error) {
	name := cmp.Or(r.Object.String("spec", "serviceAccountName"), defaultAccount)
	account, err := r.Server.Find(ctx, "", "serviceaccounts", meta.Key{Namespace: r.Namespace, Name: name})
	if err != nil || account != nil || !r.Server.Serves("", "serviceaccounts") {
		return account, err
	}
	if name == defaultAccount {
		if !r.Server.Runs("serviceaccount") {
			return nil, nil
		}
		if account, err = awaitAccount(ctx, r); err != nil || account != nil {
			return account, err
		}
	}
	return nil, fmt.Errorf("error looking up service account %s/%s: serviceaccount %q not found", r.Namespace, name, name)
}

// awaitAccount waits for the default account of a namespace for up to accountWait. It returns nil if the
// account does not exist by then.
func awaitAccount(ctx context.Context, r *admission.Request) (*meta.Object, error) {
	feed := r.Server.Client.Feed(meta.GroupResource{Resource: "serviceaccounts"})
	defer feed.Close()
	short, cancel := context.WithTimeout(ctx, accountWait)
	defer cancel()
	for {
		account, err := r.Server.Find(ctx, "", "serviceaccounts", meta.Key{Namespace: r.Namespace, Name: defaultAccount})
		if err != nil || account != nil || short.Err() != nil {
			return account, err
		}
		feed.Changes() // advances the feed, so that Wait waits for the next change
		if err := feed.Wait(short); err != nil && (short.Err() == nil || ctx.Err() != nil) {
			return nil, err
		}
	}
}

// mountsToken returns automountServiceAccountToken of the pod, else of the account, else true.
func mountsToken(spec, account *meta.Object) bool {
	for _, setting := range []*meta.Object{spec, account} {
		if v, ok := setting.Get("automountServiceAccountToken"); ok && v != nil {
			return setting.Bool("automountServiceAccountToken")
		}
	}
	return true
}

// mountToken mounts a token volume in every container that has no other mount at its path.
func mountToken(r *admission.Request, spec *meta.Object) {
	path, prefix := r.Server.Wire(wellknown.AccountMount), r.Server.Wire(wellknown.APIAccessVolume)
	name, exists := "", false
	for _, v := range spec.Objects("volumes") {
		if strings.HasPrefix(v.String("name"), prefix) {
			name, exists = v.String("name"), true
		}
	}
	if !exists {
		name = prefix + suffix()
	}
	for _, c := range podspec.Of(spec, podspec.Init, podspec.Containers) {
		if slices.ContainsFunc(c.Objects("volumeMounts"), func(m *meta.Object) bool { return m.String("mountPath") == path }) {
			continue
		}
		c.Set(append(c.List("volumeMounts"), map[string]any{"name": name, "readOnly": true, "mountPath": path}), "volumeMounts")
		if !exists {
			spec.Set(append(spec.List("volumes"), tokenVolume(r, name)), "volumes")
			exists = true
		}
	}
}

// suffix returns five random characters without vowels and look-alikes, so that they do not spell a word.
func suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	out := make([]byte, 5)
	for i := range out {
		out[i] = letters[rand.IntN(len(letters))]
	}
	return string(out)
}

// tokenVolume returns a projected volume with a token of the account, bound to the pod, the CA certificates
// of the server, and the namespace.
func tokenVolume(r *admission.Request, name string) map[string]any {
	return map[string]any{"name": name, "projected": map[string]any{
		"defaultMode": int64(0o644),
		"sources": []any{
			map[string]any{"serviceAccountToken": map[string]any{"expirationSeconds": int64(3607), "path": "token"}},
			map[string]any{"configMap": map[string]any{
				"name": r.Server.Wire(wellknown.RootCAConfigMap), "items": []any{map[string]any{"key": "ca.crt", "path": "ca.crt"}},
			}},
			map[string]any{"downwardAPI": map[string]any{"items": []any{
				map[string]any{"path": "namespace", "fieldRef": map[string]any{"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
			}}},
		},
	}}
}

// checkMountable refuses secrets that the account does not list, if the account has the annotation that
// enforces that.
func checkMountable(r *admission.Request, account *meta.Object) error {
	if enforced, _ := strconv.ParseBool(account.Annotation(r.Server.Wire(wellknown.MountableSecrets))); !enforced {
		return nil
	}
	list := func(field string) (secrets []string) {
		for _, s := range account.Objects(field) {
			secrets = append(secrets, s.String("name"))
		}
		return secrets
	}
	mountable := list("secrets")
	for _, secret := range secretsOf(r.Object) {
		if !slices.Contains(mountable, secret) {
			return fmt.Errorf("volume or variable with secret %q is not allowed because service account %s does not reference that secret", secret, account.Name())
		}
	}
	pulls := list("imagePullSecrets")
	for _, s := range r.Object.Objects("spec", "imagePullSecrets") {
		if name := s.String("name"); !slices.Contains(pulls, name) {
			return fmt.Errorf("imagePullSecrets with secret %q is not allowed because service account %s does not reference that imagePullSecret", name, account.Name())
		}
	}
	return nil
}

// secretsOf returns the secrets that the volumes and environment variables of a pod reference.
func secretsOf(pod *meta.Object) (secrets []string) {
	for _, v := range pod.Objects("spec", "volumes") {
		if v.Map("secret") != nil {
			secrets = append(secrets, v.String("secret", "secretName"))
		}
		for _, source := range v.Objects("projected", "sources") {
			if source.Map("secret") != nil {
				secrets = append(secrets, source.String("secret", "name"))
			}
		}
	}
	for _, c := range podspec.Of(meta.NewObject(pod.Map("spec"))) {
		for _, e := range c.Objects("env") {
			if e.Map("valueFrom", "secretKeyRef") != nil {
				secrets = append(secrets, e.String("valueFrom", "secretKeyRef", "name"))
			}
		}
		for _, from := range c.Objects("envFrom") {
			if from.Map("secretRef") != nil {
				secrets = append(secrets, from.String("secretRef", "name"))
			}
		}
	}
	return secrets
}
