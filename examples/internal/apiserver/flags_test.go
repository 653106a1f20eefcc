package apiserver

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/server"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestFlagsWithoutEffectAreErrors: a flag that requires another flag is an error without it, and the
// error names the other flag.
func TestFlagsWithoutEffectAreErrors(t *testing.T) {
	t.Parallel()
	values := map[string]string{ // valid values of flags that do not accept every text
		"oidc-required-claim": "a=b", "authentication-token-webhook-cache-ttl": "1m", "authorization-webhook-cache-authorized-ttl": "1m",
		"authorization-webhook-cache-unauthorized-ttl": "1m", "audit-log-maxsize": "1", "audit-log-maxbackup": "1", "audit-log-maxage": "1",
	}
	for other, flags := range requirements() {
		for _, name := range flags {
			value := values[name]
			if value == "" {
				value = "x"
			}
			_, err := Command{}.parseFlags([]string{"--" + name, value})
			assert.ErrorContains(t, err, "--"+name+" requires --"+other, name)
			_, err = Command{}.parseFlags([]string{"--" + name, value, "--" + other, ""})
			assert.ErrorContains(t, err, "--"+name+" requires --"+other, name)
		}
	}
	for want, args := range map[string][]string{
		"--authorization-mode is empty":               {"--authorization-mode", ""},
		"duplicate mode RBAC in --authorization-mode": {"--authorization-mode", "RBAC,Node,RBAC"},
		"duplicate mode Node in --authorization-mode": {"--authorization-mode", "Node", "--authorization-mode", "Node"},
		"requires --authorization-mode ABAC":          {"--authorization-policy-file", "x"},
		"requires --authorization-mode Webhook":       {"--authorization-mode", "RBAC", "--authorization-webhook-config-file", "x"},
		"requires --audit-log-path or":                {"--audit-policy-file", "x"},
		"are the same flag":                           {"--service-account-signing-key-file", "x", "--service-account-private-key-file", "y"},
		"must not be negative":                        {"--livez-grace-period", "-1s"},
		"--shutdown-delay-duration must":              {"--shutdown-delay-duration", "-1s"},
		`duplicate key "a"`:                           {"--oidc-required-claim", "a=b", "--oidc-required-claim", "a=c"},
		"--tls-cert-file requires":                    {"--tls-cert-file", "x"},
		"--proxy-client-key-file requires":            {"--proxy-client-key-file", "x"},
		"--oidc-client-id requires ":                  {"--oidc-client-id", "x", "--authorization-mode", "RBAC"},
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

// TestHiddenMetrics: the server does not start if the release is not the previous one.
func TestHiddenMetrics(t *testing.T) {
	t.Parallel()
	err := Command{}.run(t.Context(), []string{"--show-hidden-metrics-for-version", "1.20", "--data-dir", "", "--secure-port", "0",
		"--kubeconfig", filepath.Join(t.TempDir(), "k")}, io.Discard)
	assert.ErrorContains(t, err, "the previous release, not for \"1.20\"")
}

func TestByteLimits(t *testing.T) {
	t.Parallel()
	f, err := Command{}.parseFlags([]string{"--max-object-bytes", "500", "--max-namespace-bytes", "1000", "--max-store-bytes", "2000"})
	require.NoError(t, err)
	l := f.limits.limits()
	assert.EqualValues(t, 500, l.ObjectBytes)
	assert.EqualValues(t, 1000, l.NamespaceBytes)
	assert.EqualValues(t, 2000, l.StoreBytes)
}

// TestRequestLimits: the limits have the same meaning as in kube-apiserver.
func TestRequestLimits(t *testing.T) {
	t.Parallel()
	f, err := Command{}.parseFlags(nil)
	require.NoError(t, err)
	assert.Equal(t, server.Limits{InFlight: 600, RequestTime: time.Minute, WatchTime: 30 * time.Minute}, f.limits.limits())
	f, err = Command{}.parseFlags([]string{"--max-requests-inflight=3", "--max-mutating-requests-inflight=4", "--request-timeout=5s", "--min-request-timeout=6"})
	require.NoError(t, err)
	assert.Equal(t, server.Limits{InFlight: 7, RequestTime: 5 * time.Second, WatchTime: 6 * time.Second}, f.limits.limits())
	for _, arg := range []string{"--max-requests-inflight=-1", "--max-mutating-requests-inflight=-1", "--request-timeout=-1s", "--min-request-timeout=-1"} {
		_, err := Command{}.parseFlags([]string{arg})
		assert.ErrorContains(t, err, "must not be negative", arg)
	}
}

// TestWatchEnds: a watch without a timeout ends after --min-request-timeout.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), "--min-request-timeout=1", "--max-requests-inflight=1", "--max-mutating-requests-inflight=0")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", p.url+mapsPath+"?watch=true&resourceVersion=0", nil)
	require.NoError(t, err)
	res, err := p.client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, 200, res.StatusCode)
	_, err = io.Copy(io.Discard, res.Body)
	assert.NoError(t, err, "the watch ends by itself")
}

