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

// Level says how much of a request is recorded.
type Level int

// The levels, each with what the ones before it have.
const (
	None            Level = iota // nothing
	Metadata                     // who, what, when and the answer's code
	Request                      // and the object of the request
	RequestResponse              // and the object of the answer
)

var levels = []string{"None", "Metadata", "Request", "RequestResponse"}

// String returns the word of policy files and events.
func (l Level) String() string {
	if l < None || l > RequestResponse {
		return "Unknown"
	}
	return levels[l]
}

// UnmarshalText reads the word of a policy file.
func (l *Level) UnmarshalText(text []byte) error {
	i := slices.Index(levels, string(text))
	if i < 0 {
		return fmt.Errorf("unknown level %q", text)
	}
	*l = Level(i)
	return nil
}

// Stage is a moment in a request.
type Stage string

// The stages. ResponseStarted is only of requests that take long, such as
// watches.
const (
	RequestReceived  Stage = "RequestReceived"
	ResponseStarted  Stage = "ResponseStarted"
	ResponseComplete Stage = "ResponseComplete"
	Panic            Stage = "Panic"
)

var stages = []Stage{RequestReceived, ResponseStarted, ResponseComplete, Panic}

// Policy says what is recorded: the first rule that fits a request decides; a
// request that none fits is not recorded.
type Policy struct {
	APIVersion        string         `json:"apiVersion"`
	Kind              string         `json:"kind"`
	Metadata          map[string]any `json:"metadata,omitempty"`
	Rules             []Rule         `json:"rules"`
	OmitStages        []Stage        `json:"omitStages,omitempty"`
	OmitManagedFields bool           `json:"omitManagedFields,omitempty"`
}

// Rule fits a request if all that it lists does; a list that is empty fits
// anything. Resources and namespaces make it a rule for resource requests,
// nonResourceURLs for the others.
type Rule struct {
	Level             *Level      `json:"level"`
	Users             []string    `json:"users,omitempty"`
	UserGroups        []string    `json:"userGroups,omitempty"`
	Verbs             []string    `json:"verbs,omitempty"`
	Resources         []Resources `json:"resources,omitempty"`
	Namespaces        []string    `json:"namespaces,omitempty"` // "" is cluster scope
	NonResourceURLs   []string    `json:"nonResourceURLs,omitempty"`
	OmitStages        []Stage     `json:"omitStages,omitempty"`
	OmitManagedFields *bool       `json:"omitManagedFields,omitempty"`
}

// Resources are resource types of one group: all of it if Resources is empty,
// else "pods", "pods/log", "pods/*" for all sub-resources, "*/status", "*".
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

// ParsePolicy reads a policy from YAML or JSON. Fields that it does not know are
// faults; every fault is reported.
func ParsePolicy(data []byte, p names.Profile) (*Policy, error) {
	if len(data) > maxPolicy {
		return nil, fmt.Errorf("audit: a policy of more than %d bytes", maxPolicy)
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
		fault("%s, Kind=%s is no %s/v1, Kind=Policy", policy.APIVersion, policy.Kind, p.Group(wellknown.GroupAudit))
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
		fault("%s: nonResourceURLs with resources or namespaces fits nothing", at)
	}
	for _, u := range r.NonResourceURLs {
		if u != "*" && !strings.HasPrefix(u, "/") {
			fault("%s: the path %q does not begin with /", at, u)
		}
		if strings.Contains(strings.TrimSuffix(u, "*"), "*") {
			fault("%s: the path %q has a * that is not at its end", at, u)
		}
	}
	for _, g := range r.Resources {
		if strings.Contains(g.Group, "/") {
			fault("%s: the group %q has a version", at, g.Group)
		}
		if len(g.ResourceNames) > 0 && len(g.Resources) == 0 {
			fault("%s: resourceNames without resources", at)
		}
	}
	checkStages(at, r.OmitStages, fault)
}

// decision is what a policy says about one request.
type decision struct {
	level             Level
	omitStages        []Stage
	omitManagedFields bool
}

// Level returns how much of a request is recorded. a.User may be nil.
func (p *Policy) Level(a auth.Attributes) Level { return p.decide(a).level }

// decide returns the level and what is left out. a.User may be nil.
func (p *Policy) decide(a auth.Attributes) decision {
	for i := range p.Rules {
		r := &p.Rules[i]
		if !r.fits(a) {
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

func (r *Rule) fits(a auth.Attributes) bool {
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
		return a.Resource != "" && r.fitsResource(a)
	}
	if len(r.NonResourceURLs) > 0 {
		return a.Resource == "" && slices.ContainsFunc(r.NonResourceURLs, func(u string) bool { return fitsPath(u, a.Path) })
	}
	return true
}

func fitsPath(pattern, path string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return pattern == path
}

func (r *Rule) fitsResource(a auth.Attributes) bool {
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
		if slices.ContainsFunc(g.Resources, func(res string) bool { return fitsName(res, a.Resource, a.Subresource) }) {
			return true
		}
	}
	return false
}

func fitsName(pattern, resource, sub string) bool {
	whole := resource
	if sub != "" {
		whole += "/" + sub
	}
	return pattern == "*" || pattern == whole || pattern == resource+"/*" || sub != "" && pattern == "*/"+sub
}
