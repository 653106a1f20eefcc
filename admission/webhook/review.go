package webhook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

// kindReview is the kind of what is sent and answered.
const kindReview = "AdmissionReview"

// raw is the JSON of an object as a value of a tree; nil stays nil.
func raw(obj *meta.Object) any {
	if obj == nil {
		return nil
	}
	return meta.RawJSON(codec.EncodeJSON(nil, obj.Tree()))
}

// body returns the review that a webhook is sent.
func (r *request) body(h *hook, v *view, uid string) []byte {
	kind := r.RequestKind
	if r.Forms != nil {
		if k, ok := r.Forms.Kind(meta.GroupVersion{Group: r.RequestResource.Group, Version: r.RequestResource.Version}); ok {
			kind = k
		}
	}
	q := map[string]any{
		"uid": uid, "operation": string(r.Operation), "userInfo": user(r.User), "dryRun": r.DryRun,
		"kind": kindTree(v.kind), "resource": resourceTree(v.resource),
		"requestKind": kindTree(kind), "requestResource": resourceTree(r.RequestResource),
		"object": v.json[0], "oldObject": v.json[1], "options": raw(r.Options),
	}
	for field, text := range map[string]string{
		"name": r.Name, "namespace": r.namespace(), "subResource": r.Subresource, "requestSubResource": r.Subresource,
	} {
		if text != "" {
			q[field] = text
		}
	}
	return codec.EncodeJSON(nil, map[string]any{"kind": kindReview, "apiVersion": r.w.review + "/" + h.review, "request": q})
}

func kindTree(k meta.GroupVersionKind) map[string]any {
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

func resourceTree(r meta.Resource) map[string]any {
	return map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
}

func user(u *meta.User) map[string]any {
	tree := map[string]any{}
	if u == nil {
		return tree
	}
	if u.Name != "" {
		tree["username"] = u.Name
	}
	if u.UID != "" {
		tree["uid"] = u.UID
	}
	if len(u.Groups) > 0 {
		tree["groups"] = meta.StringList(u.Groups)
	}
	if len(u.Extra) > 0 {
		extra := map[string]any{}
		for key, values := range u.Extra {
			extra[key] = meta.StringList(values)
		}
		tree["extra"] = extra
	}
	return tree
}

// answer is what a webhook says.
type answer struct {
	Allowed     bool
	Denial      *meta.Status // if it is not allowed
	Patch       []byte       // a JSON patch, of mutating webhooks alone
	Annotations map[string]string
	Warnings    []string
}

// response is the wire form of what a webhook answers.
type response struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Response   *struct {
		UID              string            `json:"uid"`
		Allowed          bool              `json:"allowed"`
		Status           *result           `json:"status"`
		Patch            []byte            `json:"patch"`
		PatchType        *string           `json:"patchType"`
		AuditAnnotations map[string]string `json:"auditAnnotations"`
		Warnings         []string          `json:"warnings"`
	} `json:"response"`
}

type result struct {
	Message string        `json:"message"`
	Reason  meta.Reason   `json:"reason"`
	Details *meta.Details `json:"details"`
	Code    int           `json:"code"`
}

// Bounds of what an answer adds to the audit event.
const (
	maxAnnotations = 64
	maxAnnotation  = 10 << 10 // bytes of a value
)

// patchType is the one form of patches.
const patchType = "JSONPatch"

// read reads the answer of a webhook to the review of a uid in an apiVersion.
func read(body []byte, apiVersion, uid string, mutating bool) (*answer, error) {
	var in response
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	// Those who speak the old version may leave out what it did not ask for.
	strict := meta.ParseAPIVersion(apiVersion).Version == reviewVersions[0]
	if silent := in.Kind == "" && in.APIVersion == ""; (strict || !silent) && (in.Kind != kindReview || in.APIVersion != apiVersion) {
		return nil, fmt.Errorf("expected webhook response of %s, Kind=%s, got %s, Kind=%s", apiVersion, kindReview, in.APIVersion, in.Kind)
	}
	r := in.Response
	if r == nil {
		return nil, errors.New("webhook response was absent")
	}
	if r.UID != uid && (strict || r.UID != "") {
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, r.UID)
	}
	switch {
	case !mutating && strict && len(r.Patch) > 0:
		return nil, errors.New("validating webhook may not return response.patch")
	case !mutating && strict && r.PatchType != nil:
		return nil, errors.New("validating webhook may not return response.patchType")
	case !mutating:
	case strict && len(r.Patch) > 0 && r.PatchType == nil:
		return nil, errors.New("webhook returned response.patch but not response.patchType")
	case strict && len(r.Patch) == 0 && r.PatchType != nil:
		return nil, errors.New("webhook returned response.patchType but not response.patch")
	case r.PatchType != nil && *r.PatchType != patchType:
		return nil, fmt.Errorf("webhook returned invalid response.patchType of %q", *r.PatchType)
	}
	a := &answer{Allowed: r.Allowed, Annotations: r.AuditAnnotations, Warnings: r.Warnings}
	if mutating && r.Allowed {
		a.Patch = r.Patch
	}
	if !r.Allowed {
		a.Denial = r.Status.denial()
	}
	return a, nil
}

// denial is what the caller is told who was refused. Its message has no name yet.
func (s *result) denial() *meta.Status {
	if s == nil {
		s = &result{}
	}
	d := meta.Failure(s.Code, s.Reason, "%s", cmp.Or(s.Message, string(s.Reason)))
	d.Code, d.Details = max(s.Code, http.StatusBadRequest), s.Details
	return d
}
