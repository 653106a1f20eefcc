// Package operator is a small operator written with controller-runtime, and its
// tests against a server in the test's process, where envtest would stand
// otherwise.
//
// A Fleet asks for a number of Ships. The reconciler keeps the ships with
// server-side apply, as their owner, tells how many there are in the fleet's
// status, and keeps the fleet until its finalizer has seen the ships gone. Fleet
// is a kind from a Go struct; Ship comes from a definition in crds. Webhooks of
// controller-runtime fill in and check them, by the configurations in config/webhook.
package operator
