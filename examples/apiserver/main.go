// Command apiserver is a complete API server that keeps its data in a directory. It is an example of a
// program that imports the library, and can be used as it is.
//
//	go run ./examples/apiserver
//
// When the server is ready, it prints "serving on https://HOST:PORT" and two example commands. SIGTERM
// stops it: /readyz fails, running requests finish, and watches end.
//
//	go run ./examples/apiserver inspect --data-dir DIR [--salvage NEW]
//
// checks the data directory of a server that is not running, and can salvage the readable data into a
// new directory. It exits with 1 if there is damage.
//
//	go run ./examples/apiserver backup --kubeconfig DIR/admin.kubeconfig FILE
//	go run ./examples/apiserver restore --data-dir NEW FILE...
//
// save the store of a running server, and restore it into a new directory. The commands verify and copy
// check backups and copy a store to another directory. See docs/backups.md.
//
// The code is in examples/internal/apiserver, which examples/envtest shares.
package main

import "orch.io/controlplane/examples/internal/apiserver"

func main() { apiserver.Command{}.Main() }
