package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	fmt.Println(run(context.Background(), "admission.yaml", os.Stdout))
	// Output:
	// 5 apples for jane
	// refused: orders.example.com "apples" is forbidden: 6 is more than 5
	// <nil>
}

// TestInvalidConfigurationFails: the server does not start with an invalid configuration file.
func TestInvalidConfigurationFails(t *testing.T) {
	for configuration, fault := range map[string]string{
		"{most: 0}":   "most is 0, less than 1",
		"{most: few}": "most",
		"{least: 1}":  "least",
	} {
		path := filepath.Join(t.TempDir(), "admission.yaml")
		text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: OrderLimit\n  configuration: " + configuration + "\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.ErrorContains(t, run(t.Context(), path, t.Output()), fault, configuration)
	}
}
