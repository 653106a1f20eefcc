// Package acts holds what acting sub-resources have in common.
package acts

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Agrees checks that the body of a call names the object that the path does: its name,
// and its namespace if it has one.
func Agrees(c *registry.Call) error {
	if ns := c.Object.Namespace(); ns != "" && ns != c.Key.Namespace {
		return meta.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if c.Object.Name() != c.Key.Name {
		return meta.BadRequest("name in URL does not match name in %s object", c.Object.Kind())
	}
	return nil
}
