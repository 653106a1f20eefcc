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

// conversion checks how versions become each other. Faults are found at the places where
// older definitions had these fields.
func (d *definition) conversion() {
	at := check.At("spec", "conversion")
	strategy, config := d.String("spec", "conversion", "strategy"), d.Map("spec", "conversion", "webhook", "clientConfig")
	versions := d.Strings("spec", "conversion", "webhook", "conversionReviewVersions")
	switch {
	case strategy == "Webhook":
		d.webhook(at.Field("webhookClientConfig"), config)
		d.reviews(at.Field("conversionReviewVersions"), versions)
	default:
		if config != nil {
			d.faults.Forbidden(at.Field("webhookClientConfig"), "should not be set when strategy is not set to Webhook")
		}
		if len(versions) > 0 {
			d.faults.Forbidden(at.Field("conversionReviewVersions"), "should not be set when strategy is not set to Webhook")
		}
	}
}

func (d *definition) webhook(at *check.Path, config map[string]any) {
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
		return // a manifest may hold a placeholder until the bundle is injected
	}
	bundle := meta.NewObject(config).String("caBundle")
	before := d.old.String("spec", "conversion", "webhook", "clientConfig", "caBundle")
	if err := pki.CheckBundle(bundle); err != nil && pki.CheckBundle(before) == nil {
		d.faults.Invalid(at.Field("caBundle"), bundle, "unable to load root certificates: "+err.Error())
	}
}

// reviews checks that one of the versions is one that this server sends, unless none was
// before.
func (d *definition) reviews(at *check.Path, versions []string) {
	if len(versions) == 0 {
		d.faults.Required(at, "")
		return
	}
	known := true
	if d.old != nil {
		before := d.old.Strings("spec", "conversion", "webhook", "conversionReviewVersions")
		known = len(before) == 0 || slices.Contains(before, "v1") || slices.Contains(before, "v1beta1")
	}
	hooks.CheckReviews(&d.faults, at, versions, known)
}
