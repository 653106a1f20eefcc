package apiserver

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
)

func TestRuntimeConfig(t *testing.T) {
	t.Parallel()
	has := []string{"apps/v1", "b.io/v1alpha2", "storage/v1beta1", "v1"}
	for text, want := range map[string]struct{ off, absent []string }{
		"":                                      {},
		"api/all=true, apps/v1":                 {},
		"apps/v1=false,v1=true":                 {off: []string{"apps/v1"}},
		"apps/v1=false,apps/v1=true":            {},
		"api/beta=false":                        {off: []string{"storage/v1beta1"}},
		"api/alpha=false":                       {off: []string{"b.io/v1alpha2"}},
		"api/ga=false,v1=true":                  {off: []string{"apps/v1"}},
		"api/v1=true,api/all=false":             {off: has[:3]},
		"api/beta=true,api/all=false":           {off: []string{"apps/v1", "b.io/v1alpha2", "v1"}},
		"apps/v1beta1=true,b.io/v2=false":       {absent: []string{"apps/v1beta1", "b.io/v2"}},
		"extensions/v1beta1/deployments=true":   {absent: []string{"extensions/v1beta1/deployments"}},
		"api/beta=false,storage/v1beta1=true,,": {},
	} {
		var c runtimeConfig
		require.NoError(t, c.Set(text), text)
		off, absent := c.disabled(has)
		assert.Equal(t, want.off, off, text)
		assert.Equal(t, want.absent, absent, text)
	}
	for text, want := range map[string]string{
		"apps/v1=maybe":             `"maybe" is neither true nor false`,
		"apps/v1/deployments=false": "apps/v1/deployments cannot be disabled",
		"api/v2=false":              "api/v2 names no versions",
	} {
		assert.ErrorContains(t, new(runtimeConfig).Set(text), want)
	}
}

// TestVersions: the versions that --runtime-config knows are those that are served.
func TestVersions(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
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
	assert.ElementsMatch(t, served, (&flags{names: names.Kubernetes}).versions())
}
