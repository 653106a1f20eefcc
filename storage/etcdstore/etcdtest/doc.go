// Package etcdtest starts etcd for tests: processes of a real server, either a single member or a
// cluster of three. Members can be killed, paused, and cut off from each other and from their clients;
// they can join and leave, and their clocks can be set. All processes end with the test.
//
// The go command builds the server once from a module of its own, so that programs that import this
// package have no server in their module graph. The build needs the source of this module: a checkout,
// or a replace directive that leads to it.
package etcdtest
