package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// The bounds of spec.expirationSeconds.
const (
	minTokenSeconds = 10 * 60
	maxTokenSeconds = 1 << 32
)

// request answers a POST to the subresource token of a service account. The answer
// is the TokenRequest with the token in its status. Errors are *meta.Status.
func (t *Tokens) request(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	group := meta.GroupKind{Group: call.Names.Group(wellknown.GroupAuthentication), Kind: "TokenRequest"}
	req := call.Object.Clone()
	if err := checkBody(req, call.Key, group); err != nil {
		return nil, err
	}
	accounts := meta.GroupResource{Resource: "serviceaccounts"}
	account, err := t.config.Client.Get(ctx, accounts, call.Key)
	if err != nil {
		return nil, err
	}
	audiences, seconds, err := t.parameters(req, group, call.Warn)
	if err != nil {
		return nil, err
	}
	if asked := req.UID(); asked != "" && asked != account.UID() {
		return nil, meta.Conflict(meta.GroupResource{Group: group.Group, Resource: group.Kind}, call.Key.Name,
			fmt.Sprintf("the uid of the token request (%s) is not that of the service account (%s)", asked, account.UID()))
	}
	c := private{Namespace: call.Key.Namespace, Account: ref{account.Name(), account.UID()}}
	if req.Map("spec", "boundObjectRef") != nil {
		if err := t.bind(ctx, req, &c); err != nil {
			return nil, err
		}
	}
	now := t.config.Now()
	end := now.Add(time.Duration(seconds) * time.Second)
	token, err := t.issue(c, audiences, now, end)
	if err != nil {
		return nil, meta.Internal(err)
	}
	out := answer(req, call.Key, audiences, seconds, now, end, token)
	if call.Manager != "" {
		out.Metadata()["managedFields"] = []any{owned(call, now)}
	}
	return out, nil
}

// owned returns the managedFields entry of the caller. It has the fields of the
// request, and spec.expirationSeconds, which defaulting sets if the caller does not.
func owned(call *registry.Call, now time.Time) map[string]any {
	leaf := map[string]any{}
	fields := map[string]any{"f:expirationSeconds": leaf}
	if given, _ := call.Object.Get("spec", "audiences"); given != nil {
		fields["f:audiences"] = leaf
	}
	if bound := call.Object.Map("spec", "boundObjectRef"); bound != nil {
		parts := map[string]any{}
		for name := range bound {
			parts["f:"+name] = leaf
		}
		fields["f:boundObjectRef"] = parts
	}
	all := map[string]any{"f:spec": fields}
	texts := map[string]any{}
	for _, name := range []string{"labels", "annotations"} {
		if given := call.Object.Map("metadata", name); given != nil {
			parts := map[string]any{".": leaf}
			for key := range given {
				parts["f:"+key] = leaf
			}
			texts["f:"+name] = parts
		}
	}
	if len(texts) > 0 {
		all["f:metadata"] = texts
	}
	return map[string]any{"manager": call.Manager, "operation": "Update", "apiVersion": call.Object.APIVersion(),
		"time": meta.FormatTime(now), "fieldsType": "FieldsV1", "fieldsV1": all, "subresource": call.Subresource}
}

