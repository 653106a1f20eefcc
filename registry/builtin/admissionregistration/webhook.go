// Package admissionregistration defines the kinds that configure dynamic admission: webhooks and CEL
// policies.
package admissionregistration

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	expr "orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/hooks"
)

// MutatingWebhookConfiguration configures webhooks that may change the objects of requests.
type MutatingWebhookConfiguration struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Webhooks of the configuration, with unique names.
	Webhooks []MutatingWebhook `json:"webhooks,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`
}

// MutatingWebhook is a webhook that may change objects.
type MutatingWebhook struct {
	Webhook `json:",inline"`

	// ObjectSelector selects objects by label; the old or the new object must match. Empty selects all
	// objects.
	ObjectSelector *meta.LabelSelector `json:"objectSelector,omitempty" protobuf:"11" schema:"format=label-selector"`
	// ReinvocationPolicy decides whether the webhook is called allowDuplicates if a later plugin changed the
	// object: Never (default) or IfNeeded.
	ReinvocationPolicy *string `json:"reinvocationPolicy,omitempty" protobuf:"10" schema:"default=Never,enum=IfNeeded|Never"`
	// MatchConditions are CEL expressions, at most 64; the webhook is called only if all are true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"12" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
}

// ValidatingWebhookConfiguration configures webhooks that may reject requests.
type ValidatingWebhookConfiguration struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Webhooks of the configuration, with unique names.
	Webhooks []ValidatingWebhook `json:"webhooks,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`
}

// ValidatingWebhook is a webhook that may reject requests.
type ValidatingWebhook struct {
	Webhook `json:",inline"`

	// ObjectSelector selects objects by label; the old or the new object must match. Empty selects all
	// objects.
	ObjectSelector *meta.LabelSelector `json:"objectSelector,omitempty" protobuf:"10" schema:"format=label-selector"`
	// MatchConditions are CEL expressions, at most 64; the webhook is called only if all are true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"11" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
}

// Webhook holds the fields that both kinds of webhooks share.
type Webhook struct {
	// Name of the webhook: a domain with at least 3 segments.
	Name string `json:"name" protobuf:"1" schema:"required"`
	// Rules select requests; any of them suffices.
	Rules []RuleWithOperations `json:"rules,omitempty" protobuf:"3" schema:"listType=atomic"`
	// FailurePolicy decides about a request if the call fails: Fail (default) rejects it, Ignore admits
	// it.
	FailurePolicy *string `json:"failurePolicy,omitempty" protobuf:"4" schema:"default=Fail,enum=Fail|Ignore"`
	// MatchPolicy decides about requests in another version of a selected resource: Equivalent
	// (default) selects them, too, Exact ignores them.
	MatchPolicy *string `json:"matchPolicy,omitempty" protobuf:"9" schema:"default=Equivalent,enum=Equivalent|Exact"`
	// SideEffects of a call: None, or NoneOnDryRun if the webhook changes other systems except for
	// dry-run requests.
	SideEffects *string `json:"sideEffects" protobuf:"6" schema:"required,reason.required=must specify one of None\\, NoneOnDryRun,enum=None|NoneOnDryRun"`
	// TimeoutSeconds is the timeout of a call: 1 to 30 seconds, default 10.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty" protobuf:"7" schema:"default=10,range=1|30,reason.range=the timeout value must be between 1 and 30 seconds"`
	// NamespaceSelector selects the namespace of the object by label. Empty selects all requests, also
	// for cluster-scoped objects.
	NamespaceSelector *meta.LabelSelector `json:"namespaceSelector,omitempty" protobuf:"5" schema:"format=label-selector"`
	// ClientConfig locates the webhook.
	ClientConfig hooks.WebhookClientConfig `json:"clientConfig" protobuf:"2"`
	// AdmissionReviewVersions are the review versions that the webhook accepts, in order of preference.
	// The server sends the first that it supports.
	AdmissionReviewVersions []string `json:"admissionReviewVersions" protobuf:"8" schema:"required,reason.required=must specify one of v1\\, v1beta1,listType=atomic"`
}

