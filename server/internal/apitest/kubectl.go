package apitest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Kubectl runs the kubectl of this machine against a server.
type Kubectl struct {
	T    *testing.T
	Path string
	Dir  string
	URL  string
}

// Run runs a command line of words separated by spaces. It returns the combined output
// and whether the command succeeded.
func (k *Kubectl) Run(stdin, line string, env ...string) (string, bool) {
	k.T.Helper()
	ctx, cancel := context.WithTimeout(k.T.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.Path, append([]string{"--server=" + k.URL}, strings.Fields(line)...)...)
	cmd.Env = append([]string{"HOME=" + k.Dir, "KUBECONFIG=" + filepath.Join(k.Dir, "none"), "PATH=" + os.Getenv("PATH")}, env...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Dir = k.Dir
	out, err := cmd.CombinedOutput()
	require.NoError(k.T, ctx.Err())
	return string(out), err == nil
}

// OK runs a command that must succeed, with an output that contains all of want.
func (k *Kubectl) OK(stdin, line string, want ...string) string {
	k.T.Helper()
	out, ok := k.Run(stdin, line)
	assert.True(k.T, ok, "kubectl %s: %s", line, out)
	for _, w := range want {
		assert.Contains(k.T, out, w, "kubectl %s", line)
	}
	return out
}

// Fails runs a command that must fail, with an output that contains all of want.
func (k *Kubectl) Fails(stdin, line string, want ...string) {
	k.T.Helper()
	out, ok := k.Run(stdin, line)
	assert.False(k.T, ok, "kubectl %s: %s", line, out)
	for _, w := range want {
		assert.Contains(k.T, out, w, "kubectl %s", line)
	}
}
