package review

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
)

var Token, SelfSubject = token, selfSubject

type Reviewer struct{ reviewer }

func New(a auth.Authorizer) Reviewer { return Reviewer{reviewer{a}} }

func (r Reviewer) Subject(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	return r.subject(ctx, call)
}

func (r Reviewer) SelfSubject(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	return r.selfSubject(ctx, call)
}

func (r Reviewer) SelfSubjectRules(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	return r.selfSubjectRules(ctx, call)
}
