package storagetest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCopyFileIgnoresMissingFile checks that a file may be renamed between the listing of its directory and its copy.
func TestCopyFileIgnoresMissingFile(t *testing.T) {
	to, from := t.TempDir(), t.TempDir()
	require.NoError(t, copyFile(filepath.Join(to, "a"), filepath.Join(from, "a")))
	require.NoFileExists(t, filepath.Join(to, "a"))
}
