package meta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
)

// Errors that hooks, plugins and handlers of a program can return, and the responses to clients.
func ExampleReason() {
	lamps := meta.GroupResource{Group: "example.com", Resource: "lamps"}
	for _, err := range []error{
		meta.BadRequest("a lamp of %d watts", -1),
		meta.Forbidden(lamps, "hall", "no lamps in the hall"),
		meta.NoSuchResource(),
		meta.AlreadyExists(lamps, "hall"),
		meta.Conflict(lamps, "hall", "somebody switched it"),
		meta.Expired("the lamp of last year is forgotten"),
		meta.TooLarge("more than %d lamps", 100),
		meta.Invalid(meta.GroupKind{Group: "example.com", Kind: "Lamp"}, "hall", []meta.StatusCause{{Reason: meta.CauseInvalid, Field: "spec.room", Message: "no such room"}}),
		meta.Internal(errors.New("the fuse has gone")),
		meta.Unavailable("no current"),
		meta.Timeout("the lamp does not answer"),
		meta.InsufficientStorage("no socket is free"),
		meta.Failure(http.StatusTeapot, "Teapot", "this is no lamp"),
	} {
		var status *meta.Status
		if errors.As(fmt.Errorf("lamps: %w", err), &status) {
			fmt.Println(status.Code, meta.ReasonOf(err), status.Message, meta.IsAlreadyExists(err))
		}
	}
	// Output:
	// 400 BadRequest a lamp of -1 watts false
	// 403 Forbidden lamps.example.com "hall" is forbidden: no lamps in the hall false
	// 404 NotFound the server could not find the requested resource false
	// 409 AlreadyExists lamps.example.com "hall" already exists true
	// 409 Conflict Operation cannot be fulfilled on lamps.example.com "hall": somebody switched it false
	// 410 Expired the lamp of last year is forgotten false
	// 413 RequestEntityTooLarge more than 100 lamps false
	// 422 Invalid Lamp.example.com "hall" is invalid: spec.room: no such room false
	// 500 InternalError Internal error occurred: the fuse has gone false
	// 503 ServiceUnavailable no current false
	// 504 Timeout the lamp does not answer false
	// 507 InternalError no socket is free false
	// 418 Teapot this is no lamp false
}

// A client reads the invalid fields from the Status of a failed request.
func ExampleStatusDetails() {
	err := error(meta.Invalid(meta.GroupKind{Kind: "Lamp"}, "hall", []meta.StatusCause{{Reason: meta.CauseRequired, Field: "spec.room"}}))
	var status *meta.Status
	if errors.As(err, &status) {
		var details *meta.StatusDetails = status.Details
		fmt.Println(details.Kind, details.Name, details.Causes[0].Field)
	}
	// Output: Lamp hall spec.room
}

// The hooks of a kind check names, keys and values. A check returns the reasons why a text is
// invalid, or nil.
func ExampleNameChecker() {
	room := func(name string) []string {
		if len(name) != 3 {
			return []string{meta.RegexMessage("a room has three letters", "[a-z]{3}", "den")}
		}
		return meta.CheckDNSLabel(name)
	}
	name := meta.NameChecker(room) // for Definition.ValidateName
	fmt.Println(name("den", false), name("de-", true), name("attic", false))
	for _, found := range [][]string{
		meta.CheckDNSSubdomain("lamps.example.com"),
		meta.CheckDNS1035Label("1st"),
		meta.CheckPathSegment("a/b"),
		meta.CheckQualifiedName("example.com/room"),
		meta.CheckLabelValue("not a value!"),
		meta.CheckKind("Lamp"),
	} {
		fmt.Println(len(found))
	}
	// Output:
	// [] [] [a room has three letters (e.g. 'den', regex used for validation is '[a-z]{3}')]
	// 0
	// 1
	// 1
	// 0
	// 1
	// 0
}

