package main

import (
	"bytes"
	"io"
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
	require.NoError(t, run(t.Context(), args, strings.NewReader(in), &out, io.Discard))
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
	require.Error(t, run(t.Context(), nil, nil, nil, nil))
	require.ErrorContains(t, run(t.Context(), []string{"-f", filepath.Join(dir, "nothing")}, nil, nil, nil), "nothing")
}

// TestConvertReportsErrors: misspelled versions are errors, and objects that a server would reject are
// warnings.
func TestConvertReportsErrors(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.json")
	require.NoError(t, os.WriteFile(name, []byte(`{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"a"},"spec":{"minAvailable":-1}}`), 0o644))
	var out, told bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-f", name, "-f", "-"}, strings.NewReader("kind: a # stays"), &out, &told))
	assert.Equal(t, "warning: "+name+`: document 1: PodDisruptionBudget "a": spec.minAvailable: Invalid value: -1: must be greater than or equal to 0`+"\n", told.String())
	assert.Equal(t, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"a"},"spec":{"minAvailable":-1}}`+"\n---\nkind: a # stays", out.String())

	assert.Equal(t, "{\n    \"kind\": \"a\"\n}\n", converted(t, "kind: a", "-f", "-", "-o", "json"))
	require.ErrorContains(t, run(t.Context(), []string{"-f", name, "-output-version", "polcy/v1"}, nil, &out, &told), `did you mean "policy/v1"?`)
	require.ErrorContains(t, run(t.Context(), []string{"-f", name, "-o", "xml"}, nil, &out, &told), `must be yaml, json or empty`)
	require.ErrorContains(t, run(t.Context(), []string{"-f", "-"}, strings.NewReader("a: 1\na: 2\n"), &out, &told), `-: document 1: line 2: key "a" already set in map`)
}

// TestConvertDirectory: entries of a directory other than files are skipped, because reading a pipe
// would block. The byte order mark of a file is removed, because it is invalid in the middle of the
// output.
func TestConvertDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("\ufeffkind: a\n"), 0o644))
	}
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "c.yaml")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "d.yaml")))
	const all = "\ufeffkind: a\n---\nkind: a\n---\nkind: a\n"
	assert.Equal(t, all, converted(t, "", "-f", dir))
	assert.Equal(t, all, converted(t, "", "-f", filepath.Join(dir, "c.yaml")), "a link to the directory")
}
