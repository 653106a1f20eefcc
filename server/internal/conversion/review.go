package conversion

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

// kindReview is the kind of requests and responses.
const kindReview = "ConversionReview"

// depth bounds the nesting of a response: an object and the review around it.
const depth = codec.DefaultDepth + 3

// request is a review that was sent, which the response must match.
type request struct {
	reviewVersion, uid string // apiVersion and UID of the review
	desired            string // apiVersion
	objects            []*meta.Object
}

// parseReview parses a response. It returns the objects of the request in the same order, converted
// to the desired version.
func parseReview(body []byte, q request) ([]*meta.Object, *failure) {
	tree, _, err := codec.DecodeJSON(body, codec.Limits{Depth: depth})
	var list []any
	if err == nil {
		list, err = q.response(meta.NewObject(tree))
	}
	if err != nil {
		return nil, &failure{malformedFailure, fmt.Errorf("failed: %w", err)}
	}
	if len(list) != len(q.objects) {
		return nil, &failure{partialFailure, fmt.Errorf("returned %d objects, expected %d", len(list), len(q.objects))}
	}
	out := make([]*meta.Object, len(list))
	for i, answer := range list {
		tree, ok := answer.(map[string]any)
		if !ok {
			return nil, &failure{invalidFailure, fmt.Errorf("returned invalid converted object at index %d: it is not an object", i)}
		}
		if err := q.checkIdentity(q.objects[i], meta.NewObject(tree)); err != nil {
			return nil, &failure{invalidFailure, fmt.Errorf("returned invalid converted object at index %d: %w", i, err)}
		}
		if tree["metadata"], err = mergeMetadata(q.objects[i], tree); err != nil {
			return nil, &failure{invalidFailure, fmt.Errorf("returned invalid metadata in object at index %d: %w", i, err)}
		}
		out[i] = meta.NewObject(tree)
	}
	return out, nil
}

// response returns the objects of a successful response. In the version v1beta1, a response may
// omit kind, apiVersion and uid.
func (q *request) response(answer *meta.Object) ([]any, error) {
	old := strings.HasSuffix(q.reviewVersion, "beta1")
	if !(old && answer.APIVersion() == "" && answer.Kind() == "") && (answer.APIVersion() != q.reviewVersion || answer.Kind() != kindReview) {
		return nil, fmt.Errorf("expected webhook response of %s, Kind=%s, got %s, Kind=%s", q.reviewVersion, kindReview, answer.APIVersion(), answer.Kind())
	}
	if answer.Map("response") == nil {
		return nil, errors.New("no response provided")
	}
	if uid := answer.String("response", "uid"); uid != q.uid && !(old && uid == "") {
		return nil, fmt.Errorf("expected response.uid=%q, got %q", q.uid, uid)
	}
	if status := answer.String("response", "result", "status"); status != "Success" {
		if why := answer.String("response", "result", "message"); why != "" {
			return nil, errors.New(cut(why))
		}
		return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", cut(status))
	}
	list, _ := answer.Get("response", "convertedObjects")
	objects, ok := list.([]any)
	if !ok && list != nil {
		return nil, errors.New("response.convertedObjects is not a list")
	}
	return objects, nil
}

// maxWord bounds the text of a webhook that an error contains, in bytes.
const maxWord = 4 << 10

// cut shortens text of a webhook to maxWord.
func cut(text string) string {
	if len(text) <= maxWord {
		return text
	}
	return strings.ToValidUTF8(text[:maxWord], "") + "..."
}

// checkIdentity checks that an object is the object that was sent, in the desired version.
func (q *request) checkIdentity(before, now *meta.Object) error {
	if now.APIVersion() != q.desired {
		return fmt.Errorf("invalid groupVersion (expected %s, received %s)", q.desired, cut(now.APIVersion()))
	}
	for _, f := range []struct{ name, before, now string }{
		{"kind", before.Kind(), now.Kind()}, {"name", before.Name(), now.Name()},
		{"namespace", before.Namespace(), now.Namespace()}, {"UID", before.UID(), now.UID()},
	} {
		if f.before != f.now {
			return fmt.Errorf("must have the same %s: %s != %s", f.name, f.before, cut(f.now))
		}
	}
	return nil
}

// mergeMetadata returns the metadata of the object that was sent, with the labels and annotations
// of the response. A conversion may not change other metadata.
func mergeMetadata(before *meta.Object, now map[string]any) (map[string]any, error) {
	answer, ok := now["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("missing metadata in converted object")
	}
	out, changed := maps.Clone(before.Map("metadata")), map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		delete(out, field)
		if answer[field] == nil {
			continue
		}
		words, ok := answer[field].(map[string]any)
		for _, word := range words {
			_, text := word.(string)
			ok = ok && text
		}
		if !ok {
			return nil, fmt.Errorf("metadata.%s must be a map of strings", field)
		}
		if len(words) > 0 {
			out[field], changed[field] = words, words
		}
	}
	if causes := meta.ValidateMetadata(meta.NewObject(map[string]any{"metadata": changed}), nil, meta.MetadataRules{Embedded: true}); len(causes) > 0 {
		return nil, fmt.Errorf("%s: %s", causes[0].Field, cut(causes[0].Message))
	}
	return out, nil
}
