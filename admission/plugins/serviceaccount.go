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
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/podspec"
)

const defaultAccount = "default"

// accountWait is how long a pod waits for the default account of its namespace, which a
// controller makes for each new one.
const accountWait = time.Second

// serviceAccount gives new pods an account that there is, its token, and its secrets for
// images. Mirror pods are what a node runs already: they have no account, and nothing that
// needs one. Where no controller makes the default account of a namespace, a pod may do
// without it.
func serviceAccount() admission.Plugin {
	return admission.Plugin{
		Name:  "ServiceAccount",
		Rules: append(on("", []string{"pods"}, admission.Create), on("", []string{"pods/ephemeralcontainers"}, admission.Update)...),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			if r.Old != nil {
				return nil
			}
			if mirrors(r) { // what is wrong with it is no fault of what fills in after this
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
			if r.Operation == admission.Create && mirrors(r) {
				return checkMirror(r)
			}
			// A program's own kind with the name pods has no containers, and need not have the field.
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

func mirrors(r *admission.Request) bool {
	_, is := r.Object.Get("metadata", "annotations", r.Server.Wire(names.MirrorPod))
	return is
}

// checkMirror refuses a mirror pod that needs an account.
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

// accountOf returns the account of a pod; nil: none is needed.
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

// awaitAccount waits for the default account of a namespace.
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

// mountsToken reports whether a pod gets the token: it says so itself, else its account does.
func mountsToken(spec, account *meta.Object) bool {
	for _, says := range []*meta.Object{spec, account} {
		if v, ok := says.Get("automountServiceAccountToken"); ok && v != nil {
			return says.Bool("automountServiceAccountToken")
		}
	}
	return true
}

// mountToken mounts a volume with the token in every container that has nothing there.
func mountToken(r *admission.Request, spec *meta.Object) {
	path, prefix := r.Server.Wire(names.AccountMount), r.Server.Wire(names.APIAccessVolume)
	name, made := "", false
	for _, v := range spec.Objects("volumes") {
		if strings.HasPrefix(v.String("name"), prefix) {
			name, made = v.String("name"), true
		}
	}
	if !made {
		name = prefix + suffix()
	}
	for _, c := range podspec.Of(spec, podspec.Init, podspec.Containers) {
		if slices.ContainsFunc(c.Objects("volumeMounts"), func(m *meta.Object) bool { return m.String("mountPath") == path }) {
			continue
		}
		c.Set(append(c.List("volumeMounts"), map[string]any{"name": name, "readOnly": true, "mountPath": path}), "volumeMounts")
		if !made {
			spec.Set(append(spec.List("volumes"), tokenVolume(r, name)), "volumes")
			made = true
		}
	}
}

// suffix is five letters that are in no word.
func suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	out := make([]byte, 5)
	for i := range out {
		out[i] = letters[rand.IntN(len(letters))]
	}
	return string(out)
}

// tokenVolume holds the token of the account, bound to the pod, what the server's
// certificate is checked with, and the namespace.
func tokenVolume(r *admission.Request, name string) map[string]any {
	return map[string]any{"name": name, "projected": map[string]any{
		"defaultMode": int64(0o644),
		"sources": []any{
			map[string]any{"serviceAccountToken": map[string]any{"expirationSeconds": int64(3607), "path": "token"}},
			map[string]any{"configMap": map[string]any{
				"name": r.Server.Wire(names.RootCAConfigMap), "items": []any{map[string]any{"key": "ca.crt", "path": "ca.crt"}},
			}},
			map[string]any{"downwardAPI": map[string]any{"items": []any{
				map[string]any{"path": "namespace", "fieldRef": map[string]any{"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
			}}},
		},
	}}
}

// checkMountable refuses secrets that an account which says so does not list.
func checkMountable(r *admission.Request, account *meta.Object) error {
	if enforced, _ := strconv.ParseBool(account.Annotation(r.Server.Wire(names.MountableSecrets))); !enforced {
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

// secretsOf returns the secrets that volumes and variables of a pod name.
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
