package admissionregistration

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/hooks"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// MutatingWebhookConfigurationV1beta1 is a list of webhooks as version v1beta1 shows it,
// which has other defaults.
type MutatingWebhookConfigurationV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Webhooks are those that are asked.
	Webhooks []MutatingWebhookV1beta1 `json:"webhooks,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`
}

// MutatingWebhookV1beta1 is a webhook that may change objects.
type MutatingWebhookV1beta1 struct {
	WebhookV1beta1 `json:",inline"`

	// ObjectSelector selects the objects that it is asked about; by default all.
	ObjectSelector *meta.Selector `json:"objectSelector,omitempty" protobuf:"11" schema:"format=label-selector"`
	// ReinvocationPolicy is IfNeeded, asked again if a later one changed something, or
	// Never, the default.
	ReinvocationPolicy *string `json:"reinvocationPolicy,omitempty" protobuf:"10" schema:"default=Never,enum=IfNeeded|Never"`
	// MatchConditions are further conditions for it to be asked.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"12" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
}

// ValidatingWebhookConfigurationV1beta1 is a list of webhooks as version v1beta1 shows it,
// which has other defaults.
type ValidatingWebhookConfigurationV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Webhooks are those that are asked.
	Webhooks []ValidatingWebhookV1beta1 `json:"webhooks,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`
}

// ValidatingWebhookV1beta1 is a webhook that may refuse objects.
type ValidatingWebhookV1beta1 struct {
	WebhookV1beta1 `json:",inline"`

	// ObjectSelector selects the objects that it is asked about; by default all.
	ObjectSelector *meta.Selector `json:"objectSelector,omitempty" protobuf:"10" schema:"format=label-selector"`
	// MatchConditions are further conditions for it to be asked.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"11" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
}

// WebhookV1beta1 is what webhooks of both kinds have.
type WebhookV1beta1 struct {
	// Name of the webhook, a full domain name.
	Name string `json:"name" protobuf:"1" schema:"required"`
	// Rules are the requests that it is asked about.
	Rules []RuleWithOperations `json:"rules,omitempty" protobuf:"3" schema:"listType=atomic"`
	// FailurePolicy is what is done if it cannot be asked: Ignore, the default, or Fail.
	FailurePolicy *string `json:"failurePolicy,omitempty" protobuf:"4" schema:"default=Ignore,enum=Fail|Ignore"`
	// MatchPolicy is whether rules are for one version, Exact, the default, or for all of a
	// kind, Equivalent.
	MatchPolicy *string `json:"matchPolicy,omitempty" protobuf:"9" schema:"default=Exact,enum=Equivalent|Exact"`
	// SideEffects is what it does beyond its answer: None, NoneOnDryRun, Some or Unknown,
	// the default.
	SideEffects *string `json:"sideEffects,omitempty" protobuf:"6" schema:"default=Unknown,enum=None|NoneOnDryRun|Some|Unknown"`
	// TimeoutSeconds is how long it may take: 1 to 30, by default 30.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty" protobuf:"7" schema:"default=30,range=1|30,reason.range=the timeout value must be between 1 and 30 seconds"`
	// NamespaceSelector selects the namespaces of the objects; by default all.
	NamespaceSelector *meta.Selector `json:"namespaceSelector,omitempty" protobuf:"5" schema:"format=label-selector"`
	// ClientConfig is where it is.
	ClientConfig hooks.WebhookClientConfig `json:"clientConfig" protobuf:"2"`
	// AdmissionReviewVersions are the versions of reviews that it knows; by default v1beta1.
	AdmissionReviewVersions []string `json:"admissionReviewVersions,omitempty" protobuf:"8" schema:"listType=atomic"`
}

func (h *WebhookV1beta1) setDefaults() {
	if len(h.AdmissionReviewVersions) == 0 {
		h.AdmissionReviewVersions = []string{"v1beta1"}
	}
}

func mutatingV1beta1() registry.VersionOf[MutatingWebhookConfiguration] {
	return registry.Spoke[MutatingWebhookConfigurationV1beta1, MutatingWebhookConfiguration]{
		Version: "v1beta1", Lifetime: registry.Lifetime{Introduced: "1.9", Deprecated: "1.16", Removed: "1.22"},
		Replacement: older.Use[MutatingWebhookConfiguration](names.GroupRegistration + "/v1"),
		Default: func(w *registry.Change[MutatingWebhookConfigurationV1beta1]) {
			for i := range w.New.Webhooks {
				w.New.Webhooks[i].setDefaults()
			}
		},
		ToHub: func(in *MutatingWebhookConfigurationV1beta1, out *MutatingWebhookConfiguration) error {
			for _, h := range in.Webhooks {
				out.Webhooks = append(out.Webhooks, MutatingWebhook{Webhook(h.WebhookV1beta1), h.ObjectSelector, h.ReinvocationPolicy, h.MatchConditions})
			}
			return nil
		},
		FromHub: func(in *MutatingWebhookConfiguration, out *MutatingWebhookConfigurationV1beta1) error {
			for _, h := range in.Webhooks {
				out.Webhooks = append(out.Webhooks, MutatingWebhookV1beta1{WebhookV1beta1(h.Webhook), h.ObjectSelector, h.ReinvocationPolicy, h.MatchConditions})
			}
			return nil
		},
	}
}

func validatingV1beta1() registry.VersionOf[ValidatingWebhookConfiguration] {
	return registry.Spoke[ValidatingWebhookConfigurationV1beta1, ValidatingWebhookConfiguration]{
		Version: "v1beta1", Lifetime: registry.Lifetime{Introduced: "1.9", Deprecated: "1.16", Removed: "1.22"},
		Replacement: older.Use[ValidatingWebhookConfiguration](names.GroupRegistration + "/v1"),
		Default: func(w *registry.Change[ValidatingWebhookConfigurationV1beta1]) {
			for i := range w.New.Webhooks {
				w.New.Webhooks[i].setDefaults()
			}
		},
		ToHub: func(in *ValidatingWebhookConfigurationV1beta1, out *ValidatingWebhookConfiguration) error {
			for _, h := range in.Webhooks {
				out.Webhooks = append(out.Webhooks, ValidatingWebhook{Webhook(h.WebhookV1beta1), h.ObjectSelector, h.MatchConditions})
			}
			return nil
		},
		FromHub: func(in *ValidatingWebhookConfiguration, out *ValidatingWebhookConfigurationV1beta1) error {
			for _, h := range in.Webhooks {
				out.Webhooks = append(out.Webhooks, ValidatingWebhookV1beta1{WebhookV1beta1(h.Webhook), h.ObjectSelector, h.MatchConditions})
			}
			return nil
		},
	}
}

func isV1beta1(v meta.GroupVersion) bool { return v.Version == "v1beta1" }

// forgiveSideEffects drops what v1 says of side effects that version v1beta1 does not.
func forgiveSideEffects(w *registry.Change[meta.Object]) {
	if isV1beta1(w.Version) {
		w.Found = slices.DeleteFunc(slices.Clone(w.Found), func(c meta.Cause) bool { return strings.HasSuffix(c.Field, "].sideEffects") })
	}
}
