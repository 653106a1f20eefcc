// Package authzwebhook decides by asking a remote server with a
// SubjectAccessReview.
package authzwebhook

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/internal/cache"
	"orch.io/controlplane/internal/webhookclient"
)

// Bounds of the cache and of the calls.
const (
	maxCached = 8192
	maxKey    = 10_000 // bytes of a question that is cached
	firstWait = 100 * time.Millisecond
)

// Config says whom to ask and for how long an answer is good.
type Config struct {
	// Remote is the server to ask. Required.
	Remote *kubeconfig.Remote
	// Version of SubjectAccessReview: v1 or v1beta1; empty is v1.
	Version string
	// KeepAllowed is for how long an allowed answer is kept: zero is five
	// minutes, less than zero keeps none.
	KeepAllowed time.Duration
	// KeepDenied is the same for any other answer: zero is 30 seconds. Failures
	// of the call are never kept.
	KeepDenied time.Duration
	// OnFailure decides if the remote server does not answer: NoOpinion, the
	// zero value, or Deny.
	OnFailure auth.Decision
	// Timeout is for one call; zero is ten seconds. A call that failed is tried
	// again, three times in all.
	Timeout time.Duration

	Names names.Profile
	Now   func() time.Time // nil: time.Now
}

// Authorizer asks a remote server.
type Authorizer struct {
	config Config
	remote *webhookclient.Reviewer
	cached *cache.Cache[[32]byte, status]
}

// New checks c.
func New(c Config) (*Authorizer, error) {
	const kind = "SubjectAccessReview"
	var err error
	if c.Version, err = webhookclient.Version(c.Version, kind); err != nil {
		return nil, fmt.Errorf("accesswebhook: %w", err)
	}
	if c.OnFailure == auth.Allow {
		return nil, errors.New("accesswebhook: a failure cannot allow")
	}
	if c.KeepAllowed == 0 {
		c.KeepAllowed = 5 * time.Minute
	}
	if c.KeepDenied == 0 {
		c.KeepDenied = 30 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	r, err := webhookclient.NewReviewer(c.Remote, c.Names.Group(names.GroupAuthorization), c.Version, kind, c.Timeout)
	if err != nil {
		return nil, fmt.Errorf("accesswebhook: %w", err)
	}
	return &Authorizer{config: c, remote: r, cached: cache.New[[32]byte, status](maxCached, c.Now)}, nil
}

// Close closes the connections.
func (a *Authorizer) Close() { a.remote.Close() }

type spec struct {
	Resource    *resource           `json:"resourceAttributes,omitempty"`
	NonResource *path               `json:"nonResourceAttributes,omitempty"`
	User        string              `json:"user,omitempty"`
	Groups      []string            `json:"groups,omitempty"` // of v1
	Group       []string            `json:"group,omitempty"`  // of v1beta1
	Extra       map[string][]string `json:"extra,omitempty"`
	UID         string              `json:"uid,omitempty"`
}

type resource struct {
	Namespace   string `json:"namespace,omitempty"`
	Verb        string `json:"verb,omitempty"`
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"`

	Fields *selector `json:"fieldSelector,omitempty"`
	Labels *selector `json:"labelSelector,omitempty"`
}

// selector is what narrows an action on several objects. What cannot be read of it is left
// out: who may do more, may do that, too.
type selector struct {
	Requirements []meta.SelectorExpression `json:"requirements"`
}

// fields returns a field selector; nil: there is none.
func fields(text string) *selector {
	s, err := meta.ParseFieldSelector(text)
	if err != nil || s.Empty() {
		return nil
	}
	out := &selector{}
	for _, r := range s.Requirements() {
		operator := "In"
		if r.Not {
			operator = "NotIn"
		}
		out.Requirements = append(out.Requirements, meta.SelectorExpression{Key: r.Field, Operator: operator, Values: []string{r.Value}})
	}
	return out
}

// labels returns a label selector; nil: there is none.
func labels(text string) *selector {
	s, err := meta.ParseLabelSelector(text)
	if list := s.Expressions(); err == nil && len(list) > 0 {
		return &selector{list}
	}
	return nil
}

type path struct {
	Path string `json:"path,omitempty"`
	Verb string `json:"verb,omitempty"`
}

type status struct {
	Allowed bool   `json:"allowed"`
	Denied  bool   `json:"denied,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Fault   string `json:"evaluationError,omitempty"`
}

// Authorize implements auth.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, x auth.Action) (auth.Decision, string, error) {
	body, err := a.remote.Body(a.spec(&x), status{})
	if err != nil {
		return a.config.OnFailure, "", fmt.Errorf("accesswebhook: %w", err)
	}
	key := sha256.Sum256(body)
	if s, ok := a.cached.Get(key); ok {
		return s.decision()
	}
	s, err := a.ask(ctx, body)
	if err != nil {
		return a.config.OnFailure, "", fmt.Errorf("accesswebhook: %w", err)
	}
	keep := a.config.KeepDenied
	if s.Allowed && !s.Denied {
		keep = a.config.KeepAllowed
	}
	if len(body) <= maxKey {
		a.cached.Put(key, s, keep)
	}
	return s.decision()
}

// RulesFor cannot tell what the remote server allows.
func (a *Authorizer) RulesFor(context.Context, *auth.User, string) auth.Rules {
	return auth.Rules{Incomplete: true, Fault: "webhook authorizer does not support user rule resolution"}
}

func (a *Authorizer) spec(x *auth.Action) spec {
	var s spec
	if u := x.User; u != nil {
		s.User, s.UID, s.Extra = u.Name, u.UID, u.Extra
		if a.config.Version == "v1" {
			s.Groups = u.Groups
		} else {
			s.Group = u.Groups
		}
	}
	if x.Resource == "" {
		s.NonResource = &path{Path: x.Path, Verb: x.Verb}
		return s
	}
	s.Resource = &resource{Namespace: x.Namespace, Verb: x.Verb, Group: x.Group, Version: x.Version,
		Resource: x.Resource, Subresource: x.Subresource, Name: x.Name,
		Fields: fields(x.Fields), Labels: labels(x.Labels)}
	return s
}

// ask posts a review, again if there was no answer.
func (a *Authorizer) ask(ctx context.Context, body []byte) (s status, err error) {
	err = webhookclient.Persist(ctx, firstWait, func() (err error) {
		s, err = a.once(ctx, body)
		return err
	})
	return s, err
}

func (a *Authorizer) once(ctx context.Context, body []byte) (status, error) {
	var s status
	if err := a.remote.Ask(ctx, body, &s); err != nil {
		return status{}, err
	}
	if s.Allowed && s.Denied {
		return status{}, errors.New("the answer both allows and denies")
	}
	s.Reason, s.Fault = webhookclient.Text(s.Reason), webhookclient.Text(s.Fault)
	return s, nil
}

func (s status) decision() (auth.Decision, string, error) {
	var err error
	if s.Fault != "" {
		err = errors.New(s.Fault)
	}
	switch {
	case s.Denied:
		return auth.Deny, s.Reason, err
	case s.Allowed:
		return auth.Allow, s.Reason, nil
	}
	return auth.NoOpinion, s.Reason, err
}
