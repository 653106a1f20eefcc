// Command envtest stands in for the binaries that envtest of controller-runtime starts, so
// that the tests of an operator run unmodified:
//
//	export KUBEBUILDER_ASSETS=$(go run orch.io/controlplane/examples/envtest@latest)
//	go test ./...
//
// It copies itself as kube-apiserver and etcd into a directory of the user's cache, with a
// link to the kubectl of the PATH if there is one, and prints the directory. Each build has
// a directory of its own, so that versions do not get into each other's way.
//
// As kube-apiserver it is examples/apiserver, in memory and with the controllers that a bare
// kube-apiserver has. It takes the flags of the real one: what has no meaning here is logged
// once, what the real one does not know is an error. So are those that would change who may
// do what: --authentication-config, --authorization-config, --admission-control and
// --service-account-signing-endpoint. What the tests of a project may change
// by testEnv.ControlPlane.GetAPIServer().Configure():
//
//	Set("controllers", "*")           // namespaces are emptied, garbage is collected, ...
//	Append("controllers", "envtest", "garbagecollector") // only that
//	Set("data-dir", dir)              // what is stored is there again after Stop and Start
//
// An object of more than 1.5 MiB is refused as etcd refuses it; Set("max-object-bytes", "0")
// turns that off. In memory, an object is removed 10 ms after its last write at the earliest, as
// if an etcd lay between the two: controllers see the deletionTimestamp of a Pod before the Pod
// is gone.
//
// As etcd it says that it is well and stores nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orch.io/controlplane/examples/internal/apiserver"
)

func main() {
	switch strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") {
	case "kube-apiserver":
		apiserver.Command{
			Name: "kube-apiserver", Ignored: ignored(), IgnoredPlugins: absentPlugins(), Quiet: true,
			End:    5 * time.Second, // envtest waits for 20
			Memory: newPaced,
			Defaults: map[string]string{
				"data-dir": "", "controllers": "envtest", "authorization-mode": "AlwaysAllow",
				"max-object-bytes": "1572864", // etcd's --max-request-bytes
			},
		}.Main()
	case "etcd":
		fail("etcd", runEtcd(os.Args[1:]))
	default:
		fail("envtest", printAssets(os.Args[1:]))
	}
}

// fail ends the process if there is an error.
func fail(name string, err error) {
	if err != nil && err != flag.ErrHelp {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// printAssets puts the binaries where KUBEBUILDER_ASSETS can name them.
func printAssets(args []string) error {
	set := flag.NewFlagSet("envtest", flag.ContinueOnError)
	set.Usage = func() {
		fmt.Fprint(set.Output(), "envtest [--dir DIR] prints a directory with kube-apiserver and etcd, for KUBEBUILDER_ASSETS.\n\nFlags:\n")
		set.PrintDefaults()
	}
	dir := set.String("dir", "", "directory that gets the directory (default: of the user's cache)")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if *dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("there is no cache for the binaries, name a directory with --dir: %w", err)
		}
		*dir = filepath.Join(cache, "controlplane-envtest")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	assets, err := install(*dir, self)
	if err != nil {
		return err
	}
	fmt.Println(assets)
	return nil
}
