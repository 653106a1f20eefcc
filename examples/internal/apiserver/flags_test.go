package apiserver

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/server"
)

// TestFlagsThatWouldBeIgnored: a flag that means nothing beside the others is an
// error that says what is missing.
func TestFlagsThatWouldBeIgnored(t *testing.T) {
	t.Parallel()
	values := map[string]string{ // of flags that take no free text
		"oidc-required-claim": "a=b", "authentication-token-webhook-cache-ttl": "1m", "authorization-webhook-cache-authorized-ttl": "1m",
		"authorization-webhook-cache-unauthorized-ttl": "1m", "audit-log-maxsize": "1", "audit-log-maxbackup": "1", "audit-log-maxage": "1",
	}
	for other, flags := range needed() {
		for _, name := range flags {
			value := values[name]
			if value == "" {
				value = "x"
			}
			_, err := Command{}.parseFlags([]string{"--" + name, value})
			assert.ErrorContains(t, err, "--"+name+" means nothing without --"+other, name)
			_, err = Command{}.parseFlags([]string{"--" + name, value, "--" + other, ""})
			assert.ErrorContains(t, err, "--"+name+" means nothing without --"+other, name)
		}
	}
	for want, args := range map[string][]string{
		"--authorization-mode is empty":           {"--authorization-mode", ""},
		"--authorization-mode has RBAC twice":     {"--authorization-mode", "RBAC,Node,RBAC"},
		"--authorization-mode has Node twice":     {"--authorization-mode", "Node", "--authorization-mode", "Node"},
		"without --authorization-mode ABAC":       {"--authorization-policy-file", "x"},
		"without --authorization-mode Webhook":    {"--authorization-mode", "RBAC", "--authorization-webhook-config-file", "x"},
		"records nowhere":                         {"--audit-policy-file", "x"},
		"are the same":                            {"--service-account-signing-key-file", "x", "--service-account-private-key-file", "y"},
		"must not be negative":                    {"--livez-grace-period", "-1s"},
		"--shutdown-delay-duration must":          {"--shutdown-delay-duration", "-1s"},
		`"a" is given twice`:                      {"--oidc-required-claim", "a=b", "--oidc-required-claim", "a=c"},
		"--tls-cert-file means nothing without":   {"--tls-cert-file", "x"},
		"--oidc-client-id means nothing without ": {"--oidc-client-id", "x", "--authorization-mode", "RBAC"},
	} {
		_, err := Command{}.parseFlags(args)
		assert.ErrorContains(t, err, want, "%v", args)
	}
	for _, args := range [][]string{
		nil,
		{"--authorization-mode", "ABAC", "--authorization-policy-file", "x"},
		{"--requestheader-client-ca-file", "x", "--requestheader-username-headers", "x"},
		{"--oidc-issuer-url", "x", "--oidc-client-id", "x", "--oidc-groups-claim", "x", "--oidc-groups-prefix", "x"},
		{"--audit-policy-file", "x", "--audit-log-path", "x", "--audit-log-maxsize", "1"},
	} {
		_, err := Command{}.parseFlags(args)
		require.NoError(t, err, "%v", args)
	}
}

// TestHiddenMetrics: a release that is not the one before ends the start.
func TestHiddenMetrics(t *testing.T) {
	t.Parallel()
	err := Command{}.run(t.Context(), []string{"--show-hidden-metrics-for-version", "1.20", "--data-dir", "", "--secure-port", "0",
		"--kubeconfig", filepath.Join(t.TempDir(), "k")}, io.Discard)
	assert.ErrorContains(t, err, "the one before this, not for \"1.20\"")
}

func TestByteLimits(t *testing.T) {
	t.Parallel()
	f, err := Command{}.parseFlags([]string{"--max-namespace-bytes", "1000", "--max-store-bytes", "2000"})
	require.NoError(t, err)
	assert.EqualValues(t, 1000, f.limits.NamespaceBytes)
	assert.EqualValues(t, 2000, f.limits.StoreBytes)
}

// TestAdmissionPluginsByName: a plugin is disabled by its name, and a server that
// is told of one that it does not have does not start.
func TestAdmissionPluginsByName(t *testing.T) {
	t.Parallel()
	f, err := Command{}.parseFlags([]string{"--disable-admission-plugins", "CertificateSigning, NamespaceLifecycle", "--default-not-ready-toleration-seconds", "5"})
	require.NoError(t, err)
	var b server.Builder
	require.NoError(t, f.admission.configure(&b))
	assert.Equal(t, admission.Options{
		Disable: []string{"CertificateSigning", "NamespaceLifecycle"},
		Config:  map[string]any{"DefaultTolerationSeconds": plugins.TolerationSeconds{NotReady: 5, Unreachable: 300}},
	}, b.AdmissionOptions)

	err = Command{}.run(t.Context(), []string{"--data-dir", "", "--kubeconfig", filepath.Join(t.TempDir(), "k"), "--secure-port", "0", "--enable-admission-plugins", "NoSuch",
		"--disable-admission-plugins", "RBACEscalation"}, io.Discard)
	assert.ErrorContains(t, err, `there is no admission plugin "NoSuch"`)
	assert.ErrorContains(t, err, "the admission plugin RBACEscalation cannot be disabled")
}
