package plugins

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/internal/cache"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/webhookclient"
	"orch.io/controlplane/internal/wellknown"
)

// The limits of calls to the image policy backend.
const (
	maxReviews     = 1024             // cached answers
	maxReviewTime  = 10 * time.Second // for a review with all retries
	maxReviewCall  = 5 * time.Second  // for a single call
	minReviewTTL   = time.Second      // minimum cache time, so that both phases of a request see the same answer
	maxReviewAudit = 16               // audit annotations per answer
)

// imagePolicyConfig is the configuration of ImagePolicyWebhook. A time of 0 is the default. For allowTTL and
// denyTTL, -1 is the minimum, minReviewTTL; for retryBackoff it is no pause.
type imagePolicyConfig struct {
	ImagePolicy struct {
		KubeConfigFile string `json:"kubeConfigFile"` // relative to the working directory of the process
		AllowTTL       int    `json:"allowTTL"`       // seconds to cache an approval
		DenyTTL        int    `json:"denyTTL"`        // seconds to cache a denial
		RetryBackoff   int    `json:"retryBackoff"`   // milliseconds before the first retry
		DefaultAllow   bool   `json:"defaultAllow"`   // admit pods if the backend does not answer
	} `json:"imagePolicy"`
}

// imagePolicyWebhook calls an external backend that decides whether the images of a pod may run.
func imagePolicyWebhook() admission.Plugin {
	return admission.Plugin{
		Name: "ImagePolicyWebhook", Default: admission.Off,
		Rules:  on("", []string{"pods", "pods/ephemeralcontainers"}, admission.Create, admission.Update),
		Config: imagePolicyConfig{},
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			policy, err := newImagePolicy(env)
			if err != nil {
				return err
			}
			p.Close = policy.remote.Close
			p.Mutate = func(ctx context.Context, r *admission.Request) error {
				answer, err := policy.check(ctx, r)
				if err == nil && answer.failed {
					r.Object.Set("true", "metadata", "annotations", env.Wire(wellknown.ImagePolicyFailedOpen))
				}
				return err
			}
			p.Validate = func(ctx context.Context, r *admission.Request) error {
				_, err := policy.check(ctx, r)
				return err
			}
			return nil
		},
	}
}

// imagePolicy is the state of the plugin in a server. Its methods are safe for concurrent use.
type imagePolicy struct {
	allowed, denied, pause time.Duration
	open                   bool
	names                  names.Profile
	log                    *slog.Logger
	remote                 *webhookclient.Reviewer
	answers                *cache.Cache[[32]byte, imageAnswer]
}

