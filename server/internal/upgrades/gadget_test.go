package upgrades_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

// Gadget has three versions; this version, v2, is the hub.
type Gadget struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`
	Spec            GadgetSpec   `json:"spec,omitempty" protobuf:"2"`
	Status          GadgetStatus `json:"status,omitempty" protobuf:"3"`
}

type GadgetSpec struct {
	Size    int32             `json:"size,omitempty" protobuf:"1" schema:"min=0"`
	Access  *GadgetAccess     `json:"access,omitempty" protobuf:"2"`
	Ports   []GadgetPort      `json:"ports,omitempty" protobuf:"3" schema:"listType=map,listMapKeys=name"`
	Notes   []string          `json:"notes,omitempty" protobuf:"4"` // unknown to the others
	Tuning  map[string]string `json:"tuning,omitempty" protobuf:"5"`
	Mode    string            `json:"mode,omitempty" protobuf:"6" schema:"default=auto,enum=auto|manual|off"`
	Checked bool              `json:"checked,omitempty" protobuf:"7"`
}

type GadgetAccess struct {
	Host       string `json:"host,omitempty" protobuf:"1"`
	MinVersion string `json:"minVersion,omitempty" protobuf:"2"` // unknown to the others
}

type GadgetPort struct {
	Name     string `json:"name" protobuf:"1" schema:"required"`
	Number   int32  `json:"number,omitempty" protobuf:"2"`
	Protocol string `json:"protocol,omitempty" protobuf:"3"` // unknown to v1alpha1
}

type GadgetStatus struct {
	Ready  int32  `json:"ready,omitempty" protobuf:"1"`
	Reason string `json:"reason,omitempty" protobuf:"2"` // unknown to v1alpha1
}

// GadgetV1 has other names and is flat.
type GadgetV1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`
	Spec            struct {
		Replicas int32             `json:"replicas,omitempty" protobuf:"1"`
		Host     string            `json:"host,omitempty" protobuf:"2"`
		Ports    []GadgetPort      `json:"ports,omitempty" protobuf:"3" schema:"listType=map,listMapKeys=name"`
		Tuning   map[string]string `json:"tuning,omitempty" protobuf:"4"`
		Mode     string            `json:"mode,omitempty" protobuf:"5" schema:"default=manual"` // another default
	} `json:"spec,omitempty" protobuf:"2"`
	Status GadgetStatus `json:"status,omitempty" protobuf:"3"`
}

// GadgetV1alpha1 is the oldest version.
type GadgetV1alpha1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`
	Spec            struct {
		Count int32        `json:"count,omitempty" protobuf:"1"`
		Ports []GadgetDoor `json:"doors,omitempty" protobuf:"2" schema:"listType=map,listMapKeys=title"`
	} `json:"spec,omitempty" protobuf:"2"`
	Status struct {
		Ready int32 `json:"readyCount,omitempty" protobuf:"1"`
	} `json:"status,omitempty" protobuf:"3"`
}

type GadgetDoor struct {
	Title  string `json:"title" protobuf:"1"`
	Number int32  `json:"number,omitempty" protobuf:"2"`
}

func gadgetFromV1(in *GadgetV1, out *Gadget) error {
	switch in.Spec.Host {
	case "unspeakable":
		return errors.New("spec.host: nobody may be called so")
	case "panic":
		panic("on demand")
	}
	out.Spec = GadgetSpec{Size: in.Spec.Replicas, Ports: in.Spec.Ports, Tuning: in.Spec.Tuning, Mode: in.Spec.Mode}
	if in.Spec.Host != "" {
		out.Spec.Access = &GadgetAccess{Host: in.Spec.Host}
	}
	out.Status = in.Status
	return nil
}

func gadgetToV1(in *Gadget, out *GadgetV1) error {
	if slices.Contains(in.Spec.Notes, "only in v2") {
		return errors.New("spec.notes: v1 cannot say this")
	}
	out.Spec.Replicas, out.Spec.Ports, out.Spec.Tuning, out.Spec.Mode = in.Spec.Size, in.Spec.Ports, in.Spec.Tuning, in.Spec.Mode
	if in.Spec.Access != nil {
		out.Spec.Host = in.Spec.Access.Host
	}
	out.Status = in.Status
	return nil
}

func gadgetFromV1alpha1(in *GadgetV1alpha1, out *Gadget) error {
	out.Spec.Size, out.Status.Ready = in.Spec.Count, in.Status.Ready
	for _, d := range in.Spec.Ports {
		out.Spec.Ports = append(out.Spec.Ports, GadgetPort{Name: d.Title, Number: d.Number})
	}
	return nil
}

func gadgetToV1alpha1(in *Gadget, out *GadgetV1alpha1) error {
	out.Spec.Count, out.Status.Ready = in.Spec.Size, in.Status.Ready
	for _, p := range in.Spec.Ports {
		out.Spec.Ports = append(out.Spec.Ports, GadgetDoor{Title: p.Name, Number: p.Number})
	}
	return nil
}

// gadgets returns the kind with the given storage version.
func gadgets(stored string) registry.Definition[Gadget] {
	return registry.Definition[Gadget]{
		Group: "example.com", Version: "v2", Storage: stored, Status: true,
		Scale:  &registry.Scale{SpecReplicas: ".spec.size", StatusReplicas: ".status.ready"},
		Fields: []registry.SelectableField{{Name: "spec.mode"}},
		Columns: []registry.Column{
			{Name: "Size", Type: "integer", JSONPath: ".spec.size"},
			{Name: "Notes", Type: "string", JSONPath: ".spec.notes"},
		},
		Versions: []registry.VersionOf[Gadget]{
			registry.Spoke[GadgetV1, Gadget]{Version: "v1", ToHub: gadgetFromV1, FromHub: gadgetToV1},
			registry.Spoke[GadgetV1alpha1, Gadget]{
				Version: "v1alpha1", ToHub: gadgetFromV1alpha1, FromHub: gadgetToV1alpha1,
				Default: func(w *registry.Change[GadgetV1alpha1]) {
					if w.New.Spec.Count == 0 {
						w.New.Spec.Count = 1
					}
				},
				Columns: []registry.Column{{Name: "Count", Type: "integer", JSONPath: ".spec.count"}},
			},
		},
		Prepare: func(w *registry.Change[Gadget]) { w.New.Spec.Checked = true },
		Validate: func(w *registry.Change[Gadget]) {
			if w.New.Spec.Size > 100 {
				w.Invalid(check.At("spec", "size"), w.New.Spec.Size, "is too much")
			}
		},
	}
}

const gadgetGroup = "/apis/example.com/"

func gadgetPath(version, name string) string {
	return strings.TrimSuffix(gadgetGroup+version+"/namespaces/default/gadgets/"+name, "/")
}

func gadgetServer(t *testing.T, store storage.Backend, stored string, more ...func(*server.Builder)) *apitest.Client {
	more = append(more, apitest.WithStorage(store), func(b *server.Builder) { b.Register(registry.Of(gadgets(stored))) })
	return apitest.InProcess(t, servertest.New(t, more...))
}

// fullGadget is a gadget of v2 with fields that the other versions cannot represent.
const fullGadget = `{"apiVersion":"example.com/v2","kind":"Gadget","metadata":{"name":"NAME","labels":{"a":"b"}},"spec":{
	"size":3,"access":{"host":"h","minVersion":"1.3"},"notes":["x","y"],"tuning":{"p":"q"},"mode":"off",
	"ports":[{"name":"web","number":80,"protocol":"TCP"},{"name":"dns","number":53,"protocol":"UDP"}]}}`
