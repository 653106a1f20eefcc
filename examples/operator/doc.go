// Package operator is a small operator written with controller-runtime. Its tests use a server in the
// process of the test instead of envtest.
//
// A Fleet requests a number of Ships. The reconciler creates the ships with server-side apply and owns
// them, writes their number to the status of the fleet, and keeps the fleet with a finalizer until its
// ships are gone. Fleet is defined by a Go struct, Ship by a definition in crds. Webhooks of
// controller-runtime set defaults and validate, as configured in config/webhook.
package operator
