package plugins

import (
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/quota"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
)

// QuotaConfig configures the plugin ResourceQuota: it lists the resources whose objects are refused unless a
// quota in their namespace covers them.
type QuotaConfig struct {
	LimitedResources []LimitedResource `json:"limitedResources,omitempty"`
}

// LimitedResource is a resource whose objects cannot be created without a quota. A quota must bound each of their
// amounts whose name contains a word of MatchContains, and each scope of MatchScopes that they match needs a quota.
type LimitedResource = quota.Limited

// QuotaScope is a scope selector, as in the spec of a quota.
type QuotaScope = quota.Selector

// check validates the configuration.
func (c QuotaConfig) check() error {
	var faults []error
	for i, of := range c.LimitedResources {
		if of.Resource == "" {
			faults = append(faults, fmt.Errorf("limitedResources[%d]: resource is required", i))
		}
		for _, s := range of.MatchScopes {
			if s.ScopeName == "" || !slices.Contains([]string{"In", "NotIn", "Exists", "DoesNotExist"}, s.Operator) {
				faults = append(faults, fmt.Errorf("limitedResources[%d]: invalid scope %v", i, s))
			}
		}
	}
	return errors.Join(faults...)
}

// resourceQuota refuses writes that exceed a quota of the namespace, and keeps the status of quotas up to
// date.
func resourceQuota() admission.Plugin {
	return admission.Plugin{
		Name: "ResourceQuota",
		Rules: []admission.Rule{
			{Operations: []admission.Operation{admission.Create, admission.Delete}, Resources: []string{"*"}, Scope: admission.Namespaced},
			{Operations: []admission.Operation{admission.Update}, Resources: []string{"*/*"}, Scope: admission.Namespaced},
		},
		Config: QuotaConfig{},
		ConfigKinds: []meta.GroupVersionKind{
			{Group: wellknown.GroupServerConfig, Version: "v1", Kind: "ResourceQuotaConfiguration"},
			{Group: wellknown.GroupQuotaConfig, Version: "v1beta1", Kind: "Configuration"},
			{Group: wellknown.GroupQuotaConfig, Version: "v1alpha1", Kind: "Configuration"},
		},
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			config := env.Config.(QuotaConfig)
			if err := config.check(); err != nil {
				return err
			}
			ledger := quota.NewLedger(env, config.LimitedResources)
			p.Validate, p.Close = ledger.Admit, ledger.Close
			return nil
		},
	}
}
