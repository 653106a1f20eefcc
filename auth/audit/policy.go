package audit

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
)

// maxPolicy bounds a policy file, in bytes.
const maxPolicy = 4 << 20

// Level is the level of detail of a request's events.
type Level int

// The levels. Each includes the details of the level before it.
const (
	None            Level = iota // no events
	Metadata                     // user, verb, object reference, times and response code
	Request                      // and the object in the request
	RequestResponse              // and the object in the response
)

var levels = []string{"None", "Metadata", "Request", "RequestResponse"}

// String returns the level's name in policy files and events.
func (l Level) String() string {
	if l < None || l > RequestResponse {
		return "Unknown"
	}
	return levels[l]
}

// UnmarshalText parses the level's name in a policy file.
func (l *Level) UnmarshalText(text []byte) error {
	i := slices.Index(levels, string(text))
	if i < 0 {
		return fmt.Errorf("unknown level %q", text)
	}
	*l = Level(i)
	return nil
}

// Stage is the stage of a request at which an event is recorded.
type Stage string

// The stages. Only long-running requests, such as watches, have ResponseStarted.
const (
	RequestReceived  Stage = "RequestReceived"
	ResponseStarted  Stage = "ResponseStarted"
	ResponseComplete Stage = "ResponseComplete"
	Panic            Stage = "Panic"
)

var stages = []Stage{RequestReceived, ResponseStarted, ResponseComplete, Panic}

// Policy selects the requests to record. The first rule that matches a request
// determines its level. If no rule matches, the request is not recorded.
type Policy struct {
	APIVersion        string         `json:"apiVersion"`
	Kind              string         `json:"kind"`
	Metadata          map[string]any `json:"metadata,omitempty"`
	Rules             []Rule         `json:"rules"`
	OmitStages        []Stage        `json:"omitStages,omitempty"`
	OmitManagedFields bool           `json:"omitManagedFields,omitempty"`
}

// Rule matches a request if each of its lists matches; an empty list matches
// every request. A rule with resources or namespaces matches only resource
// requests; a rule with nonResourceURLs matches only other requests.
type Rule struct {
	Level             *Level      `json:"level"`
	Users             []string    `json:"users,omitempty"`
	UserGroups        []string    `json:"userGroups,omitempty"`
	Verbs             []string    `json:"verbs,omitempty"`
	Resources         []Resources `json:"resources,omitempty"`
	Namespaces        []string    `json:"namespaces,omitempty"`      // "" matches cluster-scoped requests
	NonResourceURLs   []string    `json:"nonResourceURLs,omitempty"` // paths; a "*" at the end matches any rest
	OmitStages        []Stage     `json:"omitStages,omitempty"`
	OmitManagedFields *bool       `json:"omitManagedFields,omitempty"`
}

