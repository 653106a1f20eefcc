package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunPrintsDocumentedOutput(t *testing.T) {
	var out bytes.Buffer
	fmt.Fprintln(&out, run(t.Context(), t.TempDir(), &out))
	require.Equal(t, `monday contains the version that the client saw: true
changes in tuesday: 1
tuesday alone is rejected: true
the client missed: MODIFIED buy milk and bread
<nil>
`, out.String())
}

// TestDamagedBackups: a damaged backup is rejected and leaves nothing in the directory, so the restore
// can be repeated.
func TestDamagedBackups(t *testing.T) {
	dir := t.TempDir()
	data, saved, damaged, restored := filepath.Join(dir, "data"), filepath.Join(dir, "saved"), filepath.Join(dir, "damaged"), filepath.Join(dir, "restored")
	require.NoError(t, serve(t.Context(), data, func(store storage.Backend, notes *client.Objects[Note]) error {
		for i := range 100 {
			if _, err := notes.Create(t.Context(), &Note{ObjectMeta: meta.ObjectMeta{Name: fmt.Sprint("n", i)}, Text: strings.Repeat("x", 10<<10)}); err != nil {
				return err
			}
		}
		_, err := save(t.Context(), store, backup.Position{}, saved)
		return err
	}))
	text, err := os.ReadFile(saved)
	require.NoError(t, err)
	text[len(text)-len(text)/8] ^= 0xff
	for _, part := range [][]byte{nil, text[:100], text} {
		require.NoError(t, os.WriteFile(damaged, part, 0o600))
		require.ErrorIs(t, restore(t.Context(), restored, damaged), backup.ErrDamaged)
		left, err := os.ReadDir(restored)
		require.NoError(t, err)
		require.Empty(t, left)
	}
	require.NoError(t, restore(t.Context(), restored, saved))
	require.NoError(t, serve(t.Context(), restored, func(_ storage.Backend, notes *client.Objects[Note]) error {
		_, err := notes.Get(t.Context(), "n7")
		return err
	}))
	require.ErrorIs(t, restore(t.Context(), restored, saved), storage.ErrNotEmpty)
}
