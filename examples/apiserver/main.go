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
// Its screens are in examples/internal/apiserver, which examples/envtest shares.
package main

import "orch.io/controlplane/examples/internal/apiserver"

func main() { apiserver.Command{}.Main() }
