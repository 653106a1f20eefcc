// Package suite is an operator's suite as it is with envtest. Beside it, in moved, is
// the same with a server in the test's process.
package suite

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Println("skipped: KUBEBUILDER_ASSETS does not say where the binaries are that envtest needs")
		return
	}
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
