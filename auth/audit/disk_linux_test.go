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

// TestFileSurvivesFullDisk fills a small file system. Losses are counted, logged
// and reported by Check, the file has only whole lines, and recording continues
// when there is space again.
func TestFileSurvivesFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("requires permission to mount a tmpfs: %v", err)
	}
	defer func() { assert.NoError(t, syscall.Unmount(dir, 0)) }()
	filler := filepath.Join(dir, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 64<<10), 0o600))
	path := filepath.Join(dir, "audit.log")
	file, err := audit.OpenFile(path, audit.FileOptions{})
	require.NoError(t, err)
	l := newLossyLog(t, "rules: [{level: Metadata}]", file)
	require.NoError(t, l.Check(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	l.recordUntil(func() bool { return l.Dropped() > 100 })
	assert.ErrorIs(t, l.Check(t.Context()), syscall.ENOSPC)

	for kept := -1; kept != l.made-int(l.Dropped()); runtime.Gosched() { // until the queue is empty, or its events would fill the disk again
		require.NoError(t, ctx.Err())
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		kept = bytes.Count(data, []byte("\n"))
	}
	require.NoError(t, os.Remove(filler))
	lost := l.Dropped()
	l.advance(2 * time.Minute)
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
	assert.LessOrEqual(t, strings.Count(l.text.String(), "audit events lost"), 2, "once a minute")
	assert.Contains(t, l.text.String(), "no space left on device")
	assert.Contains(t, l.text.String(), "audit sink recovered")

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, l.made-int(l.Dropped()), bytes.Count(data, []byte("\n")), "all other events are in the file")
	for line := range bytes.Lines(data) {
		assert.True(t, json.Valid(line), "%s", line)
	}
}

// TestFullDeviceLosesAllEvents is a smaller TestFileSurvivesFullDisk that needs no
// permission to mount.
func TestFullDeviceLosesAllEvents(t *testing.T) {
	file, err := audit.OpenFile("/dev/full", audit.FileOptions{})
	require.NoError(t, err)
	l := newLossyLog(t, "rules: [{level: Metadata}]", file)
	l.recordUntil(func() bool { return l.Dropped() > 0 })
	assert.ErrorIs(t, l.Check(t.Context()), syscall.ENOSPC)
	require.NoError(t, l.Close(t.Context()))
	assert.EqualValues(t, l.made, l.Dropped())
	assert.Equal(t, 1, strings.Count(l.text.String(), "audit events lost"))
}
