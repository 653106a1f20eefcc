package plugins

import (
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/quota"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// QuotaConfig says which objects need a quota: without one in their namespace that bounds
// what they use, they are refused. It configures the plugin ResourceQuota.
type QuotaConfig struct {
	LimitedResources []LimitedResource `json:"limitedResources,omitempty"`
}

// LimitedResource is a resource whose objects need a quota: one that bounds each amount
// of theirs whose name contains one of some words, and one for each scope they are in.
type LimitedResource = quota.Limited

// QuotaScope is a scope, as quotas select it.
type QuotaScope = quota.Selector

// check says what is wrong with the configuration.
func (c QuotaConfig) check() error {
	var faults []error
	for i, of := range c.LimitedResources {
		if of.Resource == "" {
			faults = append(faults, fmt.Errorf("limitedResources[%d] names no resource", i))
		}
		for _, s := range of.MatchScopes {
			if s.ScopeName == "" || !slices.Contains([]string{"In", "NotIn", "Exists", "DoesNotExist"}, s.Operator) {
				faults = append(faults, fmt.Errorf("limitedResources[%d] has no scope %v", i, s))
			}
		}
	}
	return errors.Join(faults...)
}

// resourceQuota holds what is made in namespaces to their quotas, and keeps the statuses
// of these.
func resourceQuota() admission.Plugin {
	return admission.Plugin{
		Name: "ResourceQuota",
		Rules: []admission.Rule{
			{Operations: []admission.Operation{admission.Create, admission.Delete}, Resources: []string{"*"}, Scope: admission.Namespaced},
			{Operations: []admission.Operation{admission.Update}, Resources: []string{"*/*"}, Scope: admission.Namespaced},
		},
		Config: QuotaConfig{},
		ConfigKinds: []meta.GroupVersionKind{
			{Group: names.GroupServerConfig, Version: "v1", Kind: "ResourceQuotaConfiguration"},
			{Group: names.GroupQuotaConfig, Version: "v1beta1", Kind: "Configuration"},
			{Group: names.GroupQuotaConfig, Version: "v1alpha1", Kind: "Configuration"},
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
