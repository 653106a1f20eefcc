// Package testbed runs the cluster program for tests: servers as processes that can be killed, paused
// and restarted, a balancer in front of them, and a load of clients and watches. The load records the
// history of all requests and watch events, and checks that it is a history of one consistent store.
//
// A test package calls Main in its TestMain. All processes end with the test.
package testbed
