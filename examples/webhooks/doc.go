// Package webhooks has the webhook servers of other projects, unmodified and at the
// releases in go.mod, serve a server in the test's process: cert-manager's, in the process
// and over TLS, and Gatekeeper's whole program, a policy engine that makes kinds of its
// policies, behind the service of its own manifests.
package webhooks
