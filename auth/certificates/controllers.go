package certificates

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/certificates"
)

const (
	// DefaultDuration is the default of Signer.MaxDuration.
	DefaultDuration = 365 * 24 * time.Hour

	minDuration = 10 * time.Minute // minimum validity of a certificate
	decidedLife = time.Hour        // see Cleaner
	pendingLife = 24 * time.Hour   // see Cleaner
	askAgain    = 30 * time.Second // interval of authorization checks of a pending request
)

// resource is the resource of CertificateSigningRequests.
const resource = "certificatesigningrequests"

func requests(p names.Profile) meta.GroupResource {
	return meta.GroupResource{Group: p.Group(wellknown.GroupCertificates), Resource: resource}
}

// newController returns a controller that calls reconcile for each changed request.
// reconcile returns the time until it is called again for the request, zero for
// never. NotFound and Conflict errors of reconcile are ignored, because another
// event follows.
func newController(p names.Profile, name string, reconcile func(ctx context.Context, c client.Client, r meta.GroupResource, o *meta.Object) (time.Duration, error)) client.Controller {
	r := requests(p)
	return client.Controller{
		Name:  name,
		Types: []meta.GroupResource{r},
		MapEvent: func(c client.Event) []string {
			if c.Object == nil {
				return nil
			}
			return []string{c.Key.Name}
		},
		Reconcile: func(ctx context.Context, c client.Client, name string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			o, err := c.Get(ctx, r, meta.Key{Name: name})
			if err == nil {
				var again time.Duration
				if again, err = reconcile(ctx, c, r, o); err == nil {
					return again, nil
				}
			}
			if meta.IsNotFound(err) || meta.IsConflict(err) {
				return 0, nil // deleted or changed: an event follows
			}
			return 0, err
		},
	}
}

// parse returns the certificate request in spec.request.
func parse(o *meta.Object) (*x509.CertificateRequest, error) {
	data, err := base64.StdEncoding.DecodeString(o.String("spec", "request"))
	if err != nil {
		return nil, err
	}
	return pki.ParseRequest(data)
}

// condition reports whether a request has a condition of the type kind.
func condition(o *meta.Object, kind string) bool {
	found := false
	conditions(o, func(c *meta.Object) { found = found || c.String("type") == kind })
	return found
}

// conditions calls f with each condition of a request.
func conditions(o *meta.Object, f func(c *meta.Object)) {
	for _, v := range o.List("status", "conditions") {
		if m, ok := v.(map[string]any); ok {
			f(meta.NewObject(m))
		}
	}
}

// decide returns an update that adds a condition. The update returns errDecided if the
// request already has the condition, Denied or Failed.
func decide(kind, reason, message string) func(*meta.Object) error {
	return func(o *meta.Object) error {
		for _, k := range []string{certificates.Denied, certificates.Failed, kind} {
			if condition(o, k) {
				return errDecided
			}
		}
		c := map[string]any{"type": kind, "status": "True", "reason": reason, "message": message}
		o.Set(append(o.List("status", "conditions"), c), "status", "conditions")
		return nil
	}
}

var errDecided = errors.New("request is already decided")

// Approver returns a controller that approves requests of node agents for client
// certificates. The requester must have the right to create
// certificatesigningrequests/nodeclient, or, for a certificate with its own name,
// certificatesigningrequests/selfnodeclient. Requests that are not authorized stay
// pending and are checked again every 30 seconds.
func Approver(a auth.Authorizer, p names.Profile) client.Controller {
	return newController(p, "csrapproving", func(ctx context.Context, c client.Client, r meta.GroupResource, o *meta.Object) (time.Duration, error) {
		if condition(o, certificates.Approved) || condition(o, certificates.Denied) || o.String("status", "certificate") != "" ||
			o.String("spec", "signerName") != p.Wire(wellknown.SignerClientNode) {
			return 0, nil
		}
		req, err := parse(o)
		if err != nil || check(wellknown.SignerClientNode, req, o.Strings("spec", "usages")) != nil {
			return 0, nil
		}
		message := ""
		switch {
		case req.Subject.CommonName == o.String("spec", "username") && mayCreate(ctx, a, r, o, "selfnodeclient"):
			message = "Auto approving self node agent client certificate after SubjectAccessReview."
		case mayCreate(ctx, a, r, o, "nodeclient"):
			message = "Auto approving node agent client certificate after SubjectAccessReview."
		default:
			return askAgain, nil // the requester may get the right later
		}
		_, err = c.Update(ctx, r, meta.Key{Name: o.Name()}, "approval", decide(certificates.Approved, "AutoApproved", message))
		if errors.Is(err, errDecided) {
			return 0, nil
		}
		return 0, err
	})
}

