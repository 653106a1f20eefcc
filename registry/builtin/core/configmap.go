package core

import (
	"maps"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// maxData is the limit of the data of a ConfigMap or a Secret in bytes.
const maxData = 1 << 20

// ConfigMap holds non-confidential configuration, which pods can use as files or environment variables.
type ConfigMap struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Data is configuration in UTF-8. Keys consist of letters, digits, '-', '_' and '.'. At most 1 MiB
	// together with binaryData.
	Data map[string]string `json:"data,omitempty" protobuf:"2" schema:"keyFormat=config-key"`

	// BinaryData is configuration in arbitrary bytes. Keys have the same form as in data, and must not
	// occur in data.
	BinaryData map[string][]byte `json:"binaryData,omitempty" protobuf:"3" schema:"keyFormat=config-key"`

	// Immutable, if true, forbids changes of data, binaryData and itself.
	Immutable *bool `json:"immutable,omitempty" protobuf:"4"`
}

func configMaps() *registry.Kind {
	return registry.Of(registry.Definition[ConfigMap]{
		Version:    version,
		ShortNames: []string{"cm"},
		Columns: []registry.Column{
			{Name: "Data", Type: "string", Doc: "The number of keys.", Cell: func(o *meta.Object) any {
				return int64(len(o.Map("data")) + len(o.Map("binaryData")))
			}},
			registry.AgeColumn(),
		},
		Validate:  validateConfigMap,
		Reference: &compat.Reference{NoGeneration: true, DeleteAnswersStatus: true},
	})
}

func validateConfigMap(w *registry.Change[ConfigMap]) {
	old, new := w.Old, w.New
	if old != nil && isTrue(old.Immutable) {
		checkStaysImmutable(&w.Violations, new.Immutable)
		if !check.SemanticEqual(new.Data, old.Data) {
			w.Forbidden(check.At("data"), immutableMessage)
		}
		if !check.SemanticEqual(new.BinaryData, old.BinaryData) {
			w.Forbidden(check.At("binaryData"), immutableMessage)
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

const immutableMessage = "field is immutable when `immutable` is set"

// checkStaysImmutable reports that the field immutable is no longer true.
func checkStaysImmutable(f *check.Violations, immutable *bool) {
	if !isTrue(immutable) {
		f.Forbidden(check.At("immutable"), immutableMessage)
	}
}
