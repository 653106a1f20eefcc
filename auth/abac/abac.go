// Package abac authorizes requests by a policy file. Each line of the file is a JSON
// object of kind Policy in version v1beta1 of the group abac.authorization.
//
// A policy allows requests of its user or of the members of its group. No policy can
// deny a request. Empty lines and lines that begin with # are ignored.
package abac

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
)

// Bounds of a policy file.
const (
	maxLine  = 64 << 10
	maxLines = 100_000
)

const all = "*"

// policy is the spec of a line. "*" matches any value; at the end of NonResourcePath
// it matches any rest. An empty field matches only the empty value.
type policy struct {
	User            string `json:"user"`
	Group           string `json:"group"`
	Readonly        bool   `json:"readonly"` // get, list and watch only
	APIGroup        string `json:"apiGroup"`
	Resource        string `json:"resource"`
	Namespace       string `json:"namespace"`
	NonResourcePath string `json:"nonResourcePath"`
}

// Authorizer allows a request if a policy matches, and otherwise has no opinion. It is
// immutable, so its methods are safe for concurrent use.
type Authorizer struct{ policies []policy }

// Load reads a policy file; see Parse.
func Load(path string, p names.Profile) (*Authorizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("abac: %w", err)
	}
	defer f.Close()
	a, err := Parse(f, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Parse reads a policy file and returns an error for the first invalid line. An unknown
// field is an error, because a policy with a misspelt restriction would allow too
// much.
func Parse(r io.Reader, p names.Profile) (*Authorizer, error) {
	a := &Authorizer{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		rule, err := parseLine(line, p.Wire(wellknown.GroupABAC)+"/v1beta1")
		if err != nil {
			return nil, fmt.Errorf("abac: line %d: %w", n, err)
		}
		if len(a.policies) == maxLines {
			return nil, fmt.Errorf("abac: more than %d policies", maxLines)
		}
		a.policies = append(a.policies, rule)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("abac: line %d: %w", n+1, err)
	}
	return a, nil
}

func parseLine(line []byte, version string) (policy, error) {
	var doc struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       *policy        `json:"spec"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return policy{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return policy{}, errors.New("unexpected data after the object")
	}
	switch {
	case doc.APIVersion != version || doc.Kind != "Policy":
		return policy{}, fmt.Errorf("apiVersion and kind must be %q and %q, found %q and %q", version, "Policy", doc.APIVersion, doc.Kind)
	case doc.Spec == nil:
		return policy{}, errors.New("spec is required")
	}
	return *doc.Spec, nil
}

// Authorize implements auth.Authorizer.
func (a *Authorizer) Authorize(_ context.Context, x auth.Attributes) (auth.Decision, string, error) {
	for i := range a.policies {
		if a.policies[i].allows(&x) {
			return auth.Allow, "", nil
		}
	}
	return auth.NoOpinion, "No policy matched.", nil
}

// RulesFor implements auth.RuleLister.
func (a *Authorizer) RulesFor(_ context.Context, u *auth.User, namespace string) auth.Rules {
	var out auth.Rules
	for i := range a.policies {
		p := &a.policies[i]
		if !p.isFor(u) {
			continue
		}
		verbs := []string{all}
		if p.Readonly {
			verbs = []string{"get", "list", "watch"}
		}
		if p.Resource != "" && matches(p.Namespace, namespace) {
			out.Resource = append(out.Resource, auth.ResourceRule{Verbs: verbs, Groups: []string{p.APIGroup}, Resources: []string{p.Resource}})
		}
		if p.NonResourcePath != "" {
			out.NonResource = append(out.NonResource, auth.NonResourceRule{Verbs: verbs, Paths: []string{p.NonResourcePath}})
		}
	}
	return out
}

func (p *policy) allows(x *auth.Attributes) bool {
	if !p.isFor(x.User) {
		return false
	}
	if p.Readonly && x.Verb != "get" && x.Verb != "list" && x.Verb != "watch" {
		return false
	}
	if x.Resource == "" {
		path := p.NonResourcePath
		return path != "" && (matches(path, x.Path) || strings.HasSuffix(path, all) && strings.HasPrefix(x.Path, strings.TrimRight(path, all)))
	}
	return matches(p.Namespace, x.Namespace) && matches(p.Resource, x.Resource) && matches(p.APIGroup, x.Group)
}

// isFor reports whether the policy applies to u. If the policy has both a user and a group, both
// must match. "*" matches authenticated users only; the anonymous user needs a policy with its name.
func (p *policy) isFor(u *auth.User) bool {
	if u == nil || p.User == "" && p.Group == "" {
		return false
	}
	if (p.User == all || p.Group == all) && !u.InGroup(auth.Authenticated) {
		return false
	}
	return (p.User == "" || matches(p.User, u.Name)) && (p.Group == "" || p.Group == all || u.InGroup(p.Group))
}

func matches(have, want string) bool { return have == all || have == want }
