package podstandards_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission/internal/podstandards"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// TestViolationsMatchKubeAPIServer compares the violations of each pod in each release with those recorded from
// kube-apiserver.
func TestViolationsMatchKubeAPIServer(t *testing.T) {
	var cases []struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
		Spec        map[string]any    `json:"spec"`
		Want        []struct {
			Level        string `json:"level"`
			Since, Until podstandards.Version
			Says         string `json:"says"`
		} `json:"want"`
	}
	data, err := os.ReadFile("testdata/answers.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &cases))
	require.Greater(t, len(cases), 100)
	for _, tc := range cases {
		pod := &podstandards.Pod{Spec: meta.NewObject(tc.Spec), Annotations: tc.Annotations, Names: names.Kubernetes}
		for _, level := range []podstandards.Level{podstandards.Privileged, podstandards.Baseline, podstandards.Restricted} {
			for v := podstandards.Version(0); v <= 37; v++ {
				want := ""
				for _, w := range tc.Want {
					// a release that was not recorded is like the release before it
					if w.Level == level.String() && w.Since <= v && (v <= w.Until || v < 17 && v > 8 && w.Until == 8) {
						want = w.Says
					}
				}
				s := podstandards.Standard{Level: level, Version: v}
				assert.Equal(t, want, s.Check(pod).Details(), "%s %s", tc.Name, s)
			}
		}
		latest, newest := podstandards.Standard{Level: podstandards.Restricted, Version: podstandards.Latest}, podstandards.Standard{Level: podstandards.Restricted, Version: 37}
		assert.Equal(t, newest.Check(pod), latest.Check(pod), tc.Name)
	}
}

// TestEphemeralContainers checks that they are checked like other containers, and come last.
func TestEphemeralContainers(t *testing.T) {
	pod := &podstandards.Pod{Names: names.Kubernetes, Spec: meta.NewObject(map[string]any{
		"ephemeralContainers": []any{map[string]any{"name": "e", "securityContext": map[string]any{"privileged": true}}},
		"containers":          []any{map[string]any{"name": "c", "securityContext": map[string]any{"privileged": true}}},
	})}
	found := podstandards.Standard{Level: podstandards.Baseline, Version: podstandards.Latest}.Check(pod)
	assert.Equal(t, `privileged (containers "c", "e" must not set securityContext.privileged=true)`, found.Details())
	assert.Equal(t, "privileged", found.Reasons())
}

// TestAnnotationsAreReadByWireName checks that annotations are read by their wire names.
func TestAnnotationsAreReadByWireName(t *testing.T) {
	for _, p := range []names.Profile{names.Kubernetes, names.Orch} {
		pod := &podstandards.Pod{Names: p, Spec: meta.NewObject(nil), Annotations: map[string]string{"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}}
		found := podstandards.Standard{Level: podstandards.Baseline, Version: podstandards.Latest}.Check(pod)
		assert.Equal(t, p == names.Kubernetes, len(found) == 1)
	}
}

// TestCheckToleratesForeignTrees checks trees that are not pod specs.
func TestCheckToleratesForeignTrees(t *testing.T) {
	for _, tree := range []string{
		`{}`, `{"containers":1}`, `{"containers":[1,{"securityContext":[]}],"volumes":[null,{"name":{}}],"securityContext":"x","os":[]}`,
		`{"containers":[{"name":1,"ports":{"hostPort":1},"securityContext":{"capabilities":{"add":{}},"runAsUser":"0","seccompProfile":7}}]}`,
	} {
		var spec map[string]any
		require.NoError(t, json.Unmarshal([]byte(tree), &spec))
		for v := podstandards.Version(0); v <= 37; v++ {
			podstandards.Standard{Level: podstandards.Restricted, Version: v}.Check(&podstandards.Pod{Spec: meta.NewObject(spec)})
		}
	}
}

// TestTextsAreBounded checks that a violation names a bounded number of containers.
func TestTextsAreBounded(t *testing.T) {
	var containers, sysctls []any
	for i := range 10_000 {
		containers = append(containers, map[string]any{"name": fmt.Sprint(i), "ports": []any{map[string]any{"hostPort": int64(i + 1)}}})
		sysctls = append(sysctls, map[string]any{"name": fmt.Sprint(i)})
	}
	pod := &podstandards.Pod{Names: names.Kubernetes, Spec: meta.NewObject(map[string]any{"containers": containers, "securityContext": map[string]any{"sysctls": sysctls}})}
	found := podstandards.Standard{Level: podstandards.Restricted, Version: podstandards.Latest}.Check(pod)
	assert.Len(t, found, 6)
	assert.Less(t, len(found.Details()), 10_000)
}

func TestParse(t *testing.T) {
	for word, want := range map[string]string{
		"latest": "latest", "v1.0": "v1.0", "v1.24": "v1.24", "v1.999": "v1.999",
		"": "", "v1": "", "v1.": "", "v1.024": "", "v2.1": "", "v1.-1": "", "v1.24.1": "", "v1.9999999999": "", "Latest": "", "v1.24\n": "",
	} {
		v, ok := podstandards.ParseVersion(word)
		assert.Equal(t, want != "", ok, word)
		if ok {
			assert.Equal(t, want, v.String())
		}
	}
	for _, word := range []string{"privileged", "baseline", "restricted"} {
		l, ok := podstandards.ParseLevel(word)
		assert.True(t, ok)
		assert.Equal(t, word, l.String())
	}
	for _, word := range []string{"", "Baseline", "strict"} {
		_, ok := podstandards.ParseLevel(word)
		assert.False(t, ok, word)
	}
}

func ExampleStandard_Check() {
	pod := &podstandards.Pod{Spec: meta.NewObject(map[string]any{"hostNetwork": true}), Names: names.Kubernetes}
	fmt.Println(podstandards.Standard{Level: podstandards.Baseline, Version: podstandards.Latest}.Check(pod).Details())
	// Output: host namespaces (hostNetwork=true)
}
