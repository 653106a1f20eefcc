package core

import (
	"maps"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// maxData is the number of bytes that the data of a ConfigMap or a Secret may
// have together.
const maxData = 1 << 20

// ConfigMap holds configuration that is not confidential, for pods to read as
// files or variables.
type ConfigMap struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Data is the configuration as text. Keys consist of letters, digits, '-',
	// '_' and '.'. Values that are no UTF-8 text belong into binaryData.
	Data map[string]string `json:"data,omitempty" protobuf:"2" schema:"keyFormat=config-key"`

	// BinaryData is configuration in any bytes. The rules for keys are those of
	// data, and no key may be in both.
	BinaryData map[string][]byte `json:"binaryData,omitempty" protobuf:"3" schema:"keyFormat=config-key"`

	// Immutable, once true, fixes data, binaryData and itself; only metadata
	// can change then.
	Immutable *bool `json:"immutable,omitempty" protobuf:"4"`
}

func configMaps() *registry.Kind {
	return registry.Of(registry.Definition[ConfigMap]{
		Version:    version,
		ShortNames: []string{"cm"},
		Columns: []registry.Column{
			{Name: "Data", Type: "string", Doc: "How many keys there are.", Cell: func(o *meta.Object) any {
				return int64(len(o.Map("data")) + len(o.Map("binaryData")))
			}},
			registry.Age(),
		},
		Validate:  validateConfigMap,
		Reference: &compat.Reference{NoGeneration: true, DeleteAnswersStatus: true},
	})
}

func validateConfigMap(w *registry.Change[ConfigMap]) {
	old, new := w.Old, w.New
	if old != nil && is(old.Immutable) {
		fixed(&w.Faults, new.Immutable)
		if !check.Same(new.Data, old.Data) {
			w.Forbidden(check.At("data"), whyFixed)
		}
		if !check.Same(new.BinaryData, old.BinaryData) {
			w.Forbidden(check.At("binaryData"), whyFixed)
		}
	}
	size := 0
	for _, k := range slices.Sorted(maps.Keys(new.Data)) {
		if _, both := new.BinaryData[k]; both {
			w.Invalid(check.At("data").Key(k), k, "duplicate of key present in binaryData")
		}
		size += len(new.Data[k])
	}
	for _, v := range new.BinaryData {
		size += len(v)
	}
	if size > maxData {
		w.TooLong(check.At("").Key(""), maxData)
	}
}

const whyFixed = "field is immutable when `immutable` is set"

// fixed checks that an object that was immutable still is.
func fixed(f *check.Faults, immutable *bool) {
	if !is(immutable) {
		f.Forbidden(check.At("immutable"), whyFixed)
	}
}