// mayCreate reports whether the requester may create a subresource of
// certificatesigningrequests.
func mayCreate(ctx context.Context, a auth.Authorizer, r meta.GroupResource, o *meta.Object, sub string) bool {
	u := &auth.User{Name: o.String("spec", "username"), UID: o.String("spec", "uid"), Groups: o.Strings("spec", "groups")}
	for k := range o.Map("spec", "extra") {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[k] = o.Strings("spec", "extra", k)
	}
	d, _, _ := a.Authorize(ctx, auth.Attributes{User: u, Verb: "create", Group: r.Group, Version: "*", Resource: r.Resource, Subresource: sub})
	return d == auth.Allow
}

// Signer signs approved requests for the built-in signers.
type Signer struct {
	// Authority signs for the built-in signers that have no entry in Authorities.
	// If it is nil, their requests are not signed.
	Authority *Authority
	// Authorities are authorities by the spec name of the signer
	// (wellknown.SignerClient, ...). A nil entry disables the signer.
	Authorities map[string]*Authority
	// MaxDuration is the maximum validity; zero is DefaultDuration.
	MaxDuration time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Controller returns the controller that signs approved requests. A request that
// violates the rules of its signer gets the condition Failed. Requests for other
// signers are ignored.
func (s Signer) Controller(p names.Profile) client.Controller {
	return newController(p, "csrsigning", func(ctx context.Context, c client.Client, r meta.GroupResource, o *meta.Object) (time.Duration, error) {
		if !condition(o, certificates.Approved) || condition(o, certificates.Denied) || condition(o, certificates.Failed) ||
			o.String("status", "certificate") != "" {
			return 0, nil
		}
		signer, a := s.find(o.String("spec", "signerName"), p)
		if a == nil {
			return 0, nil
		}
		key, usages := meta.Key{Name: o.Name()}, o.Strings("spec", "usages")
		req, err := parse(o)
		if err == nil {
			err = check(signer, req, usages)
		}
		if err != nil {
			_, err = c.Update(ctx, r, key, "status", decide(certificates.Failed, "SignerValidationFailure", err.Error()))
			if errors.Is(err, errDecided) {
				return 0, nil
			}
			return 0, err
		}
		cert, err := a.Sign(req, usages, s.duration(o), s.now())
		if err != nil {
			return 0, err
		}
		_, err = c.Update(ctx, r, key, "status", func(o *meta.Object) error {
			if o.String("status", "certificate") == "" {
				o.Set(base64.StdEncoding.EncodeToString(cert), "status", "certificate")
			}
			return nil
		})
		return 0, err
	})
}

func (s Signer) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// find returns the spec name and the authority of a built-in signer, or nil if the
// signer is disabled or not built in.
func (s Signer) find(wire string, p names.Profile) (string, *Authority) {
	for _, n := range []string{wellknown.SignerClient, wellknown.SignerClientNode, wellknown.SignerNodeServing, wellknown.SignerLegacyUnknown} {
		if p.Wire(n) != wire {
			continue
		}
		if a, ok := s.Authorities[n]; ok {
			return n, a
		}
		return n, s.Authority
	}
	return "", nil
}

// duration returns the validity: the requested duration, at least minDuration and at
// most the limit.
func (s Signer) duration(o *meta.Object) time.Duration {
	most := s.MaxDuration
	if most <= 0 {
		most = DefaultDuration
	}
	if asked := o.Int("spec", "expirationSeconds"); asked > 0 && asked < int64(most/time.Second) {
		most = max(time.Duration(asked)*time.Second, minDuration)
	}
	return most
}

// Cleaner returns a controller that deletes requests: decided requests an hour after
// the last change of a condition, pending requests a day after their creation, and
// requests with an expired certificate. now is the clock; nil is time.Now.
func Cleaner(p names.Profile, now func() time.Time) client.Controller {
	if now == nil {
		now = time.Now
	}
	return newController(p, "csrcleaner", func(ctx context.Context, c client.Client, r meta.GroupResource, o *meta.Object) (time.Duration, error) {
		if left := endOf(o).Sub(now()); left > 0 {
			return left, nil
		}
		return 0, c.Delete(ctx, r, meta.Key{Name: o.Name()}, registry.DeleteOptions{UID: o.UID(), Version: o.ResourceVersion()})
	})
}

// endOf returns the time at which Cleaner deletes a request.
func endOf(o *meta.Object) time.Time {
	end := o.CreationTimestamp().Add(pendingLife)
	var changed time.Time
	conditions(o, func(c *meta.Object) {
		switch c.String("type") {
		case certificates.Approved, certificates.Denied, certificates.Failed:
			for _, field := range []string{"lastUpdateTime", "lastTransitionTime"} {
				if t := c.Time(field); t.After(changed) {
					changed = t
				}
			}
		}
	})
	if !changed.IsZero() {
		end = changed.Add(decidedLife)
	}
	if data, err := base64.StdEncoding.DecodeString(o.String("status", "certificate")); err == nil {
		if block, _ := pem.Decode(data); block != nil {
			if cert, err := pki.ParseCertificate(block.Bytes); err == nil && cert.NotAfter.Before(end) {
				end = cert.NotAfter
			}
		}
	}
	return end
}
