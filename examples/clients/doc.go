// Package clients shows that the newest client-go works unmodified with a server: typed and dynamic
// clients, informers, discovery, protobuf, server-side apply, leader election, events, and a controller
// of Deployments and ReplicaSets based on informers.
//
// Every test has a server of its own in the process of the test. The tests are examples of how to
// connect a client: with [rest.Config.Transport] without a socket, or over TLS.
//
// [rest.Config.Transport]: https://pkg.go.dev/k8s.io/client-go/rest#Config
package clients
