package core_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// annotated returns a pod with annotations, a container and further fields.
func annotated(annotations, container, spec string) string {
	return `{"metadata":{"annotations":{` + annotations + `}},"spec":{"containers":[{"name":"c","image":"i"` + container + `}]` + spec + `}}`
}

const (
	appArmor    = `"container.apparmor.security.beta.kubernetes.io/`
	seccomp     = `"container.seccomp.security.alpha.kubernetes.io/`
	podSeccomp  = `"seccomp.security.alpha.kubernetes.io/pod"`
	appArmorKey = "metadata.annotations[container.apparmor.security.beta.kubernetes.io/"
)

// TestProfilesOfAnnotations checks that an AppArmor annotation sets the field unless it is set.
func TestProfilesOfAnnotations(t *testing.T) {
	k := kind(t, "Pod")
	for body, want := range map[string]map[string]any{
		annotated(appArmor+`c":"unconfined"`, ``, ``):                                                                                    {"type": "Unconfined"},
		annotated(appArmor+`c":"runtime/default"`, ``, ``):                                                                               {"type": "RuntimeDefault"},
		annotated(appArmor+`c":"localhost/x"`, ``, ``):                                                                                   {"type": "Localhost", "localhostProfile": "x"},
		annotated(appArmor+`c":"localhost/"`, ``, ``):                                                                                    nil,
		annotated(appArmor+`c":""`, ``, ``):                                                                                              nil,
		annotated(appArmor+`c":"unconfined"`, ``, `,"os":{"name":"windows"}`):                                                            nil,
		annotated(appArmor+`c":"unconfined"`, ``, `,"securityContext":{"appArmorProfile":{"type":"Unconfined"}}`):                        nil,
		annotated(appArmor+`c":"runtime/default"`, `,"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}`, ``):               {"type": "RuntimeDefault"},
		annotated(appArmor+`c":"localhost/x"`, `,"securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":"x"}}`, ``): {"type": "Localhost", "localhostProfile": "x"},
		annotated(seccomp+`c":"localhost/x"`, `,"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"x"}}`, ``):   nil,
		annotated(podSeccomp+`:"docker/default"`, ``, `,"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}`):                 nil,
		annotated(podSeccomp+`:"unconfined",`+seccomp+`c":"unconfined"`, ``, ``):                                                         nil,
	} {
		obj, faults := k.Create(t, body)
		require.Empty(t, faults, body)
		c := obj.Objects("spec", "containers")[0]
		require.Equal(t, want, c.Map("securityContext", "appArmorProfile"), body)
	}
}

// TestProfilesThatDisagree checks that annotations must agree with fields and refer to existing
// containers, and that AppArmor annotations are immutable.
func TestProfilesThatDisagree(t *testing.T) {
	k := kind(t, "Pod")
	const at = "spec.containers[0].securityContext."
	for body, want := range map[string][]string{
		annotated(appArmor+`d":"unconfined"`, ``, ``): {"Invalid:" + appArmorKey + "d]"},
		annotated(appArmor+`c":"other"`, ``, ``):      {"Invalid:" + appArmorKey + "c]"},
		annotated(appArmor+`c":"unconfined"`, `,"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}`, ``):                    {"Forbidden:" + at + "appArmorProfile.type"},
		annotated(appArmor+`c":"localhost/x"`, `,"securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":"y"}}`, ``): {"Forbidden:" + at + "appArmorProfile.localhostProfile"},
		annotated(seccomp+`c":"unconfined"`, `,"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"x"}}`, ``):    {"Forbidden:" + at + "seccompProfile.type"},
		annotated(podSeccomp+`:"unconfined"`, ``, `,"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}`):                     {"Forbidden:spec.securityContext.seccompProfile.type"},
		annotated(podSeccomp+`:"localhost/x"`, ``, `,"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"y"}}`):  {"Forbidden:spec.securityContext.seccompProfile.localhostProfile"},
	} {
		_, got := k.Create(t, body)
		require.Equal(t, want, got, body)
	}
	old, faults := k.Create(t, annotated(appArmor+`c":"unconfined"`, ``, ``))
	require.Empty(t, faults)
	for patch, want := range map[string][]string{
		`"x.io/y":"z"`:            {},
		appArmor + `c":"other"`:   {"Forbidden:" + appArmorKey + "c]"},
		appArmor + `c":null`:      {"Forbidden:" + appArmorKey + "c]"},
		appArmor + `d":"runtime"`: {"Forbidden:" + appArmorKey + "d]"},
	} {
		_, got := k.Update(t, old, `{"metadata":{"annotations":{`+patch+`}}}`, "")
		require.Equal(t, want, got, patch)
	}
}

// TestWarningsOfProfiles checks the warnings about annotations that fields replaced, also in templates.
func TestWarningsOfProfiles(t *testing.T) {
	const all = appArmor + `c":"runtime/default",` + seccomp + `c":"unconfined",` + podSeccomp + `:"unconfined"`
	for name, body := range map[string]string{
		"Pod":         annotated(all, ``, ``),
		"PodTemplate": `{"template":` + annotated(all, ``, ``) + `}`,
	} {
		k := kind(t, name)
		obj, faults := k.Create(t, body)
		require.Empty(t, faults, body)
		var got []string
		for _, text := range k.Warn(k.NewChange(t.Context(), obj, nil, "")) {
			at, _, _ := strings.Cut(text, ": ")
			got = append(got, strings.TrimPrefix(at, "template."))
		}
		require.Equal(t, []string{
			"metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]",
			"metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]", appArmorKey + "c]",
		}, got)
	}
	k := kind(t, "ServiceAccount")
	obj, _ := k.Create(t, `{"metadata":{"annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}}}`)
	require.Len(t, k.Warn(k.NewChange(t.Context(), obj, nil, "")), 1)
	require.Empty(t, k.Warn(k.NewChange(t.Context(), obj, obj, "")))
}
