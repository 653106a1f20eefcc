// Command cluster is examples/apiserver over etcd: several servers, one store.
//
//	go run . --storage etcd --etcd-servers https://10.0.0.1:2379,https://10.0.0.2:2379,https://10.0.0.3:2379 --bind-address 0.0.0.0
//
// Every server takes every request, so any balancer of TCP connections will do that asks /readyz. SIGTERM ends a
// server in order: /readyz fails, for as long as --shutdown-delay-duration says requests are still
// taken, then watches end and requests under way finish. Clients go on with another server where
// they were.
//
// A store in a directory moves into etcd, and back, by
//
//	go run . copy --data-dir DIR --to-storage etcd --to-etcd-servers https://10.0.0.1:2379
//
// or while its server serves, see docs/backups.md.
//
// What identifies the servers to clients must be the same for all of them: --data-dir names a
// directory that holds authority.pem and service-account.pem. Servers of one machine may share
// it, and the first makes the files; to other machines they are copied before the start there.
// docs/several-servers.md says what to do about certificates of your own, and everything else.
package main

import "orch.io/controlplane/examples/internal/apiserver"

func main() {
	apiserver.Command{
		Name:    "cluster",
		Engines: map[string]apiserver.Engine{"etcd": etcd},
	}.Main()
}