// Resources selects resources of one API group: all if Resources is empty.
// An entry is "pods" without its subresources, "pods/log", "pods/*" for pods and
// its subresources, "*/status", or "*" for all. ResourceNames requires Resources.
type Resources struct {
	Group         string   `json:"group,omitempty"`
	Resources     []string `json:"resources,omitempty"`
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// LoadPolicy reads a policy file.
func LoadPolicy(path string, p names.Profile) (*Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	policy, err := ParsePolicy(data, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return policy, nil
}

// ParsePolicy parses and validates a policy in YAML or JSON. Unknown fields are
// errors. The returned error joins all violations.
func ParsePolicy(data []byte, p names.Profile) (*Policy, error) {
	if len(data) > maxPolicy {
		return nil, fmt.Errorf("audit: policy is larger than %d bytes", maxPolicy)
	}
	policy := &Policy{}
	if err := yaml.UnmarshalStrict(data, policy); err != nil {
		return nil, fmt.Errorf("audit: policy: %w", err)
	}
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("audit: policy: "+format, args...))
	}
	if gv := meta.ParseAPIVersion(policy.APIVersion); gv.Group != p.Group(wellknown.GroupAudit) || gv.Version != "v1" || policy.Kind != "Policy" {
		fault("unexpected kind %s, Kind=%s: expected %s/v1, Kind=Policy", policy.APIVersion, policy.Kind, p.Group(wellknown.GroupAudit))
	}
	if len(policy.Rules) == 0 {
		fault("no rules")
	}
	checkStages("omitStages", policy.OmitStages, fault)
	for i := range policy.Rules {
		policy.Rules[i].validate(fmt.Sprintf("rules[%d]", i), fault)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return policy, nil
}

// checkStages reports unknown stages in a list. at is the list's path for messages.
func checkStages(at string, list []Stage, fault func(string, ...any)) {
	for _, s := range list {
		if !slices.Contains(stages, s) {
			fault("%s: unknown stage %q", at, s)
		}
	}
}

func (r *Rule) validate(at string, fault func(string, ...any)) {
	if r.Level == nil {
		fault("%s: no level", at)
	}
	if len(r.NonResourceURLs) > 0 && (len(r.Resources) > 0 || len(r.Namespaces) > 0) {
		fault("%s: a rule with nonResourceURLs must not have resources or namespaces", at)
	}
	for _, u := range r.NonResourceURLs {
		if u != "*" && !strings.HasPrefix(u, "/") {
			fault("%s: nonResourceURLs: path %q must begin with / or be *", at, u)
		}
		if strings.Contains(strings.TrimSuffix(u, "*"), "*") {
			fault("%s: nonResourceURLs: path %q may have * only at its end", at, u)
		}
	}
	for _, g := range r.Resources {
		if strings.Contains(g.Group, "/") {
			fault("%s: resources: group %q must not include a version", at, g.Group)
		}
		if len(g.ResourceNames) > 0 && len(g.Resources) == 0 {
			fault("%s: resources: resourceNames require resources", at)
		}
	}
	checkStages(at, r.OmitStages, fault)
}

// decision is the result of a policy for a request.
type decision struct {
	level             Level
	omitStages        []Stage
	omitManagedFields bool
}

// Level returns the level of a request. a.User may be nil.
func (p *Policy) Level(a auth.Attributes) Level { return p.decide(a).level }

// decide returns the decision of the first rule that matches, or level None if no
// rule matches. a.User may be nil.
func (p *Policy) decide(a auth.Attributes) decision {
	for i := range p.Rules {
		r := &p.Rules[i]
		if !r.matches(a) {
			continue
		}
		d := decision{*r.Level, slices.Concat(p.OmitStages, r.OmitStages), p.OmitManagedFields}
		if r.OmitManagedFields != nil {
			d.omitManagedFields = *r.OmitManagedFields
		}
		return d
	}
	return decision{}
}

func (r *Rule) matches(a auth.Attributes) bool {
	if len(r.Users) > 0 && (a.User == nil || !slices.Contains(r.Users, a.User.Name)) {
		return false
	}
	if len(r.UserGroups) > 0 && (a.User == nil || !slices.ContainsFunc(r.UserGroups, a.User.InGroup)) {
		return false
	}
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, a.Verb) {
		return false
	}
	if len(r.Resources) > 0 || len(r.Namespaces) > 0 {
		return a.Resource != "" && r.matchesResource(a)
	}
	if len(r.NonResourceURLs) > 0 {
		return a.Resource == "" && slices.ContainsFunc(r.NonResourceURLs, func(u string) bool { return matchesPath(u, a.Path) })
	}
	return true
}

func matchesPath(pattern, path string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return pattern == path
}

func (r *Rule) matchesResource(a auth.Attributes) bool {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, a.Namespace) {
		return false
	}
	if len(r.Resources) == 0 {
		return true
	}
	for _, g := range r.Resources {
		if g.Group != a.Group {
			continue
		}
		if len(g.Resources) == 0 {
			return true
		}
		if len(g.ResourceNames) > 0 && !slices.Contains(g.ResourceNames, a.Name) {
			continue
		}
		if slices.ContainsFunc(g.Resources, func(res string) bool { return matchesName(res, a.Resource, a.Subresource) }) {
			return true
		}
	}
	return false
}

// matchesName reports whether a pattern of Resources matches a resource and its
// subresource, which is "" for the resource itself.
func matchesName(pattern, resource, sub string) bool {
	whole := resource
	if sub != "" {
		whole += "/" + sub
	}
	return pattern == "*" || pattern == whole || pattern == resource+"/*" || sub != "" && pattern == "*/"+sub
}
