package flowcontrol

// mandatorySchemas returns the fixed specs of the flow schemas that every server needs, by name.
func mandatorySchemas() map[string]FlowSchemaSpec {
	any := []string{all}
	everything := func(groups ...string) []PolicyRulesWithSubjects {
		rule := PolicyRulesWithSubjects{
			ResourceRules:    []ResourcePolicyRule{{Verbs: any, APIGroups: any, Resources: any, ClusterScope: true, Namespaces: any}},
			NonResourceRules: []NonResourcePolicyRule{{Verbs: any, NonResourceURLs: any}},
		}
		for _, g := range groups {
			rule.Subjects = append(rule.Subjects, Subject{Kind: "Group", Group: &GroupSubject{Name: g}})
		}
		return []PolicyRulesWithSubjects{rule}
	}
	return map[string]FlowSchemaSpec{
		"exempt": {
			PriorityLevelConfiguration: PriorityLevelConfigurationReference{Name: "exempt"}, MatchingPrecedence: 1, Rules: everything("system:masters"),
		},
		"catch-all": {
			PriorityLevelConfiguration: PriorityLevelConfigurationReference{Name: "catch-all"}, MatchingPrecedence: 10_000,
			DistinguisherMethod: &FlowDistinguisherMethod{Type: "ByUser"}, Rules: everything("system:unauthenticated", "system:authenticated"),
		},
	}
}

// mandatoryLevels returns the fixed specs of the priority levels that every server needs, by name. The
// field exempt of the exempt level is free.
func mandatoryLevels() map[string]PriorityLevelConfigurationSpec {
	shares, none := int32(5), int32(0)
	return map[string]PriorityLevelConfigurationSpec{
		"exempt": {Type: exempt},
		"catch-all": {Type: limited, Limited: &LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: &shares, LimitResponse: LimitResponse{Type: "Reject"}, LendablePercent: &none,
		}},
	}
}
