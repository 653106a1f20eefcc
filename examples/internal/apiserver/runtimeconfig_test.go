package apiserver

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
)

// TestVersions: --runtime-config knows exactly the served versions, including the optional one once it
// is enabled. A version without resources, and a plugin that needs a cloud provider, can be enabled.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"", "1.18"} {
		t.Run(release, func(t *testing.T) { t.Parallel(); versionsOf(t, release) })
	}
}

func versionsOf(t *testing.T, release string) {
	args := []string{"--runtime-config", "storagemigration.k8s.io/v1beta1=true,imagepolicy.k8s.io/v1alpha1=true", "--enable-admission-plugins", "PersistentVolumeLabel"}
	if release != "" {
		args = []string{"--release", release}
	}
	p := startProcess(t, t.TempDir(), args...)
	code, body := p.call("GET", "/apis", "")
	require.Equal(t, 200, code)
	var list struct {
		Groups []struct {
			Versions []struct{ GroupVersion string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	served := []string{"v1"}
	for _, g := range list.Groups {
		for _, v := range g.Versions {
			served = append(served, v.GroupVersion)
		}
	}
	assert.ElementsMatch(t, served, (&flags{names: names.Kubernetes, release: release}).versions())
	assert.Equal(t, release == "", slices.Contains(served, "storagemigration.k8s.io/v1"))
}

// TestParseSettings: empty words are skipped; a word without a key is accepted, because Build rejects
// it.
func TestParseSettings(t *testing.T) {
	t.Parallel()
	set := map[string]string{}
	require.NoError(t, parseSettings(set)(" a = true ,, b,a=false"))
	assert.Equal(t, map[string]string{"a": "false", "b": ""}, set)
	require.NoError(t, parseSettings(set)("=true"))
	assert.Contains(t, set, "")
	require.ErrorContains(t, parseSettings(set)("a=maybe"), "neither true nor false")
}
