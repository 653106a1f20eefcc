// Command apiserver is a complete API server over a directory: what a program
// that imports the library can do in a few screens, and a server in its own
// right.
//
//	go run ./examples/apiserver
//
// When it is ready it prints "serving on https://HOST:PORT" and two commands to
// try. SIGTERM ends it: /readyz fails, requests in flight finish, watches end.
//
//	go run ./examples/apiserver inspect --data-dir DIR [--salvage NEW]
//
// checks the directory of a server that does not run, and salvages what can be
// read into a new one. It exits with 1 if anything is wrong.
//
//	go run ./examples/apiserver backup --kubeconfig DIR/admin.kubeconfig FILE
//	go run ./examples/apiserver restore --data-dir NEW FILE...
//
// save the store of a running server and make a directory of that; there are also verify, for
// files, and copy, from one directory to another. docs/backups.md has more.
//
// Its screens are in examples/internal/apiserver, which examples/envtest shares.
package main

import "orch.io/controlplane/examples/internal/apiserver"

func main() { apiserver.Command{}.Main() }
