package apiextensions

import (
	"encoding/json"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/registry/builtin/internal/hooks"
)

// checkConversion checks the conversion strategy. Violations have the paths of v1beta1, as at
// kube-apiserver.
func (d *definition) checkConversion() {
	at := check.At("spec", "conversion")
	strategy, config := d.String("spec", "conversion", "strategy"), d.Map("spec", "conversion", "webhook", "clientConfig")
	versions := d.Strings("spec", "conversion", "webhook", "conversionReviewVersions")
	switch {
	case strategy == "Webhook":
		d.checkWebhook(at.Field("webhookClientConfig"), config)
		d.checkReviewVersions(at.Field("conversionReviewVersions"), versions)
	default:
		if config != nil {
			d.faults.Forbidden(at.Field("webhookClientConfig"), "should not be set when strategy is not set to Webhook")
		}
		if len(versions) > 0 {
			d.faults.Forbidden(at.Field("conversionReviewVersions"), "should not be set when strategy is not set to Webhook")
		}
	}
}

func (d *definition) checkWebhook(at *check.Path, config map[string]any) {
	if config == nil {
		d.faults.Required(at, "required when strategy is set to Webhook")
		return
	}
	var c hooks.WebhookClientConfig
	if err := json.Unmarshal(codec.EncodeJSON(nil, config), &c); err != nil {
		d.faults.Invalid(at, nil, err.Error())
		return
	}
	c.Validate(&d.faults, at)
	if d.old == nil || !d.old.HasCondition("Established") {
		return // a manifest may hold a placeholder until a controller injects the bundle
	}
	bundle := meta.NewObject(config).String("caBundle")
	before := d.old.String("spec", "conversion", "webhook", "clientConfig", "caBundle")
	if err := pki.CheckBundle(bundle); err != nil && pki.CheckBundle(before) == nil {
		d.faults.Invalid(at.Field("caBundle"), bundle, "unable to load root certificates: "+err.Error())
	}
}

// checkReviewVersions checks the review versions. At least one must be supported by this server, unless
// the stored definition violates this already.
func (d *definition) checkReviewVersions(at *check.Path, versions []string) {
	if len(versions) == 0 {
		d.faults.Required(at, "")
		return
	}
	mustSupport := true
	if d.old != nil {
		before := d.old.Strings("spec", "conversion", "webhook", "conversionReviewVersions")
		mustSupport = len(before) == 0 || slices.Contains(before, "v1") || slices.Contains(before, "v1beta1")
	}
	hooks.CheckReviews(&d.faults, at, versions, mustSupport)
}
