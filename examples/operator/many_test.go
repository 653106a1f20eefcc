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

var many = flag.Int("many", 8, "number of tests in TestSideBySide; -parallel sets how many run at a time")

// TestSideBySide runs tests in parallel, each with its own server, definitions, webhooks and manager.
// The log shows the time and memory:
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

// peak returns the peak memory of the process, if the system reports it.
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
