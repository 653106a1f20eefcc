// Command etcd is the etcd that the tests of etcdstore run. It is a module of its own so
// that programs that use etcdstore have no server in their module graph.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
