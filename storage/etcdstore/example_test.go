package etcdstore_test

import (
	"context"
	"fmt"
	"time"

	"orch.io/controlplane/storage/etcdstore"
)

// Open fails if no member of the cluster answers in time.
func ExampleOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := etcdstore.Open(ctx, etcdstore.Options{Endpoints: []string{"127.0.0.1:1"}, Prefix: "/example"})
	fmt.Println(err)
	// Output: open storage in etcd at 127.0.0.1:1: context deadline exceeded
}
