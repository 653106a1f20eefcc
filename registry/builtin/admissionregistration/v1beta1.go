package admissionregistration

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/hooks"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// MutatingWebhookConfigurationV1beta1 is a webhook configuration in version v1beta1, which has other
// defaults.
type MutatingWebhookConfigurationV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Webhooks of the configuration.
	Webhooks []MutatingWebhookV1beta1 `json:"webhooks,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`
}

// MutatingWebhookV1beta1 is a webhook that may change objects.
type MutatingWebhookV1beta1 struct {
	WebhookV1beta1 `json:",inline"`

	// ObjectSelector selects objects by label; the old or the new object must match. Empty selects all
	// objects.
	ObjectSelector *meta.LabelSelector `json:"objectSelector,omitempty" protobuf:"11" schema:"format=label-selector"`
	// ReinvocationPolicy decides whether the webhook is called again if a later plugin changed the
	// object: Never (default) or IfNeeded.
	ReinvocationPolicy *string `json:"reinvocationPolicy,omitempty" protobuf:"10" schema:"default=Never,enum=IfNeeded|Never"`
	// MatchConditions are CEL expressions, at most 64; the webhook is called only if all are true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"12" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
}

// ValidatingWebhookConfigurationV1beta1 is a webhook configuration in version v1beta1, which has other
// defaults.
type ValidatingWebhookConfigurationV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Webhooks of the configuration.
	Webhooks []ValidatingWebhookV1beta1 `json:"webhooks,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`
}

// ValidatingWebhookV1beta1 is a webhook that may reject requests.
type ValidatingWebhookV1beta1 struct {
	WebhookV1beta1 `json:",inline"`

	// ObjectSelector selects objects by label; the old or the new object must match. Empty selects all
	// objects.
	ObjectSelector *meta.LabelSelector `json:"objectSelector,omitempty" protobuf:"10" schema:"format=label-selector"`
	// MatchConditions are CEL expressions, at most 64; the webhook is called only if all are true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"11" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
}

// WebhookV1beta1 holds the fields that both kinds of webhooks share.
type WebhookV1beta1 struct {
	// Name of the webhook: a domain with at least 3 segments.
	Name string `json:"name" protobuf:"1" schema:"required"`
	// Rules select requests; any of them suffices.
	Rules []RuleWithOperations `json:"rules,omitempty" protobuf:"3" schema:"listType=atomic"`
	// FailurePolicy decides about a request if the call fails: Ignore (default) admits it, Fail rejects
	// it.
	FailurePolicy *string `json:"failurePolicy,omitempty" protobuf:"4" schema:"default=Ignore,enum=Fail|Ignore"`
	// MatchPolicy decides about requests in another version of a selected resource: Exact (default)
	// ignores them, Equivalent selects them, too.
	MatchPolicy *string `json:"matchPolicy,omitempty" protobuf:"9" schema:"default=Exact,enum=Equivalent|Exact"`
	// SideEffects of a call: None, NoneOnDryRun, Some or Unknown (default). Dry-run requests are
	// rejected if the webhook may have side effects.
	SideEffects *string `json:"sideEffects,omitempty" protobuf:"6" schema:"default=Unknown,enum=None|NoneOnDryRun|Some|Unknown"`
	// TimeoutSeconds is the timeout of a call: 1 to 30 seconds, default 30.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty" protobuf:"7" schema:"default=30,range=1|30,reason.range=the timeout value must be between 1 and 30 seconds"`
	// NamespaceSelector selects the namespace of the object by label. Empty selects all requests, also
	// for cluster-scoped objects.
	NamespaceSelector *meta.LabelSelector `json:"namespaceSelector,omitempty" protobuf:"5" schema:"format=label-selector"`
	// ClientConfig locates the webhook.
	ClientConfig hooks.WebhookClientConfig `json:"clientConfig" protobuf:"2"`
	// AdmissionReviewVersions are the review versions that the webhook accepts, in order of preference;
	// default v1beta1.
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
		Replacement: older.Use[MutatingWebhookConfiguration](wellknown.GroupRegistration + "/v1"),
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
		Replacement: older.Use[ValidatingWebhookConfiguration](wellknown.GroupRegistration + "/v1"),
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

// isV1beta1 reports whether a write comes through v1beta1, which has fewer rules than v1.
func isV1beta1(v meta.GroupVersion) bool { return v.Version == "v1beta1" }

// allowAnySideEffects drops the schema violations of sideEffects in a write through v1beta1, which
// allows more values.
func allowAnySideEffects(w *registry.Change[meta.Object]) {
	if isV1beta1(w.Version) {
		w.SchemaViolations = slices.DeleteFunc(slices.Clone(w.SchemaViolations), func(c meta.StatusCause) bool { return strings.HasSuffix(c.Field, "].sideEffects") })
	}
}
