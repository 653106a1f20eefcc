package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

// kindReview is the kind of requests and responses.
const kindReview = "AdmissionReview"

// raw returns the JSON of an object as a value of a tree, or nil if the object is nil.
func raw(obj *meta.Object) any {
	if obj == nil {
		return nil
	}
	return meta.RawJSON(codec.EncodeJSON(nil, obj.Tree()))
}

// body returns the encoded AdmissionReview for a webhook.
func (r *request) body(h *hook, v *matcher.View, uid string) []byte {
	q := r.About(v)
	q["uid"], q["object"], q["oldObject"], q["options"] = uid, r.texts[v.Object], r.texts[v.Old], raw(r.Options)
	return codec.EncodeJSON(nil, map[string]any{"kind": kindReview, "apiVersion": r.w.review + "/" + h.review, "request": q})
}

// request is an admission request with a cache that its reviews share. It is not safe for
// concurrent use, except for body.
type request struct {
	matcher.Request
	w     *webhooks
	texts map[*meta.Object]any // encoded objects of views
}

// changed drops the cached views and encodings, because the object changed.
func (r *request) changed() {
	r.Changed()
	r.texts = nil
}

// see returns the request in a version, and encodes its objects, so that body can be called concurrently.
func (r *request) see(ctx context.Context, version meta.GroupVersion) (*matcher.View, error) {
	v, err := r.See(ctx, version)
	if err != nil {
		return nil, err
	}
	if r.texts == nil {
		r.texts = map[*meta.Object]any{}
	}
	for _, obj := range []*meta.Object{v.Object, v.Old} {
		if r.texts[obj] == nil {
			r.texts[obj] = raw(obj)
		}
	}
	return v, nil
}

// answer is the decoded response of a webhook.
type answer struct {
	Allowed     bool
	Denial      *meta.Status // nil if allowed
	Patch       []byte       // a JSON patch; nil for validating webhooks
	Annotations map[string]string
	Warnings    []string
}

// response is the AdmissionReview that a webhook returns. Field names are matched case-sensitively, unlike in
// encoding/json; other fields are ignored.
type response struct {
	kind, apiVersion string
	response         *verdict
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *response) UnmarshalJSON(data []byte) error {
	return fields(data, "kind", &r.kind, "apiVersion", &r.apiVersion, "response", &r.response)
}

type verdict struct {
	uid         string
	allowed     bool
	status      *result
	patch       []byte
	patchType   *string
	annotations map[string]string
	warnings    []string
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *verdict) UnmarshalJSON(data []byte) error {
	return fields(data, "uid", &v.uid, "allowed", &v.allowed, "status", &v.status, "patch", &v.patch, "patchType", &v.patchType,
		"auditAnnotations", &v.annotations, "warnings", &v.warnings)
}

type result struct {
	message string
	reason  meta.Reason
	details *details
	code    int32
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *result) UnmarshalJSON(data []byte) error {
	return fields(data, "message", &s.message, "reason", &s.reason, "details", &s.details, "code", &s.code)
}

type details meta.StatusDetails

// UnmarshalJSON implements json.Unmarshaler.
func (d *details) UnmarshalJSON(data []byte) error {
	var causes []cause
	err := fields(data, "name", &d.Name, "group", &d.Group, "kind", &d.Kind, "uid", &d.UID, "causes", &causes, "retryAfterSeconds", &d.RetryAfterSeconds)
	for _, c := range causes {
		d.Causes = append(d.Causes, meta.StatusCause(c))
	}
	return err
}

type cause meta.StatusCause

// UnmarshalJSON implements json.Unmarshaler.
func (c *cause) UnmarshalJSON(data []byte) error {
	return fields(data, "reason", &c.Reason, "message", &c.Message, "field", &c.Field)
}

// fields decodes fields of a JSON object. namesAndTargets are pairs of a name, which must match exactly, and
// a pointer for its value.
func fields(data []byte, namesAndTargets ...any) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	for i := 0; i < len(namesAndTargets); i += 2 {
		name := namesAndTargets[i].(string)
		if text, ok := values[name]; ok {
			if err := json.Unmarshal(text, namesAndTargets[i+1]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// patchType is the only type of patches.
const patchType = "JSONPatch"

// read validates the response to the review with the given uid and apiVersion. For v1beta1 it requires only a
// response: kind, apiVersion, uid and patchType were optional in that version.
func (in *response) read(apiVersion, uid string, mutating bool) (*answer, error) {
	strict := meta.ParseAPIVersion(apiVersion).Version == reviewVersions[0]
	if !strict {
		in.kind, in.apiVersion = cmp.Or(in.kind, kindReview), cmp.Or(in.apiVersion, apiVersion)
	}
	if in.kind != kindReview || in.apiVersion != apiVersion {
		got := meta.ParseAPIVersion(in.apiVersion)
		return nil, fmt.Errorf("expected webhook response of %s, Kind=%s, got %s/%s, Kind=%s", apiVersion, kindReview, got.Group, got.Version, in.kind)
	}
	v := in.response
	if v == nil {
		return nil, errors.New("webhook response was absent")
	}
	if strict {
		if err := v.check(uid, mutating); err != nil {
			return nil, err
		}
	}
	a := &answer{Allowed: v.allowed, Annotations: v.annotations, Warnings: v.warnings}
	switch {
	case !v.allowed:
		a.Denial = v.status.denial()
	case mutating:
		a.Patch = v.patch
	}
	return a, nil
}

// check returns the violation of the rules of v1, if any.
func (v *verdict) check(uid string, mutating bool) error {
	switch {
	case v.uid != uid:
		return fmt.Errorf("expected response.uid=%q, got %q", uid, v.uid)
	case !mutating && len(v.patch) > 0:
		return errors.New("validating webhook may not return response.patch")
	case !mutating && v.patchType != nil:
		return errors.New("validating webhook may not return response.patchType")
	case len(v.patch) > 0 && v.patchType == nil:
		return errors.New("webhook returned response.patch but not response.patchType")
	case len(v.patch) == 0 && v.patchType != nil:
		return errors.New("webhook returned response.patchType but not response.patch")
	case v.allowed && v.patchType != nil && *v.patchType != patchType:
		return fmt.Errorf("webhook returned invalid response.patchType of %q", *v.patchType)
	}
	return nil
}

// denial returns the Status for the refused caller. The name of the webhook is added to its message by named.
func (s *result) denial() *meta.Status {
	if s == nil {
		s = &result{}
	}
	d := meta.Failure(int(s.code), s.reason, "%s", cmp.Or(s.message, string(s.reason)))
	d.Code, d.Details = max(int(s.code), http.StatusBadRequest), (*meta.StatusDetails)(s.details)
	return d
}
