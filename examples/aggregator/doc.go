// Package aggregator is a module for one test: a server of this library in front of
// k8s.io/sample-apiserver, an extension API server of another project, with the manifests of that
// project.
package aggregator