// MatchCondition is a CEL expression about a request.
type MatchCondition struct {
	// Expression is a CEL expression that must be true for the webhook or policy to apply.
	Expression string `json:"expression" protobuf:"2"`
	// Name of the condition, unique in the list. Required.
	Name string `json:"name" protobuf:"1"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{mutatingWebhooks(), validatingWebhooks(), mutatingPolicies(), mutatingBindings(), policies(), bindings()}
}

// category is the discovery category of kinds that extend the API.
const category = "api-extensions"

func webhookColumns() []registry.Column {
	return []registry.Column{
		{Name: "Webhooks", Type: "integer", Doc: "The number of webhooks.", Cell: func(o *meta.Object) any { return int64(len(o.List("webhooks"))) }},
		registry.AgeColumn(),
	}
}

func mutatingWebhooks() *registry.Kind {
	return registry.Of(registry.Definition[MutatingWebhookConfiguration]{
		Group: wellknown.GroupRegistration, Version: "v1", Scope: registry.Cluster, Categories: []string{category}, Columns: webhookColumns(),
		Lifetime: registry.Lifetime{Introduced: "1.16"}, Versions: []registry.VersionOf[MutatingWebhookConfiguration]{mutatingV1beta1()},
		Behavior: registry.Behavior{Validate: allowAnySideEffects},
		Default: func(w *registry.Change[MutatingWebhookConfiguration]) {
			for i := range w.New.Webhooks {
				defaultWebhook(w.New.Webhooks[i].view())
			}
		},
		Validate: func(w *registry.Change[MutatingWebhookConfiguration]) {
			views := make([]webhook, len(w.New.Webhooks))
			for i := range w.New.Webhooks {
				views[i] = w.New.Webhooks[i].view()
			}
			validateWebhooks(&w.Violations, w.Names, views, isV1beta1(w.Version))
		},
		Reference: reference(),
	})
}

func validatingWebhooks() *registry.Kind {
	return registry.Of(registry.Definition[ValidatingWebhookConfiguration]{
		Group: wellknown.GroupRegistration, Version: "v1", Scope: registry.Cluster, Categories: []string{category}, Columns: webhookColumns(),
		Lifetime: registry.Lifetime{Introduced: "1.16"}, Versions: []registry.VersionOf[ValidatingWebhookConfiguration]{validatingV1beta1()},
		Behavior: registry.Behavior{Validate: allowAnySideEffects},
		Default: func(w *registry.Change[ValidatingWebhookConfiguration]) {
			for i := range w.New.Webhooks {
				defaultWebhook(w.New.Webhooks[i].view())
			}
		},
		Validate: func(w *registry.Change[ValidatingWebhookConfiguration]) {
			views := make([]webhook, len(w.New.Webhooks))
			for i := range w.New.Webhooks {
				views[i] = w.New.Webhooks[i].view()
			}
			validateWebhooks(&w.Violations, w.Names, views, isV1beta1(w.Version))
		},
		Reference: reference(),
	})
}

// reference returns the compatibility settings of the kinds.
func reference() *compat.Reference {
	return &compat.Reference{AnyNamespace: true, PutWithVersion: true, DeleteAnswersStatus: true, FreeFinalizers: true}
}

// webhook is the common view of both kinds of webhooks, for defaulting and validation.
type webhook struct {
	*Webhook
	object     **meta.LabelSelector
	conditions []MatchCondition
}

func (h *MutatingWebhook) view() webhook {
	return webhook{&h.Webhook, &h.ObjectSelector, h.MatchConditions}
}

func (h *ValidatingWebhook) view() webhook {
	return webhook{&h.Webhook, &h.ObjectSelector, h.MatchConditions}
}

func defaultWebhook(h webhook) {
	defaultSelectors(&h.NamespaceSelector, h.object)
	for i := range h.Rules {
		h.Rules[i].setDefaults()
	}
}

// defaultSelectors makes nil selectors empty, so that they select everything.
func defaultSelectors(list ...**meta.LabelSelector) {
	for _, s := range list {
		if *s == nil {
			*s = &meta.LabelSelector{}
		}
	}
}

// validateWebhooks checks webhooks in order. v1beta1 allows duplicate names.
func validateWebhooks(f *check.Violations, p names.Profile, list []webhook, allowDuplicates bool) {
	expressions := newExpressions(f, p, expr.Sees{Asks: true})
	seen := map[string]bool{}
	for i, h := range list {
		at := check.At("webhooks").Index(i)
		if h.Name != "" {
			checkWebhookName(f, at.Field("name"), h.Name)
		}
		if seen[h.Name] && h.Name != "" && !allowDuplicates {
			f.Duplicate(at.Field("name"), h.Name)
		}
		seen[h.Name] = true
		for j := range h.Rules {
			h.Rules[j].validate(f, at.Field("rules").Index(j))
		}
		h.ClientConfig.Validate(f, at.Field("clientConfig"))
		hooks.CheckReviews(f, at.Field("admissionReviewVersions"), h.AdmissionReviewVersions, true)
		expressions.conditions(at.Field("matchConditions"), h.conditions)
	}
}
