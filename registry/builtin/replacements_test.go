package builtin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/release"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
)

// TestReplacementsAreServed checks that each release serves the versions that its deprecation warnings
// recommend.
func TestReplacementsAreServed(t *testing.T) {
	texts := map[string]map[string]string{}
	for r := release.Oldest; r.Compare(release.Newest) <= 0; r = r.Next() {
		served, warnings := map[string]bool{}, map[string]string{}
		var versions []*resource.Version
		for _, k := range builtin.Kinds() {
			typ, err := resource.CompileAt(k, names.Kubernetes, r)
			require.NoError(t, err)
			if typ == nil {
				continue
			}
			for _, v := range typ.Versions {
				if v.Served {
					served[v.GVK().APIVersion()+" "+v.Kind] = true
					versions = append(versions, v)
				}
			}
		}
		for _, v := range versions {
			if _, use, ok := strings.Cut(v.Deprecated, "; use "); ok {
				assert.True(t, served[use], "%s: %s", r, v.Deprecated)
			}
			warnings[v.GVK().APIVersion()+" "+v.Kind] = v.Deprecated
		}
		texts[r.String()] = warnings
	}
	const ingress = "extensions/v1beta1 Ingress"
	assert.Equal(t, ingress+" is deprecated in v1.14+, unavailable in v1.22+; use networking.k8s.io/v1beta1 Ingress", texts["1.16"][ingress])
	assert.Equal(t, ingress+" is deprecated in v1.14+, unavailable in v1.22+; use networking.k8s.io/v1 Ingress", texts["1.19"][ingress])
	const scaler = "autoscaling/v2beta1 HorizontalPodAutoscaler"
	assert.Equal(t, scaler+" is deprecated in v1.22+, unavailable in v1.25+; use autoscaling/v2beta2 HorizontalPodAutoscaler", texts["1.22"][scaler])
	assert.Empty(t, texts["1.32"]["v1 Endpoints"])
	assert.Equal(t, "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice", texts["1.33"]["v1 Endpoints"])
}
