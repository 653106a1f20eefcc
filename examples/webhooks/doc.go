// Package webhooks tests unmodified webhook servers of other projects, in the releases of go.mod, with
// a server in the process of the test: cert-manager's webhook server, in process and over TLS, and the
// complete program of Gatekeeper, a policy engine that creates kinds for its policies, behind the
// Service of its own manifests.
package webhooks
