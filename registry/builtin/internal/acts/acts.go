// Package acts holds code that the acting subresources, such as binding and eviction, share.
package acts

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Agrees returns an error unless the body of a call names the object of the request path. A body
// without a namespace agrees with every namespace.
func Agrees(c *registry.Call) error {
	if ns := c.Object.Namespace(); ns != "" && ns != c.Key.Namespace {
		return meta.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if c.Object.Name() != c.Key.Name {
		return meta.BadRequest("name in URL does not match name in %s object", c.Object.Kind())
	}
	return nil
}
