package meta_test

import (
	"encoding/json"
	"fmt"
	"time"

	"orch.io/controlplane/api/meta"
)

func ExampleParseFieldSelector() {
	s, err := meta.ParseFieldSelector(`metadata.name=a,status.phase!=Failed`)
	name, ok := s.Value("metadata.name")
	fmt.Println(name, ok, err, s.Requirements()[1].Not)
	// Output: a true <nil> true
}

func ExampleLabelSelectorAsSelector() {
	s, err := meta.LabelSelectorAsSelector(map[string]any{
		"matchLabels":      map[string]any{"app": "web"},
		"matchExpressions": []any{map[string]any{"key": "tier", "operator": "In", "values": []any{"b", "a"}}},
	})
	fmt.Println(s, err)
	// Output: app=web,tier in (a,b) <nil>
}

func ExampleSelector_Requirements() {
	s, err := meta.ParseLabelSelector("app=web,tier notin (b,a),!old,size>3")
	fmt.Println(s.Requirements(), err)
	// Output: [{app In [web]} {old DoesNotExist []} {tier NotIn [a b]}] <nil>
}

func ExampleValidateMetadata() {
	obj := &meta.Object{}
	obj.SetName("Not_a_name")
	obj.SetNamespace("default")
	for _, c := range meta.ValidateMetadata(obj, nil, meta.MetadataRules{Namespaced: true}) {
		fmt.Println(c.Reason, c.Field)
	}
	// Output: FieldValueInvalid metadata.name
}

func ExampleObject() {
	obj := meta.NewObject(map[string]any{"spec": map[string]any{"replicas": int64(3)}})
	obj.SetName("a")
	fmt.Println(obj.Name(), obj.Int("spec", "replicas"))
	// Output: a 3
}

func ExampleStatus() {
	err := error(meta.NotFound(meta.GroupResource{Group: "apps", Resource: "deployments"}, "web"))
	fmt.Println(err, meta.IsNotFound(err))
	// Output: deployments.apps "web" not found true
}

func ExampleQuantity() {
	a, _ := meta.ParseQuantity("1.5Gi")
	b, _ := meta.ParseQuantity("512Mi")
	fmt.Println(a, a.Add(b), a.Cmp(b), a.Value())
	// Output: 1536Mi 2Gi 1 1610612736
}

func ExampleParseKey() {
	for _, text := range []string{"default/web", "node-1", "a/b/c"} {
		key, err := meta.ParseKey(text)
		fmt.Printf("%q %q %v\n", key.Namespace, key.Name, err)
	}
	// Output:
	// "default" "web" <nil>
	// "" "node-1" <nil>
	// "" "" "a/b/c" is not of the form namespace/name or name
}

func ExampleIntOrString() {
	for _, v := range []meta.IntOrString{meta.FromInt(8080), meta.FromString("http")} {
		text, _ := json.Marshal(v)
		fmt.Println(string(text))
	}
	// Output:
	// 8080
	// "http"
}

func ExampleTime() {
	at := time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC)
	seconds, _ := json.Marshal(meta.NewTime(at))
	micros, _ := json.Marshal(meta.NewMicroTime(at))
	fmt.Println(string(seconds), string(micros))
	// Output: "2026-05-04T03:02:01Z" "2026-05-04T03:02:01.123456Z"
}
