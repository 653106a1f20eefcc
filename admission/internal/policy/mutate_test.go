package policy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/metrics"
)

// patches returns a compiled policy with JSON patch mutations.
func patches(t *testing.T, failure string, expressions ...string) *policy {
	t.Helper()
	var mutations []any
	for _, text := range expressions {
		mutations = append(mutations, map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": text}})
	}
	p := compile(meta.NewObject(map[string]any{
		"metadata": map[string]any{"name": "p"}, "spec": map[string]any{"failurePolicy": failure, "mutations": mutations},
	}), names.Kubernetes)
	require.NoError(t, p.fault)
	for _, m := range p.mutations {
		require.NoError(t, m.fault)
	}
	return p
}

// request returns the mutator for a create request.
func request(t *testing.T, object string, authorizer auth.Authorizer) *mutator {
	t.Helper()
	tree := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(object), &tree))
	counts, err := newCounts(prometheus.NewRegistry(), "mutating", "admit", metrics.Alpha)
	require.NoError(t, err)
	return &mutator{
		counts: counts,
		Request: matcher.Request{Request: &admission.Request{
			Operation: admission.Create, Object: meta.NewObject(tree), Server: &admission.PluginContext{Authorizer: authorizer},
		}},
		reinvocation: &reinvocation{again: map[callKey]bool{}}, maxSize: maxGrowth,
	}
}

// TestMutationsEndWithTheRequest checks that the end of the context ends the request, whatever the failure
// policy is.
func TestMutationsEndWithTheRequest(t *testing.T) {
	t.Parallel()
	for _, failure := range []string{"Fail", "Ignore"} {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		r := request(t, `{}`, auth.AuthorizerFunc(func(context.Context, auth.Attributes) (auth.Decision, string, error) {
			asked++
			cancel()
			return auth.Allow, "", nil
		}))
		const ask = `[JSONPatch{op: 'add', path: '/x', value: authorizer.path('/x').check('get').allowed()}]`
		err := r.callAll(ctx, []call{{policy: patches(t, failure, ask, ask), binding: &binding{name: "b"}}})
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 1, asked)
		assert.Empty(t, r.Object.Tree())
	}
}

// TestObjectsGrowWithinBounds checks that the growth by all mutations together is limited.
func TestObjectsGrowWithinBounds(t *testing.T) {
	t.Parallel()
	var adds []string
	for i := range 9 {
		adds = append(adds, fmt.Sprintf(`[JSONPatch{op: 'add', path: '/x%d', value: object.big}]`, i))
	}
	r := request(t, `{big: `+strings.Repeat("x", 1<<20)+`}`, nil)
	require.NoError(t, r.callAll(t.Context(), []call{{policy: patches(t, "Fail", adds...), binding: &binding{name: "b"}}}))
	assert.True(t, len(r.Object.Tree()) == 7, "%d fields", len(r.Object.Tree())) // the object is too large to print
	assert.ErrorContains(t, r.status(), "policy 'p' with binding 'b' denied request: policies may add at most 8388608 bytes to an object")
}

func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	fails := `[JSONPatch{op: object.nothing, value: '` + strings.Repeat("x", 10_000) + `'}]`
	r := request(t, `{}`, nil)
	require.NoError(t, r.callAll(t.Context(), []call{{policy: patches(t, "Fail", fails, fails, fails, fails, fails, fails, fails, fails), binding: &binding{name: "b"}}}))
	size := 0
	for _, f := range r.failures {
		size += len(f.message)
	}
	assert.Equal(t, maxMessages, size)
	assert.Len(t, r.failures, 7)
}

// TestExpressionsAskWithSelectors checks authorizer calls with field and label selectors.
func TestExpressionsAskWithSelectors(t *testing.T) {
	t.Parallel()
	var asked auth.Attributes
	r := request(t, `{}`, auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
		asked = a
		return auth.Allow, "", nil
	}))
	const ask = `[JSONPatch{op: 'add', path: '/may', value: authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('x in (y)').check('list').allowed()}]`
	require.NoError(t, r.callAll(t.Context(), []call{{policy: patches(t, "Fail", ask), binding: &binding{name: "b"}}}))
	require.NoError(t, r.status())
	assert.Equal(t, map[string]any{"may": true}, r.Object.Tree())
	assert.Equal(t, auth.Attributes{Verb: "list", Version: "*", Resource: "pods", Fields: "a=b", Labels: "x in (y)"}, asked)
}
