package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth/audit"
)

// TestFullDisk fills a small file system: what is lost is counted, logged and
// told, what is kept is whole, and it goes on when there is room again.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("needs the right to mount a file system of its own: %v", err)
	}
	defer func() { assert.NoError(t, syscall.Unmount(dir, 0)) }()
	filler := filepath.Join(dir, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 64<<10), 0o600))
	path := filepath.Join(dir, "audit.log")
	file, err := audit.OpenFile(path, audit.FileOptions{})
	require.NoError(t, err)
	l := newLosing(t, "rules: [{level: Metadata}]", file)
	require.NoError(t, l.Check(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	l.until(func() bool { return l.Dropped() > 100 })
	assert.ErrorIs(t, l.Check(t.Context()), syscall.ENOSPC)

	for kept := -1; kept != l.made-int(l.Dropped()); runtime.Gosched() { // or what waits fills the disk again
		require.NoError(t, ctx.Err())
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		kept = bytes.Count(data, []byte("\n"))
	}
	require.NoError(t, os.Remove(filler))
	lost := l.Dropped()
	l.pass(2 * time.Minute)
	l.record()
	for l.Check(ctx) != nil {
		require.NoError(t, ctx.Err())
		runtime.Gosched()
	}
	for range 10 {
		l.record()
	}
	require.NoError(t, l.Close(t.Context()))
	assert.GreaterOrEqual(t, l.Dropped(), lost)
	assert.Contains(t, l.metrics(), fmt.Sprintf("apiserver_audit_event_total %d\n", l.made))
	assert.Contains(t, l.metrics(), fmt.Sprintf("apiserver_audit_error_total{plugin=\"log\"} %d\n", l.Dropped()))
	assert.Contains(t, l.metrics(), fmt.Sprintf("apiserver_audit_level_total{level=\"Metadata\"} %d\n", l.made))
	assert.LessOrEqual(t, strings.Count(l.text.String(), "audit events are lost"), 2, "once a minute")
	assert.Contains(t, l.text.String(), "no space left on device")
	assert.Contains(t, l.text.String(), "audit events reach the sink again")

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, l.made-int(l.Dropped()), bytes.Count(data, []byte("\n")), "all others are there")
	for line := range bytes.Lines(data) {
		assert.True(t, json.Valid(line), "%s", line)
	}
}

// TestFullDevice is the same where no file system can be made.
func TestFullDevice(t *testing.T) {
	file, err := audit.OpenFile("/dev/full", audit.FileOptions{})
	require.NoError(t, err)
	l := newLosing(t, "rules: [{level: Metadata}]", file)
	l.until(func() bool { return l.Dropped() > 0 })
	assert.ErrorIs(t, l.Check(t.Context()), syscall.ENOSPC)
	require.NoError(t, l.Close(t.Context()))
	assert.EqualValues(t, l.made, l.Dropped())
	assert.Equal(t, 1, strings.Count(l.text.String(), "audit events are lost"))
}
