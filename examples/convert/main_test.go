package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const old = "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  maxReplicas: 3\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  targetCPUUtilizationPercentage: 50\n"

func converted(t *testing.T, in string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), args, strings.NewReader(in), &out))
	return out.String()
}

func TestConvert(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	require.NoError(t, os.Mkdir(below, 0o755))
	for _, name := range []string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "notes.txt"), filepath.Join(below, "b.yml")} {
		require.NoError(t, os.WriteFile(name, []byte(old), 0o644))
	}
	out := converted(t, old, "-f", "-", "-output-version", "autoscaling/v2")
	assert.Contains(t, out, "apiVersion: autoscaling/v2\n")
	assert.Contains(t, out, "averageUtilization: 50\n")
	assert.Equal(t, out, converted(t, "", "-f", dir))
	assert.Equal(t, out+"---\n"+out, converted(t, "", "-R", "-f", dir))
	assert.Equal(t, out+"---\n"+out, converted(t, old, "-f", dir+",-"))
	require.Error(t, run(t.Context(), nil, nil, nil))
	require.ErrorContains(t, run(t.Context(), []string{"-f", filepath.Join(dir, "nothing")}, nil, nil), "nothing")
}
