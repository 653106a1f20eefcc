package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	var out bytes.Buffer
	fmt.Fprintln(&out, run(t.Context(), t.TempDir(), &out))
	require.Equal(t, `refused while the server runs: true
the client missed: MODIFIED buy milk and bread
<nil>
`, out.String())
}

// TestDamagedBackups are refused, and what is there stays.
func TestDamagedBackups(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	data, saved := filepath.Join(dir, "data"), filepath.Join(dir, "saved")
	require.NoError(t, serve(ctx, data, func(notes *client.Objects[Note]) error {
		for i := range 100 {
			if _, err := notes.Create(ctx, &Note{ObjectMeta: meta.ObjectMeta{Name: fmt.Sprint("n", i)}, Text: "x"}); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, backup(ctx, data, saved))
	files, err := filepath.Glob(filepath.Join(saved, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	text[len(text)/8] ^= 0xff
	require.NoError(t, os.WriteFile(files[0], text, 0o600))
	require.ErrorContains(t, restore(ctx, saved, data), "is damaged")
	require.NoError(t, serve(ctx, data, func(notes *client.Objects[Note]) error {
		_, err := notes.Get(ctx, "n7")
		return err
	}))
}
