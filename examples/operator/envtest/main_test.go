// Package suite is the test suite of an operator with envtest. The directory moved has the same suite
// with a server in the process of the test.
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
