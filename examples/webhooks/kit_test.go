package webhooks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"orch.io/controlplane/server/servertest"
)

// source returns the directory with the files of a module.
func source(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// build builds the program of a package. With an empty build cache, that takes minutes.
func build(t *testing.T, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, pkg).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// documents returns the objects in a file.
func documents(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return parse(t, data)
}

func parse(t *testing.T, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		if len(o.Object) > 0 {
			list = append(list, o)
		}
	}
}

// warnings collects the warnings of the server.
type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

// connect creates a client with a token, which impersonates another user if as names one.
func connect(t *testing.T, s *servertest.Server, scheme *runtime.Scheme, token string, as rest.ImpersonationConfig, warned *warnings) client.Client {
	t.Helper()
	config := &rest.Config{Host: s.Host(), Transport: s.Transport(), BearerToken: token, QPS: -1, Impersonate: as, WarningHandler: warned}
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c
}

func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
