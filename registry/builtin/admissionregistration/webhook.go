// Package admissionregistration holds the kinds that register who else decides about
// requests: webhooks, and policies that are expressions.
package admissionregistration

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	expr "orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/hooks"
)

// MutatingWebhookConfiguration lists webhooks that may change the objects of requests.
type MutatingWebhookConfiguration struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Webhooks by their names.
	Webhooks []MutatingWebhook `json:"webhooks,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`
}

// MutatingWebhook is an endpoint that is asked about requests.
type MutatingWebhook struct {
	Webhook `json:",inline"`

	// ObjectSelector selects objects by their labels, before or after the change; empty: all.
	ObjectSelector *meta.Selector `json:"objectSelector,omitempty" protobuf:"11" schema:"format=label-selector"`
	// ReinvocationPolicy says whether the webhook is asked again after others changed the object: Never or IfNeeded.
	ReinvocationPolicy *string `json:"reinvocationPolicy,omitempty" protobuf:"10" schema:"default=Never,enum=IfNeeded|Never"`
	// MatchConditions are expressions, at most 64, that have to be true of a request, or the webhook is not asked.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"12" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
}

// ValidatingWebhookConfiguration lists webhooks that may refuse requests.
type ValidatingWebhookConfiguration struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Webhooks by their names.
	Webhooks []ValidatingWebhook `json:"webhooks,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`
}

// ValidatingWebhook is an endpoint that is asked about requests.
type ValidatingWebhook struct {
	Webhook `json:",inline"`

	// ObjectSelector selects objects by their labels, before or after the change; empty: all.
	ObjectSelector *meta.Selector `json:"objectSelector,omitempty" protobuf:"10" schema:"format=label-selector"`
	// MatchConditions are expressions, at most 64, that have to be true of a request, or the webhook is not asked.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"11" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
}

// Webhook is what both sorts of webhooks say with the same fields.
type Webhook struct {
	// Name of the webhook: a domain of three parts at least.
	Name string `json:"name" protobuf:"1" schema:"required"`
	// Rules of which one covers the request, or the webhook is not asked.
	Rules []RuleWithOperations `json:"rules,omitempty" protobuf:"3" schema:"listType=atomic"`
	// FailurePolicy says what becomes of a request if the webhook gives no answer: Fail refuses it, Ignore lets it pass.
	FailurePolicy *string `json:"failurePolicy,omitempty" protobuf:"4" schema:"default=Fail,enum=Fail|Ignore"`
	// MatchPolicy says whether rules hold for the version of the request alone, Exact, or for others of the same objects, Equivalent.
	MatchPolicy *string `json:"matchPolicy,omitempty" protobuf:"9" schema:"default=Equivalent,enum=Equivalent|Exact"`
	// SideEffects says whether answering changes something elsewhere: None, or NoneOnDryRun.
	SideEffects *string `json:"sideEffects" protobuf:"6" schema:"required,reason.required=must specify one of None\\, NoneOnDryRun,enum=None|NoneOnDryRun"`
	// TimeoutSeconds is how long to wait for an answer: 1 to 30, 10 by default.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty" protobuf:"7" schema:"default=10,range=1|30,reason.range=the timeout value must be between 1 and 30 seconds"`
	// NamespaceSelector selects the namespaces whose objects concern the webhook; empty: all, and what is in none.
	NamespaceSelector *meta.Selector `json:"namespaceSelector,omitempty" protobuf:"5" schema:"format=label-selector"`
	// ClientConfig says where the webhook is.
	ClientConfig hooks.WebhookClientConfig `json:"clientConfig" protobuf:"2"`
	// AdmissionReviewVersions are the versions of the review that the webhook understands; the first one that the server knows is sent.
	AdmissionReviewVersions []string `json:"admissionReviewVersions" protobuf:"8" schema:"required,reason.required=must specify one of v1\\, v1beta1,listType=atomic"`
}

// MatchCondition is an expression about a request.
type MatchCondition struct {
	// Expression in CEL; true lets the request through to those who are asked.
	Expression string `json:"expression" protobuf:"2"`
	// Name tells conditions apart.
	Name string `json:"name" protobuf:"1"`
}

// Kinds returns the kinds of the registration group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{mutatingWebhooks(), validatingWebhooks(), mutatingPolicies(), mutatingBindings(), policies(), bindings()}
}

// category is that of kinds that change what the server does.
const category = "api-extensions"

func webhookColumns() []registry.Column {
	return []registry.Column{
		{Name: "Webhooks", Type: "integer", Doc: "How many webhooks there are.", Cell: func(o *meta.Object) any { return int64(len(o.List("webhooks"))) }},
		registry.Age(),
	}
}

func mutatingWebhooks() *registry.Kind {
	return registry.Of(registry.Definition[MutatingWebhookConfiguration]{
		Group: names.GroupRegistration, Version: "v1", Scope: registry.Cluster, Categories: []string{category}, Columns: webhookColumns(),
		Lifetime: registry.Lifetime{Introduced: "1.16"}, Versions: []registry.VersionOf[MutatingWebhookConfiguration]{mutatingV1beta1()},
		Behavior: registry.Behavior{Validate: forgiveSideEffects},
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
			validateWebhooks(&w.Faults, w.Names, views, isV1beta1(w.Version))
		},
		Reference: reference(),
	})
}

func validatingWebhooks() *registry.Kind {
	return registry.Of(registry.Definition[ValidatingWebhookConfiguration]{
		Group: names.GroupRegistration, Version: "v1", Scope: registry.Cluster, Categories: []string{category}, Columns: webhookColumns(),
		Lifetime: registry.Lifetime{Introduced: "1.16"}, Versions: []registry.VersionOf[ValidatingWebhookConfiguration]{validatingV1beta1()},
		Behavior: registry.Behavior{Validate: forgiveSideEffects},
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
			validateWebhooks(&w.Faults, w.Names, views, isV1beta1(w.Version))
		},
		Reference: reference(),
	})
}

// reference is what the kinds imitate.
func reference() *compat.Reference {
	return &compat.Reference{AnyNamespace: true, PutWithVersion: true, DeleteAnswersStatus: true, FreeFinalizers: true}
}

// webhook is a webhook of either sort as rules see it.
type webhook struct {
	*Webhook
	object     **meta.Selector
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

// defaultSelectors lets what is not selected be all.
func defaultSelectors(list ...**meta.Selector) {
	for _, s := range list {
		if *s == nil {
			*s = &meta.Selector{}
		}
	}
}

func validateWebhooks(f *check.Faults, p names.Profile, list []webhook, again bool) {
	expressions := newExpressions(f, p, expr.Sees{Asks: true})
	seen := map[string]bool{}
	for i, h := range list {
		at := check.At("webhooks").Index(i)
		if h.Name != "" {
			fullName(f, at.Field("name"), h.Name)
		}
		if seen[h.Name] && h.Name != "" && !again {
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