// TestAdmissionPluginsByName: a plugin is disabled by its name, and the server does not start with an
// unknown name.
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

// TestRuntimeConfigAndGates: the lists can be repeated; the server rejects unknown gates unless the
// command ignores them.
func TestRuntimeConfigAndGates(t *testing.T) {
	t.Parallel()
	args := []string{"--runtime-config=api/all=false, v1 ,apps/v1=false", "--runtime-config", "apps/v1=true,,batch/v1/jobs",
		"--feature-gates=WatchList=false,Other=true,AllAlpha=true", "--feature-gates=WatchList=true"}
	f, err := Command{}.parseFlags(args)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"api/all": "false", "v1": "", "apps/v1": "true", "batch/v1/jobs": ""}, f.runtimeConfig)
	assert.Equal(t, map[string]bool{"WatchList": true, "Other": true, "AllAlpha": true}, f.features)
	f, err = Command{Ignored: map[string]bool{}}.parseFlags(append(args, "--runtime-config=apps/v9,batch/v1/nothings=false,storage.k8s.io/v1=false,v7=false,resource.k8s.io/v1beta9/x"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"api/all": "false", "v1": "", "apps/v1": "true", "batch/v1/jobs": "", "batch/v1/nothings": "false", "storage.k8s.io/v1": "false"}, f.runtimeConfig)
	assert.Equal(t, []string{"apps/v9", "resource.k8s.io/v1beta9/x", "v7"}, f.otherVersions)
	assert.Equal(t, map[string]bool{"WatchList": true, "AllAlpha": true}, f.features)
	assert.Equal(t, []string{"Other"}, f.otherGates)
	f, err = Command{Ignored: map[string]bool{}}.parseFlags([]string{"--release=1.34", "--feature-gates", " CSIMigration = true, APIListChunking=false,WatchList=false, RecoverVolumeExpansionFailure=false, ", "--feature-gates=AllBeta=true", "--feature-gates="})
	require.NoError(t, err)
	assert.Equal(t, []string{"APIListChunking", "CSIMigration"}, f.otherGates, "the release no longer has the gates")
	assert.Equal(t, map[string]bool{"WatchList": false, "RecoverVolumeExpansionFailure": false, "AllBeta": true}, f.features)
	for arg, want := range map[string]string{"WatchList": "missing bool value for WatchList", "WatchList=on": "invalid value of WatchList=on"} {
		_, err = Command{}.parseFlags([]string{"--feature-gates=" + arg})
		assert.ErrorContains(t, err, want)
	}
}

// TestEngines: --storage accepts the engines that a program offers, and only the flags of the selected
// engine.
func TestEngines(t *testing.T) {
	t.Parallel()
	where := ""
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	c := Command{Engines: map[string]Engine{"attic": func(set *flag.FlagSet) Opener {
		box := set.String("attic-box", "", "a box")
		set.Func("attic-key", "a key", func(string) error { return nil })
		return func(context.Context, *slog.Logger, bool) (storage.Backend, error) {
			where = *box
			return store, nil
		}
	}}}
	f, err := c.parseFlags([]string{"--storage", "attic", "--attic-box", "3"})
	require.NoError(t, err)
	opened, err := f.open(t.Context(), nil, true)
	require.NoError(t, err)
	assert.Same(t, store, opened)
	assert.Equal(t, "3", where)
	assert.ErrorContains(t, f.advise(&server.NamesError{Store: "orch", Server: "kubernetes"}), "to use the data in attic, start with --names orch")

	_, err = c.parseFlags([]string{"--attic-box", "3"})
	assert.ErrorContains(t, err, "--attic-box requires --storage attic")
	_, err = c.parseFlags([]string{"--attic-key", "3"})
	assert.ErrorContains(t, err, "--attic-key requires --storage attic")
	_, err = c.parseFlags([]string{"--to-attic-key", "3"})
	assert.ErrorContains(t, err, "--to-attic-key requires --to-storage attic")
	_, err = c.parseFlags([]string{"--storage", "cellar"})
	assert.ErrorContains(t, err, "must be directory or attic")
	_, err = Command{}.parseFlags([]string{"--storage", "directory"})
	assert.ErrorContains(t, err, "not defined")
}
