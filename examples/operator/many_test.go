package operator

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"orch.io/controlplane/server/servertest"
)

var many = flag.Int("many", 8, "how many tests TestSideBySide has; -parallel says how many of them run at a time")

// TestSideBySide has tests that run at the same time, each with a server, definitions,
// webhooks and a manager of its own. The log tells what they took:
//
//	go test -run TestSideBySide -v -many 200 -parallel 200
func TestSideBySide(t *testing.T) {
	begun := time.Now()
	scheme := k8sruntime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	AddToScheme(scheme)
	t.Run("all", func(t *testing.T) {
		for i := range *many {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				s := servertest.New(t)
				s.InstallCRDs(os.DirFS("config/crd"))
				s.InstallWebhooks(os.DirFS("config/webhook"), Webhooks(scheme))
				c, fleet := startManager(t, s), newFleet("armada", 0)
				require.NoError(t, c.Create(t.Context(), fleet))
				require.EqualValues(t, 1, fleet.Spec.Ships, "the webhook was asked")
				complete(t, t.Context(), c, fleet)
			})
		}
	})
	t.Logf("%d tests took %v, with %s of memory at most", *many, time.Since(begun).Round(time.Millisecond), peak())
}

// peak is the most memory that the process had, where the system tells it.
func peak() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "an unknown amount on " + runtime.GOOS
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(size)
		}
	}
	return "an unknown amount"
}
