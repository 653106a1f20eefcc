// Package etcdtest starts etcd for tests: processes of a real server, one or a cluster of
// three, whose members can be killed, paused, cut off from each other and from their clients,
// join and leave, and whose clocks can be set. All of them end with the test.
//
// The server is built by the go command from a module of its own, once, so that programs which
// import this package have no server in their module graph. It needs a checkout of the sources
// or a replace directive that leads to one.
package etcdtest