// Hooks work on trees of plain values.
func ExampleClone() {
	tree, err := meta.ParseJSON([]byte(`{"spec":{"watts":40,"rooms":["hall"]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	lamp := meta.NewObject(meta.Clone(tree).(map[string]any))
	fmt.Println(meta.Equal(tree, lamp.Tree()))
	lamp.Set(meta.StringList([]string{"hall", "attic"}), "spec", "rooms")
	fmt.Println(meta.Equal(tree, lamp.Tree()), lamp.Strings("spec", "rooms"))
	// Output:
	// true
	// false [hall attic]
}

// Field sets in the metadata are text until Value decodes them.
func ExampleRawJSON() {
	fields, ok := meta.CompactJSON([]byte(`{ "f:spec": { "f:lit": {} } }`))
	fmt.Println(fields, ok)
	set := meta.NewObject(fields.Value().(map[string]any))
	fmt.Println(set.Map("f:spec", "f:lit") != nil)
	// Output:
	// {"f:spec":{"f:lit":{}}} true
	// true
}

// Table columns and messages show times in these formats.
func ExampleFormatAge() {
	lit := time.Date(2026, 5, 4, 3, 2, 1, 123456000, time.UTC)
	fmt.Println(meta.FormatAge(lit, lit.Add(330*time.Second)))
	fmt.Println(meta.FormatDuration(49 * time.Hour))
	fmt.Println(meta.FormatTime(lit), meta.FormatMicroTime(lit))
	// Output:
	// 5m30s
	// 2d1h
	// 2026-05-04T03:02:01Z 2026-05-04T03:02:01.123456Z
}

// An owner reference has the apiVersion and kind of the owner.
func ExampleParseAPIVersion() {
	owner := meta.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	gv := meta.ParseAPIVersion(owner.APIVersion)
	kind := meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: owner.Kind}
	fmt.Println(kind, kind.GroupKind(), kind.APIVersion())
	// Output: apps/v1, Kind=Deployment Deployment.apps apps/v1
}

// A handler of a program (server.Builder.Handlers) finds its caller in the context. A test sets
// the caller with WithUser.
func ExampleWithUser() {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello", meta.UserFrom(r.Context()).Name)
	})
	r := httptest.NewRequest("GET", "/hello", nil)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r.WithContext(meta.WithUser(context.Background(), &meta.User{Name: "ann"})))
	fmt.Print(answer.Body)
	// Output: hello ann
}

// A controller uses the label selector in the spec of a kind.
func ExampleSelector() {
	type LampSetSpec struct {
		Selector *meta.LabelSelector `json:"selector"`
	}
	spec := LampSetSpec{Selector: &meta.LabelSelector{
		MatchLabels:      map[string]string{"room": "hall"},
		MatchExpressions: []meta.LabelSelectorRequirement{{Key: "broken", Operator: "DoesNotExist"}},
	}}
	text, _ := json.Marshal(spec)
	tree, _ := meta.ParseJSON(text)
	selector, err := meta.LabelSelectorAsSelector(meta.NewObject(tree.(map[string]any)).Map("selector"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, labels := range []map[string]string{{"room": "hall"}, {"room": "hall", "broken": ""}} {
		fmt.Println(selector.Matches(func(key string) (string, bool) { v, ok := labels[key]; return v, ok }))
	}
	// Output:
	// true
	// false
}

// Kinds share the types of common fields.
func ExampleCondition() {
	type LampStatus struct {
		Conditions []meta.Condition  `json:"conditions"`
		Burnt      meta.Duration     `json:"burnt"`
		Driver     meta.RawExtension `json:"driver"`
	}
	text, err := json.Marshal(LampStatus{
		Conditions: []meta.Condition{{Type: "Ready", Status: "False", Reason: "NoCurrent", Message: "the fuse has gone",
			LastTransitionTime: meta.NewTime(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))}},
		Burnt:  meta.Duration{Duration: 90 * time.Minute},
		Driver: meta.RawExtension{Raw: json.RawMessage(`{"volts":12}`)},
	})
	fmt.Println(string(text), err)
	// Output:
	// {"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2026-05-04T03:02:01Z","reason":"NoCurrent","message":"the fuse has gone"}],"burnt":"1h30m0s","driver":{"volts":12}} <nil>
}

// A client reads a list page by page.
func ExampleListMeta() {
	var page struct {
		meta.TypeMeta
		meta.ListMeta `json:"metadata"`
		Items         []struct {
			meta.ObjectMeta `json:"metadata"`
		} `json:"items"`
	}
	err := json.Unmarshal([]byte(`{"kind":"LampList","metadata":{"resourceVersion":"7","continue":"next","remainingItemCount":2},
		"items":[{"metadata":{"name":"hall","ownerReferences":[{"kind":"House","name":"h"}],"managedFields":[{"manager":"ann","fieldsV1":{"f:spec":{}}}]}}]}`), &page)
	for _, m := range page.Items[0].ManagedFields {
		var owned *meta.Fields = m.FieldsV1
		fmt.Println(m.Manager, string(owned.Raw))
	}
	fmt.Println(page.ListMeta.Continue, *page.RemainingItemCount, page.Items[0].Name, page.Items[0].OwnerReferences[0].Kind, err)
	// Output:
	// ann {"f:spec":{}}
	// next 2 hall House <nil>
}

// A Default hook stores quantities in canonical form, although older objects may have other
// forms.
func ExampleCanonicalQuantity() {
	for _, text := range []string{"1024Mi", "1.5", "much"} {
		canonical, err := meta.CanonicalQuantity(text)
		fmt.Println(canonical, err != nil)
	}
	limit := meta.NewQuantity(2048, meta.BinarySI)
	fmt.Println(limit, meta.NewMilliQuantity(1500, meta.DecimalSI))
	// Output:
	// 1Gi false
	// 1500m false
	//  true
	// 2Ki 1500m
}

// A client validates the metadata of an update before it sends it.
func ExampleMetadataWarnings() {
	before := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "hall", "uid": "1", "resourceVersion": "7"}})
	after := before.Clone()
	after.SetUID("2")
	after.Set([]any{"cleanup"}, "metadata", "finalizers")
	rules := meta.MetadataRules{AnyFinalizer: true}
	for _, c := range meta.ValidateMetadata(after, before, rules) {
		fmt.Println(c.Field)
	}
	fmt.Println(meta.MetadataWarnings(after, before, rules))
	// Output:
	// metadata.uid
	// [metadata.finalizers: "cleanup": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers]
}

// TruncatePath limits the length of paths with long map keys.
func ExampleTruncatePath() {
	path := "spec.rooms[" + strings.Repeat("x", 1<<20) + "]"
	fmt.Println(len(meta.TruncatePath([]byte(path))) < 2*meta.MaxPath, meta.TruncatePath([]byte("spec.rooms[hall]")))
	// Output: true spec.rooms[hall]
}
