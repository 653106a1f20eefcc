// Package apitest is the kit of the tests of a server's parts: a client with assertions,
// watches, objects, stores with faults and servers with special configurations. Programs
// test with package servertest instead.
package apitest
