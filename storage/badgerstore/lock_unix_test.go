//go:build linux || darwin

package badgerstore

import (
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHoldBesideProcessesThatStart: who gives a directory back can have it again, whatever
// processes the program starts meanwhile; until they run, they have its open files.
func TestHoldBesideProcessesThatStart(t *testing.T) {
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
					_ = exec.Command(program).Run() // what matters is that it starts
				}
			}
		})
	}
	for range 20_000 {
		unlock, err := hold(dir)
		require.NoError(t, err)
		require.NoError(t, unlock())
	}
}
