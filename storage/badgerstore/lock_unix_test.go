//go:build linux || darwin

package badgerstore

import (
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLockDirWhileProcessesStart checks that a directory can be locked again right after it was unlocked
// while child processes are being started. Until such a process executes its program, it has copies of the
// open files.
func TestLockDirWhileProcessesStart(t *testing.T) {
	dir := t.TempDir()
	program, err := exec.LookPath("true")
	require.NoError(t, err)
	var starts sync.WaitGroup
	defer starts.Wait()
	done := make(chan struct{})
	defer close(done)
	for range 4 {
		starts.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.Command(program).Run() // only the start matters
				}
			}
		})
	}
	for range 20_000 {
		unlock, err := lockDir(dir)
		require.NoError(t, err)
		require.NoError(t, unlock())
	}
}
