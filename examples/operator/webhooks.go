package operator

import (
	"context"
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Webhooks returns the operator's webhooks, at the paths in config/webhook.
func Webhooks(scheme *runtime.Scheme) http.Handler {
	s := webhook.NewServer(webhook.Options{})
	s.Register("/mutate-sea-example-com-v1-fleet", admission.WithDefaulter(scheme, fleetDefaulter{}))
	s.Register("/mutate--v1-pod", admission.WithDefaulter(scheme, podDefaulter{}))
	s.Register("/validate-sea-example-com-v1-ship", admission.WithValidator(scheme, shipValidator{}))
	return s.WebhookMux()
}

// fleetDefaulter sets the number of ships to 1 if it is 0.
type fleetDefaulter struct{}

func (fleetDefaulter) Default(_ context.Context, f *Fleet) error {
	f.Spec.Ships = max(f.Spec.Ships, 1)
	return nil
}

// podDefaulter restricts pods to nodes ashore.
type podDefaulter struct{}

func (podDefaulter) Default(_ context.Context, p *corev1.Pod) error {
	if p.Spec.NodeSelector == nil {
		p.Spec.NodeSelector = map[string]string{"sea.example.com/ashore": "true"}
	}
	return nil
}

// shipValidator rejects pirates, and the deletion of ships at sea.
type shipValidator struct{}

func (shipValidator) ValidateCreate(_ context.Context, s *unstructured.Unstructured) (admission.Warnings, error) {
	captain, _, err := unstructured.NestedString(s.Object, "spec", "captain")
	switch {
	case err != nil:
		return nil, err
	case captain == "Blackbeard":
		return nil, errors.New("no pirates")
	case captain == "", captain == "nobody":
		return admission.Warnings{"the ship has no captain"}, nil
	}
	return nil, nil
}

func (v shipValidator) ValidateUpdate(ctx context.Context, _, s *unstructured.Unstructured) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, s)
}

func (shipValidator) ValidateDelete(_ context.Context, s *unstructured.Unstructured) (admission.Warnings, error) {
	if s.GetLabels()["at"] == "sea" {
		return nil, errors.New("the ship is at sea")
	}
	return nil, nil
}
