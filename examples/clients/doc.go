// Package clients proves that the newest client-go works against a server
// without a change: typed and dynamic clients, informers, discovery, protobuf,
// server-side apply, leader election, events, and a controller of Deployments and
// ReplicaSets on informers.
//
// Every test gets a server of its own in the test's process. Read them as
// examples of how to point a client at one: over [rest.Config.Transport] without
// a socket, or over TLS.
//
// [rest.Config.Transport]: https://pkg.go.dev/k8s.io/client-go/rest#Config
package clients
