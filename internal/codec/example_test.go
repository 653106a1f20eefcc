package codec_test

import (
	"encoding/hex"
	"fmt"
	"reflect"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
)

func ExampleDecodeJSON() {
	tree, duplicates, err := codec.DecodeJSON([]byte(`{"spec":{"replicas":1,"replicas":3}}`), codec.Limits{Depth: 10})
	fmt.Println(tree, duplicates, err)
	_, _, err = codec.DecodeJSON([]byte(`{"spec":}`), codec.Limits{})
	fmt.Println(err)
	// Output:
	// map[spec:map[replicas:3]] [spec.replicas] <nil>
	// the body is no valid JSON: unexpected '}', expected a value at byte 8
}

func ExampleDecodeYAML() {
	tree, _, err := codec.DecodeYAML([]byte("data:\n  answer: yes\n"), codec.Limits{})
	fmt.Println(tree, err)
	// Output: map[data:map[answer:true]] <nil>
}

func ExampleProto() {
	type ticket struct {
		meta.TypeMeta `json:",inline"`
		Title         string `json:"title" protobuf:"1"`
		Votes         *int32 `json:"votes,omitempty" protobuf:"2"`
	}
	s, err := schema.Go(reflect.TypeFor[ticket](), names.Orch)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := codec.NewProto(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	message := p.Append(nil, map[string]any{"title": "hi", "votes": int64(3)})
	tree, err := p.Decode(message, codec.Limits{})
	fmt.Println(hex.EncodeToString(message), tree, err)
	// Output: 0a0268691003 map[title:hi votes:3] <nil>
}

func ExampleTableHead() {
	columns := []codec.Column{{Name: "Name", Type: "string", Format: "name", Cell: func(o *meta.Object) any { return o.Name() }}}
	b := codec.TableHead(nil, names.Kubernetes, "v1", columns, codec.ListMeta{ResourceVersion: "7"})
	obj := &meta.Object{}
	obj.SetName("a")
	b = codec.TableRow(b, names.Kubernetes, "v1", columns, obj, nil, codec.IncludeNone)
	fmt.Println(string(append(b, codec.ListTail...)))
	// Output: {"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"7"},"columnDefinitions":[{"name":"Name","type":"string","format":"name","description":"","priority":0}],"rows":[{"cells":["a"],"object":null}]}
}

func ExampleListHead() {
	b := codec.ListHead(nil, "v1", "ConfigMapList", codec.ListMeta{ResourceVersion: "7", Continue: "next"})
	fmt.Println(string(append(b, codec.ListTail...)))
	// Output: {"apiVersion":"v1","kind":"ConfigMapList","metadata":{"continue":"next","resourceVersion":"7"},"items":[]}
}

func ExampleMetas() {
	o, err := codec.Metas().DeleteOptions.Decode([]byte("\x22\x06Orphan"), codec.Limits{})
	fmt.Println(o, err)
	// Output: map[propagationPolicy:Orphan] <nil>
}
