// Package suite is the suite of ../envtest with a server in the process of the test.
package suite

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestFewLinesDiffer: moving a suite changes only a few lines.
func TestFewLinesDiffer(t *testing.T) {
	before, after := lines(t, "../envtest/suite_test.go"), lines(t, "suite_test.go")
	gone := slices.DeleteFunc(slices.Clone(before), func(line string) bool { return slices.Contains(after, line) })
	come := slices.DeleteFunc(slices.Clone(after), func(line string) bool { return slices.Contains(before, line) })
	require.Less(t, len(gone), 10, strings.Join(gone, "\n"))
	require.Less(t, len(come), 10, strings.Join(come, "\n"))
	t.Logf("%d lines in place of %d", len(come), len(gone))
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Split(string(text), "\n")
}
