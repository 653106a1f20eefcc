package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the program with a directory until end is called.
func start(t *testing.T, dir string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, dir, "127.0.0.1:0", out)
		out.Close()
		ended <- err
	}()
	says, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		cancel()
		require.NoError(t, <-ended)
	}
	go io.Copy(io.Discard, in) // ends with the program
	require.Contains(t, says, "serving on https://127.0.0.1:")
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// TestTypedClient: any program with the kubeconfig can use the server, and the objects survive a
// restart.
func TestTypedClient(t *testing.T) {
	dir := t.TempDir()
	soup := &Recipe{ObjectMeta: meta.ObjectMeta{Name: "soup"}}
	soup.Spec.Ingredients = []string{"leek", "potato"}
	for i := range 2 {
		end := start(t, dir)
		recipes, hangUp := connect[Recipe](t, dir, kinds()[0])
		recipes = recipes.In("default")
		if i == 0 {
			_, err := recipes.Create(t.Context(), soup)
			require.NoError(t, err)
		}
		kept, err := recipes.Get(t.Context(), "soup")
		require.NoError(t, err)
		require.Equal(t, soup.Spec.Ingredients, kept.Spec.Ingredients)
		require.Equal(t, 30, kept.Spec.Minutes)
		_, err = recipes.Modify(t.Context(), "soup", func(r *Recipe) error { r.Spec.Ingredients[0] = "Leek"; return nil })
		require.EqualError(t, err, `Recipe.kitchen.example.com "soup" is invalid: spec.ingredients[0]: Invalid value: "Leek": must be in lower case`)
		hangUp()
		end()
	}
}

func connect[T any](t *testing.T, dir string, kind *registry.Kind) (objects *client.Objects[T], hangUp func()) {
	t.Helper()
	config, err := kubeconfig.Load(filepath.Join(dir, "admin.kubeconfig"))
	require.NoError(t, err)
	remote, err := config.Current()
	require.NoError(t, err)
	transport := remote.Transport()
	conn := client.Conn{URL: remote.URL.String(), Transport: transport, Names: names.Kubernetes}
	return client.Of[T](conn, kind), (&http.Client{Transport: transport}).CloseIdleConnections
}

// TestKubectl uses the kinds with kubectl.
func TestKubectl(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed")
	}
	dir := t.TempDir()
	defer start(t, dir)()
	kubectl := func(input string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, "kubectl", args...)
		c.Env = []string{"HOME=" + dir, "KUBECONFIG=" + filepath.Join(dir, "admin.kubeconfig"), "PATH=" + os.Getenv("PATH")}
		c.Stdin = strings.NewReader(input)
		out, _ := c.CombinedOutput() // the output contains the error
		require.NoError(t, ctx.Err())
		return string(out)
	}
	const head = "apiVersion: kitchen.example.com/v1\n"
	cake := head + "kind: Recipe\nmetadata: {name: cake}\nspec: {ingredients: [flour, %s]}\n"
	for _, step := range []struct {
		input string
		args  string
		says  string
	}{
		{head + "kind: Allergen\nmetadata: {name: nuts}\nnames: [hazelnut, peanut]\n", "apply -f -", "allergen.kitchen.example.com/nuts created"},
		{fmt.Sprintf(cake, "peanut"), "apply -f -", `recipes.kitchen.example.com "cake" is forbidden: peanut is an allergen (nuts)`},
		{fmt.Sprintf(cake, "egg"), "apply -f -", "recipe.kitchen.example.com/cake created"},
		{fmt.Sprintf(cake, "milk"), "apply -f -", "recipe.kitchen.example.com/cake configured"},
		{"", `patch recipe cake --subresource=status --type=merge -p {"status":{"cooked":2}}`, "recipe.kitchen.example.com/cake patched"},
		{"", "get rcp --no-headers", "cake   30    2     "},
		{"", "explain recipe.spec", "the ingredients, in lower case"},
		{"", "auth can-i delete recipes --as=jane", "no"},
	} {
		require.Contains(t, kubectl(step.input, strings.Fields(step.args)...), step.says, step.args)
	}
}
