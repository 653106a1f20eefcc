// Package conformance checks that the libraries of common clients can read the OpenAPI documents. It is
// a module of its own, so that the root module does not depend on these libraries.
package conformance
