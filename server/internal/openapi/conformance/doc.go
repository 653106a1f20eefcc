// Package conformance reads the OpenAPI documents with the libraries of the
// field's clients: they must find in them what they look for. It is a module of
// its own, so that the product does not depend on those libraries.
package conformance