// checkBody checks that the body is a TokenRequest for the account in the path.
func checkBody(req *meta.Object, key meta.Key, k meta.GroupKind) error {
	gv := meta.ParseAPIVersion(req.APIVersion())
	if req.Kind() != k.Kind || gv.Group != k.Group {
		return meta.BadRequest("the body is no %s: %s, Kind=%s", k, req.APIVersion(), req.Kind())
	}
	if ns := req.Namespace(); ns != "" && ns != key.Namespace {
		return meta.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if n := req.Name(); n != "" && n != key.Name {
		return meta.Invalid(k, key.Name, []meta.StatusCause{{Reason: meta.CauseInvalid, Field: "metadata.name",
			Message: fmt.Sprintf("Invalid value: %q: must be the name of the service account", n)}})
	}
	return nil
}

// parameters returns the audiences and the lifetime in seconds of the token. It
// reduces the lifetime to MaxExpiration and calls warn, which may be nil.
func (t *Tokens) parameters(req *meta.Object, k meta.GroupKind, warn func(string)) ([]string, int64, error) {
	audiences := req.Strings("spec", "audiences")
	if len(audiences) != len(req.List("spec", "audiences")) {
		return nil, 0, meta.BadRequest("spec.audiences must be strings")
	}
	if len(audiences) == 0 {
		audiences = t.config.Audiences
	}
	seconds := int64(defaultExpiration)
	if v, ok := req.Get("spec", "expirationSeconds"); ok && v != nil {
		if seconds = req.Int("spec", "expirationSeconds"); !isNumber(v) {
			return nil, 0, meta.BadRequest("spec.expirationSeconds must be a number")
		}
	}
	var faults check.Violations
	switch at := check.At("spec", "expirationSeconds"); {
	case seconds < minTokenSeconds:
		faults.Invalid(at, seconds, "may not specify a duration less than 10 minutes")
	case seconds > maxTokenSeconds:
		faults.Invalid(at, seconds, "may not specify a duration larger than 2^32 seconds")
	}
	if len(faults) > 0 {
		return nil, 0, meta.Invalid(k, "", faults)
	}
	if longest := int64(t.config.MaxExpiration / time.Second); longest > 0 && seconds > longest {
		if warn != nil {
			warn(fmt.Sprintf("requested expiration of %d seconds shortened to %d seconds", seconds, longest))
		}
		seconds = longest
	}
	return audiences, seconds, nil
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

// bind sets the claims for spec.boundObjectRef. It returns an error if the object
// does not exist, has another uid, or has a kind that tokens cannot be bound to.
func (t *Tokens) bind(ctx context.Context, req *meta.Object, c *private) error {
	get := func(field string) string { return req.String("spec", "boundObjectRef", field) }
	r := ref{Name: get("name")}
	lookup := func(resource, namespace string) (*meta.Object, error) {
		gr := meta.GroupResource{Resource: resource}
		if r.Name == "" {
			return nil, meta.BadRequest("spec.boundObjectRef.name is required")
		}
		o, err := t.config.Client.Get(ctx, gr, meta.Key{Namespace: namespace, Name: r.Name})
		if meta.IsNotFound(err) {
			err = meta.NotFound(gr, r.Name) // the same message if the server does not serve the kind
		}
		return o, err
	}
	var o *meta.Object
	var err error
	gv := meta.ParseAPIVersion(get("apiVersion"))
	switch kind := get("kind"); {
	case gv.Group == "" && kind == "Pod":
		if o, err = lookup("pods", c.Namespace); err == nil {
			c.Pod = &r
			err = t.bindPod(ctx, o, c)
		}
	case gv.Group == "" && kind == "Secret":
		o, err = lookup("secrets", c.Namespace)
		c.Secret = &r
	case gv.Group == "" && kind == "Node":
		o, err = lookup("nodes", "")
		c.Node = &r
	default:
		return meta.BadRequest("cannot bind a token to an object of type %s, Kind=%s", get("apiVersion"), kind)
	}
	if err != nil {
		return err
	}
	r.UID = o.UID()
	if asked := get("uid"); asked != "" && asked != r.UID {
		return meta.Conflict(meta.GroupResource{Resource: get("kind")}, r.Name,
			fmt.Sprintf("the uid in the bound object reference (%s) is not that of the object (%s); it may have been deleted and made again", asked, r.UID))
	}
	return nil
}

// bindPod checks that the pod runs as the account, and adds the pod's node to the
// claims.
func (t *Tokens) bindPod(ctx context.Context, pod *meta.Object, c *private) error {
	runsAs := pod.String("spec", "serviceAccountName")
	if runsAs != c.Account.Name {
		return meta.BadRequest("cannot bind a token of service account %q to a pod that runs as another", c.Account.Name)
	}
	name := pod.String("spec", "nodeName")
	if name == "" {
		return nil
	}
	c.Node = &ref{Name: name}
	node, err := t.config.Client.Get(ctx, meta.GroupResource{Resource: "nodes"}, meta.Key{Name: name})
	if err == nil {
		c.Node.UID = node.UID()
		return nil
	}
	// If the node does not exist, the token has its name without a uid.
	if meta.IsNotFound(err) {
		return nil
	}
	var s *meta.Status
	if errors.As(err, &s) {
		return s
	}
	return meta.Internal(err)
}

// answer sets the metadata, the spec's defaults and the status of req, and returns
// req.
func answer(req *meta.Object, key meta.Key, audiences []string, seconds int64, now, end time.Time, token string) *meta.Object {
	req.SetName(key.Name)
	req.SetNamespace(key.Namespace)
	req.SetUID(uuid.NewString())
	req.SetTime(now, "metadata", "creationTimestamp")
	list := make([]any, 0, len(audiences))
	for _, a := range slices.Clone(audiences) {
		list = append(list, a)
	}
	req.Set(list, "spec", "audiences")
	req.Set(seconds, "spec", "expirationSeconds")
	if req.Map("spec", "boundObjectRef") == nil {
		req.Set(nil, "spec", "boundObjectRef")
	}
	req.Set(map[string]any{"token": token, "expirationTimestamp": meta.FormatTime(end)}, "status")
	return req
}
