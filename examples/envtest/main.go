// Command envtest replaces the binaries that envtest of controller-runtime starts, so that the tests of
// an operator run unmodified:
//
//	export KUBEBUILDER_ASSETS=$(go run orch.io/controlplane/examples/envtest@latest)
//	go test ./...
//
// It copies itself as kube-apiserver and etcd into a directory of the user's cache, with a link to the
// kubectl of the PATH if there is one, and prints the directory. Each build has a directory of its own,
// so that versions do not conflict.
//
// As kube-apiserver it is examples/apiserver, in memory and with the controllers that kube-apiserver
// itself contains. It accepts the flags of kube-apiserver: it logs flags that have no effect here once,
// and rejects flags that kube-apiserver does not have. It also rejects flags that would change access
// control: --authentication-config, --authorization-config, --admission-control and
// --service-account-signing-endpoint. Tests can change its settings with
// testEnv.ControlPlane.GetAPIServer().Configure():
//
//	Set("controllers", "*")           // also namespace deletion, garbage collection, ...
//	Append("controllers", "envtest", "garbagecollector") // only garbage collection
//	Set("data-dir", dir)              // the data survives Stop and Start
//
// Objects larger than 1.5 MiB are rejected, as by etcd; Set("max-object-bytes", "0") turns that off. In
// memory, an object is not removed earlier than 10 ms after its last write, as if an etcd lay between
// the two commits: controllers see the deletionTimestamp of a Pod before the Pod is gone.
//
// As etcd it answers health checks and stores nothing.
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
			Name: "kube-apiserver", Ignored: ignored(), IgnoredPlugins: missingPlugins(), Quiet: true,
			End:    5 * time.Second, // envtest waits 20 seconds
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
	dir := set.String("dir", "", "parent of the directory with the binaries (default: the user's cache)")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if *dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no cache directory for the binaries; use --dir: %w", err)
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