// imageReview and imageAnswer are the spec and the status of an ImageReview.
type imageReview struct {
	Containers  []reviewedImage   `json:"containers,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
}

type reviewedImage struct {
	Image string `json:"image,omitempty"`
}

type imageAnswer struct {
	Allowed bool              `json:"allowed"`
	Reason  string            `json:"reason,omitempty"`
	Audit   map[string]string `json:"auditAnnotations,omitempty"`

	failed bool // the backend did not answer
}

func newImagePolicy(env admission.PluginContext) (*imagePolicy, error) {
	c, faults := env.Config.(imagePolicyConfig).ImagePolicy, []string(nil)
	duration := func(field string, n int, unit, def, least, most time.Duration) time.Duration {
		switch d := time.Duration(n) * unit; {
		case n == 0:
			return def
		case n == -1:
			return 0
		case n > int(most/unit) || d < least:
			faults = append(faults, fmt.Sprintf("imagePolicy.%s: %d must be between %d and %d", field, n, least/unit, most/unit))
		default:
			return d
		}
		return 0
	}
	policy := &imagePolicy{
		open: c.DefaultAllow, names: env.Names, log: env.Log, answers: cache.New[[32]byte, imageAnswer](maxReviews, time.Now),
		allowed: duration("allowTTL", c.AllowTTL, time.Second, 5*time.Minute, time.Second, 30*time.Minute),
		denied:  duration("denyTTL", c.DenyTTL, time.Second, 30*time.Second, time.Second, 30*time.Minute),
		pause:   duration("retryBackoff", c.RetryBackoff, time.Millisecond, 500*time.Millisecond, time.Millisecond, 5*time.Minute),
	}
	if c.KubeConfigFile == "" {
		faults = append(faults, "imagePolicy.kubeConfigFile is required")
	}
	if err := refusal(faults); err != nil {
		return nil, err
	}
	file, err := kubeconfig.Load(c.KubeConfigFile)
	if err != nil {
		return nil, err
	}
	backend, err := file.Current()
	if err != nil {
		return nil, err
	}
	if backend.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s: the image policy backend must use https, not %s", c.KubeConfigFile, backend.URL.Scheme)
	}
	policy.remote, err = webhookclient.NewReviewer(backend, env.Names.Group(wellknown.GroupImagePolicy), "v1alpha1", "ImageReview", maxReviewCall)
	return policy, err
}

// check reviews a pod if it is new or an update changes its images or the annotations for the backend. The
// error is the refusal. If the backend does not answer, defaultAllow decides.
func (p *imagePolicy) check(ctx context.Context, r *admission.Request) (imageAnswer, error) {
	review := p.review(r.Object, r)
	if old := p.review(r.Old, r); r.Old != nil && slices.Equal(old.Containers, review.Containers) && maps.Equal(old.Annotations, review.Annotations) {
		return imageAnswer{Allowed: true}, nil
	}
	answer, err := p.ask(ctx, review)
	if err != nil {
		return answer, err
	}
	for key, text := range answer.Audit {
		r.AnnotateExternal(p.names.Wire(wellknown.AuditImagePolicy)+key, text)
	}
	switch {
	case answer.failed && p.open:
		r.Annotate(p.names.Wire(wellknown.AuditImagePolicy)+"failed-open", "true")
		return answer, nil
	case answer.failed:
		return answer, errors.New("the image policy webhook backend did not answer")
	case answer.Allowed:
		return answer, nil
	case answer.Reason != "":
		return answer, fmt.Errorf("image policy webhook backend denied one or more images: %s", answer.Reason)
	}
	return answer, errors.New("one or more images rejected by webhook backend")
}

// review returns the ImageReview spec of a pod, or of its ephemeral containers if the request is for the subresource
// ephemeralcontainers.
func (p *imagePolicy) review(pod *meta.Object, r *admission.Request) imageReview {
	review := imageReview{Namespace: r.Namespace, Annotations: map[string]string{}}
	lists := []string{podspec.Containers, podspec.Init}
	if r.Subresource != "" {
		lists = []string{podspec.Ephemeral}
	}
	for _, c := range podspec.Of(meta.NewObject(pod.Map("spec")), lists...) {
		review.Containers = append(review.Containers, reviewedImage{c.String("image")})
	}
	for _, v := range pod.Objects("spec", "volumes") {
		if image := v.String("image", "reference"); image != "" && r.Subresource == "" {
			review.Containers = append(review.Containers, reviewedImage{image})
		}
	}
	for key, text := range pod.Annotations() {
		if strings.Contains(key, p.names.Wire(wellknown.ImagePolicyKeys)) && key != p.names.Wire(wellknown.ImagePolicyFailedOpen) {
			review.Annotations[key] = text
		}
	}
	return review
}

// ask returns the backend's answer to a review, from the cache if the answer is recent. A failed call is cached as an
// answer, too, for minReviewTTL.
func (p *imagePolicy) ask(ctx context.Context, review imageReview) (imageAnswer, error) {
	body, err := p.remote.Body(review, imageAnswer{})
	if err != nil {
		return imageAnswer{}, err
	}
	key := sha256.Sum256(body)
	if answer, ok := p.answers.Get(key); ok {
		return answer, nil
	}
	within, cancel := context.WithTimeout(ctx, maxReviewTime)
	defer cancel()
	var answer imageAnswer
	err = webhookclient.Retry(within, p.pause, func() error {
		answer = imageAnswer{}
		return p.remote.Ask(within, body, &answer)
	})
	keep := p.denied
	switch {
	case ctx.Err() != nil: // the request was canceled; the backend may be healthy, so cache nothing
		return answer, ctx.Err()
	case err != nil:
		p.log.Warn("image policy backend did not answer", "error", err)
		answer, keep = imageAnswer{failed: true}, 0
	case answer.Allowed:
		keep = p.allowed
	}
	answer.bound()
	p.answers.Put(key, answer, max(keep, minReviewTTL))
	return answer, nil
}

// bound limits the length of the reason and the length and number of the audit annotations.
func (a *imageAnswer) bound() {
	a.Reason = webhookclient.ClipText(a.Reason)
	audit := map[string]string{}
	for i, key := range slices.Sorted(maps.Keys(a.Audit)) {
		if i < maxReviewAudit {
			audit[webhookclient.ClipText(key)] = webhookclient.ClipText(a.Audit[key])
		}
	}
	a.Audit = audit
}
