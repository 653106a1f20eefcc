package storagetest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCopyLeavesOutWhatIsGone: a store may rename a file between the moment when its directory
// is listed and the moment when the file is copied.
func TestCopyLeavesOutWhatIsGone(t *testing.T) {
	to, from := t.TempDir(), t.TempDir()
	require.NoError(t, copyFile(filepath.Join(to, "a"), filepath.Join(from, "a")))
	require.NoFileExists(t, filepath.Join(to, "a"))
}
