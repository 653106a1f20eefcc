// Package admission is the stage between authorization and storage: plugins
// that change or refuse what is about to be written. Sub-packages implement
// plugins.
package admission

import (
	"context"
	"errors"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/meta"
)

// Operation is the kind of a write.
type Operation string

// The operations. Connect is a request to a sub-resource that acts.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Request is one write under admission. A Mutate function may change Object in
// place; nothing else may be changed.
type Request struct {
	Operation   Operation
	Kind        meta.GroupVersionKind // of Object
	Resource    meta.Resource
	Subresource string
	Namespace   string
	Name        string // may be empty on create with generateName
	User        *auth.User
	Object      *meta.Object // nil on delete
	Old         *meta.Object // nil on create and connect; must not be changed
	Options     *meta.Object // CreateOptions, UpdateOptions, PatchOptions or DeleteOptions
	DryRun      bool

	// Warn sends a warning to the caller.
	Warn func(text string)
	// Annotate records a key and value in the audit event.
	Annotate func(key, value string)
}

// Plugin is one step of admission. A nil Mutate or Validate skips that phase;
// a nil Match matches everything. An error that is a *meta.Status goes to the
// caller as it is, any other becomes 403 Forbidden.
type Plugin struct {
	Name     string
	Match    func(r meta.Resource, subresource string) bool
	Mutate   func(ctx context.Context, r *Request) error
	Validate func(ctx context.Context, r *Request) error
}

// Chain is an ordered list of plugins.
type Chain []Plugin

// Mutate runs the mutating phase of every plugin that matches, in order. The
// first error ends it; it is a *meta.Status.
func (c Chain) Mutate(ctx context.Context, r *Request) error {
	for _, p := range c {
		if p.Mutate != nil && p.matches(r) {
			if err := p.Mutate(ctx, r); err != nil {
				return denied(r, err)
			}
		}
	}
	return nil
}

// Validate runs the validating phase of every plugin that matches, in order.
// The first error ends it; it is a *meta.Status.
func (c Chain) Validate(ctx context.Context, r *Request) error {
	for _, p := range c {
		if p.Validate != nil && p.matches(r) {
			if err := p.Validate(ctx, r); err != nil {
				return denied(r, err)
			}
		}
	}
	return nil
}

func (p *Plugin) matches(r *Request) bool {
	return p.Match == nil || p.Match(r.Resource, r.Subresource)
}

func denied(r *Request, err error) error {
	var st *meta.Status
	if errors.As(err, &st) {
		return st
	}
	return meta.Forbidden(r.Resource.GroupResource(), r.Name, err.Error())
}
