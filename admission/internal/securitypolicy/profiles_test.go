package securitypolicy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/admission/internal/securitypolicy"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// TestProfiles checks the defaults and the violations for annotations of a policy.
func TestProfiles(t *testing.T) {
	const (
		seccomp    = "seccomp.security.alpha.kubernetes.io/"
		appArmor   = "apparmor.security.beta.kubernetes.io/"
		onPod      = "pod.metadata.annotations." + seccomp + "pod: Forbidden: "
		onC        = "pod.metadata.annotations.container." + seccomp + "c: Forbidden: "
		armorOfC   = "metadata.annotations.container." + appArmor + "c: "
		plain      = `{containers: [{name: c}]}`
		filled     = `{securityContext: {seccompProfile: {type: RuntimeDefault}}, containers: [{name: c}]}`
		unconfined = `{securityContext: {seccompProfile: {type: Unconfined}}, containers: [{name: c}]}`
	)
	armor := func(profile string) string {
		return `{containers: [{name: c, securityContext: {appArmorProfile: ` + profile + `}}]}`
	}
	for _, tc := range []struct{ policy, pod, spec, filled, want string }{
		{`{}`, `{}`, plain, plain, ""},
		{`{}`, `{}`, filled, filled, onPod + "seccomp may not be set, " + onC + "seccomp may not be set"},
		{`{}`, `{` + seccomp + `pod: runtime/default}`, plain, plain, onPod + "seccomp may not be set, " + onC + "seccomp may not be set"},
		{`{` + seccomp + `allowedProfileNames: "*"}`, `{}`, unconfined, unconfined, ""},
		{`{` + seccomp + `defaultProfileName: docker/default}`, `{}`, plain, filled, ""},
		{`{` + seccomp + `defaultProfileName: runtime/default}`, `{}`, unconfined, unconfined, onPod + "seccomp may not be set, " + onC + "seccomp may not be set"},
		{`{` + seccomp + `defaultProfileName: runtime/default}`, `{` + seccomp + `pod: docker/default}`, plain, filled, ""},
		{`{` + seccomp + `defaultProfileName: runtime/default}`, `{` + seccomp + `pod: unconfined}`, plain, filled, onPod + "seccomp may not be set, " + onC + "seccomp may not be set"},
		{`{` + seccomp + `allowedProfileNames: runtime/default}`, `{` + seccomp + `pod: runtime/default, container.` + seccomp + `c: runtime/default}`, plain, plain,
			onPod + " is not an allowed seccomp profile. Valid values are runtime/default, " + onC + " is not an allowed seccomp profile. Valid values are runtime/default"},
		{`{` + seccomp + `allowedProfileNames: "docker/default, localhost/a"}`, `{}`, filled, filled, ""},
		{`{` + seccomp + `allowedProfileNames: "docker/default, localhost/a"}`, `{}`, plain, plain,
			onPod + " is not an allowed seccomp profile. Valid values are runtime/default,localhost/a, " + onC + " is not an allowed seccomp profile. Valid values are runtime/default,localhost/a"},
		{`{` + seccomp + `allowedProfileNames: localhost/a}`, `{` + seccomp + `pod: localhost/a, container.` + seccomp + `c: localhost/b}`, plain, plain,
			onPod + " is not an allowed seccomp profile. Valid values are localhost/a, " + onC + " is not an allowed seccomp profile. Valid values are localhost/a, " + onC + "localhost/b is not an allowed seccomp profile. Valid values are localhost/a"},
		{`{` + seccomp + `allowedProfileNames: localhost/a}`, `{` + seccomp + `pod: localhost/a}`, unconfined, unconfined,
			onPod + "unconfined is not an allowed seccomp profile. Valid values are localhost/a, " + onC + "unconfined is not an allowed seccomp profile. Valid values are localhost/a"},
		{`{` + seccomp + `defaultProfileName: strange}`, `{}`, plain, plain, ""},

		{`{}`, `{}`, armor(`{type: Unconfined}`), armor(`{type: Unconfined}`), ""},
		{`{` + appArmor + `defaultProfileName: localhost/a}`, `{}`, plain, armor(`{type: Localhost, localhostProfile: a}`), ""},
		{`{` + appArmor + `defaultProfileName: localhost/a}`, `{container.` + appArmor + `c: unconfined}`, plain, plain, ""},
		{`{` + appArmor + `defaultProfileName: unconfined}`, `{}`, plain, armor(`{type: Unconfined}`), ""},
		{`{` + appArmor + `allowedProfileNames: runtime/default}`, `{}`, plain, plain, armorOfC + "Forbidden: AppArmor profile must be set"},
		{`{` + appArmor + `allowedProfileNames: runtime/default}`, `{container.` + appArmor + `c: runtime/default}`, plain, plain, ""},
		{`{` + appArmor + `allowedProfileNames: runtime/default}`, `{container.` + appArmor + `c: runtime/default}`, armor(`{type: Unconfined}`), armor(`{type: Unconfined}`),
			armorOfC + `Invalid value: "unconfined": unconfined is not an allowed profile. Valid values are runtime/default`},
		{`{` + appArmor + `allowedProfileNames: runtime/default}`, `{}`, armor(`{type: RuntimeDefault}`), armor(`{type: RuntimeDefault}`), ""},
	} {
		policy := tree(t, `{metadata: {annotations: `+tc.policy+`}}`)
		pod := tree(t, `{metadata: {annotations: `+tc.pod+`}}`)
		spec, want := tree(t, tc.spec), tree(t, tc.filled)
		profiles := securitypolicy.ProfilesOf(names.Kubernetes, policy)
		for range 2 {
			profiles.Fill(pod.Annotations(), spec)
			assert.True(t, meta.Equal(want.Tree(), spec.Tree()), "%v is not %v", spec.Tree(), want.Tree())
		}
		var texts []string
		for _, cause := range profiles.Check(pod.Annotations(), spec) {
			texts = append(texts, cause.Field+": "+cause.Message)
		}
		assert.Equal(t, tc.want, strings.Join(texts, ", "), "%s %s %s", tc.policy, tc.pod, tc.spec)
	}
}
