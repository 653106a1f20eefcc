// Command cluster is examples/apiserver with etcd: several servers share one store.
//
//	go run . --storage etcd --etcd-servers https://10.0.0.1:2379,https://10.0.0.2:2379,https://10.0.0.3:2379 --bind-address 0.0.0.0
//
// Every server accepts every request, so any balancer of TCP connections that checks /readyz can be
// used. SIGTERM shuts a server down: /readyz fails, and for the time of --shutdown-delay-duration
// requests are still accepted; then watches end and running requests finish. Clients continue with
// another server.
//
// A store in a directory can be moved into etcd, and back, with
//
//	go run . copy --data-dir DIR --to-storage etcd --to-etcd-servers https://10.0.0.1:2379
//
// or while its server runs, see docs/backups.md.
//
// The keys that identify the servers to clients must be the same for all servers: --data-dir is a
// directory with authority.pem and service-account.pem. Servers on one machine can share the directory,
// and the first server creates the files; copy them to other machines before you start a server there.
// docs/several-servers.md describes how to use your own certificates, and everything else.
package main

import "orch.io/controlplane/examples/internal/apiserver"

func main() {
	apiserver.Command{
		Name:    "cluster",
		Engines: map[string]apiserver.Engine{"etcd": etcd},
	}.Main()
}
