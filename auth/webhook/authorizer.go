package webhook

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
	"orch.io/controlplane/internal/wellknown"
)

// Bounds of the cache and of the calls.
const (
	maxCachedReviews = 8192
	maxKey           = 10_000 // bytes of the largest review with a cached answer
	firstWait        = 100 * time.Millisecond
)

// AuthorizerConfig configures an Authorizer.
type AuthorizerConfig struct {
	// Remote is the server that answers reviews. Required.
	Remote *kubeconfig.Remote
	// Version of SubjectAccessReview: v1 or v1beta1; empty is v1.
	Version string
	// KeepAllowed is how long an allowing answer is cached: zero is five
	// minutes, a negative value disables caching.
	KeepAllowed time.Duration
	// KeepDenied is how long any other answer is cached: zero is 30 seconds, a
	// negative value disables caching. Failed calls are not cached.
	KeepDenied time.Duration
	// OnFailure is the decision if the call fails: NoOpinion, the
	// zero value, or Deny.
	OnFailure auth.Decision
	// Timeout limits the duration of a call; zero is ten seconds. A failed call is retried; there are
	// three calls at most.
	Timeout time.Duration

	Names names.Profile
	Now   func() time.Time // nil: time.Now
}

// Authorizer implements auth.Authorizer by a remote server. It is safe for concurrent use.
type Authorizer struct {
	config AuthorizerConfig
	remote *webhookclient.Reviewer
	cached *cache.Cache[[32]byte, accessReviewStatus]
}

// NewAuthorizer returns an Authorizer, or an error if c is invalid. Close the Authorizer after use.
func NewAuthorizer(c AuthorizerConfig) (*Authorizer, error) {
	const kind = "SubjectAccessReview"
	var err error
	if c.Version, err = webhookclient.Version(c.Version, kind); err != nil {
		return nil, fmt.Errorf("authorization webhook: %w", err)
	}
	if c.OnFailure == auth.Allow {
		return nil, errors.New("authorization webhook: OnFailure must be NoOpinion or Deny")
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
	r, err := webhookclient.NewReviewer(c.Remote, c.Names.Group(wellknown.GroupAuthorization), c.Version, kind, c.Timeout)
	if err != nil {
		return nil, fmt.Errorf("authorization webhook: %w", err)
	}
	return &Authorizer{config: c, remote: r, cached: cache.New[[32]byte, accessReviewStatus](maxCachedReviews, c.Now)}, nil
}

// Close closes the connections.
func (a *Authorizer) Close() { a.remote.Close() }

type accessReviewSpec struct {
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

// selector restricts a review to the objects that the request selects. A selector that does not
// parse is omitted: a user that is allowed without the restriction is allowed with it.
type selector struct {
	Requirements []meta.LabelSelectorRequirement `json:"requirements"`
}

// fields returns the requirements of a field selector, or nil if it is empty or invalid.
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
		out.Requirements = append(out.Requirements, meta.LabelSelectorRequirement{Key: r.Field, Operator: operator, Values: []string{r.Value}})
	}
	return out
}

// labels returns the requirements of a label selector, or nil if it is empty or invalid.
func labels(text string) *selector {
	s, err := meta.ParseLabelSelector(text)
	if list := s.Requirements(); err == nil && len(list) > 0 {
		return &selector{list}
	}
	return nil
}

type path struct {
	Path string `json:"path,omitempty"`
	Verb string `json:"verb,omitempty"`
}

type accessReviewStatus struct {
	Allowed bool   `json:"allowed"`
	Denied  bool   `json:"denied,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Fault   string `json:"evaluationError,omitempty"`
}

// Authorize implements auth.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, x auth.Attributes) (auth.Decision, string, error) {
	body, err := a.remote.Body(a.spec(&x), accessReviewStatus{})
	if err != nil {
		return a.config.OnFailure, "", fmt.Errorf("authorization webhook: %w", err)
	}
	key := sha256.Sum256(body)
	if s, ok := a.cached.Get(key); ok {
		return s.decision()
	}
	s, err := a.ask(ctx, body)
	if err != nil {
		return a.config.OnFailure, "", fmt.Errorf("authorization webhook: %w", err)
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

// RulesFor implements auth.RuleLister. The result is empty and incomplete, because the remote
// server cannot list permissions.
func (a *Authorizer) RulesFor(context.Context, *auth.User, string) auth.Rules {
	return auth.Rules{Incomplete: true, Fault: "webhook authorizer does not support user rule resolution"}
}

func (a *Authorizer) spec(x *auth.Attributes) accessReviewSpec {
	var s accessReviewSpec
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

// ask sends a review and retries failed calls.
func (a *Authorizer) ask(ctx context.Context, body []byte) (s accessReviewStatus, err error) {
	err = webhookclient.Retry(ctx, firstWait, func() (err error) {
		s, err = a.once(ctx, body)
		return err
	})
	return s, err
}

func (a *Authorizer) once(ctx context.Context, body []byte) (accessReviewStatus, error) {
	var s accessReviewStatus
	if err := a.remote.Ask(ctx, body, &s); err != nil {
		return accessReviewStatus{}, err
	}
	if s.Allowed && s.Denied {
		return accessReviewStatus{}, errors.New("invalid response: allowed and denied are both true")
	}
	s.Reason, s.Fault = webhookclient.ClipText(s.Reason), webhookclient.ClipText(s.Fault)
	return s, nil
}

func (s accessReviewStatus) decision() (auth.Decision, string, error) {
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
