package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/sqlstore"
)

func TestRun(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data.db")
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{File: file})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, run(t.Context(), []string{"-file", file}))
	require.Error(t, run(t.Context(), []string{"-file", file + "-wrong"}))
	require.NoFileExists(t, file+"-wrong")
}
