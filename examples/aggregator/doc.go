// Package aggregator is a module of its own for a test: a server of this library with
// k8s.io/sample-apiserver behind it, an extension API server that this project did not
// write, with the manifests that come with it.
package aggregator
