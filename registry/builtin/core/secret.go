package core

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Secret holds confidential data for pods and for the control plane.
type Secret struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Data is the secret data, base64-encoded in JSON. Keys consist of letters, digits, '-', '_' and
	// '.'. At most 1 MiB.
	Data map[string][]byte `json:"data,omitempty" protobuf:"2" schema:"keyFormat=config-key"`

	// Type is the use of the Secret; some types require certain keys. Default Opaque. Immutable.
	Type string `json:"type,omitempty" protobuf:"3" schema:"default=Opaque"`

	// StringData is data as text, for convenience in requests. It is merged into data, takes
	// precedence, and is never returned.
	StringData map[string]string `json:"stringData,omitempty" protobuf:"4"`

	// Immutable, if true, forbids changes of data, type and itself.
	Immutable *bool `json:"immutable,omitempty" protobuf:"5"`
}

func secrets() *registry.Kind {
	return registry.Of(registry.Definition[Secret]{
		Version: version,
		Columns: []registry.Column{
			registry.TextColumn("Type", "The type of the Secret.", "type"),
			{Name: "Data", Type: "string", Doc: "The number of keys.", Cell: func(o *meta.Object) any {
				return int64(len(o.Map("data")))
			}},
			registry.AgeColumn(),
		},
		Validate: validateSecret,
		Warn:     warnOfSecret,
		Fields:   []registry.SelectableField{{Name: "type"}},
		Behavior: registry.Behavior{
			Default: mergeStringData,
		},
		Reference: &compat.Reference{NoGeneration: true, DeleteAnswersStatus: true},
	})
}

// mergeStringData moves stringData to data. It runs before field ownership is recorded, so that the
// caller owns the fields of data.
func mergeStringData(w *registry.Change[meta.Object]) {
	for k, v := range w.New.Map("stringData") {
		text, _ := v.(string)
		w.New.Set(base64.StdEncoding.EncodeToString([]byte(text)), "data", k)
	}
	w.New.Delete("stringData")
}

// warnOfSecret returns a warning if the certificate and the key of a TLS Secret are invalid.
func warnOfSecret(w *registry.Change[Secret]) []string {
	if w.New.Type != w.Names.Wire(wellknown.SecretTLS) {
		return nil
	}
	if _, err := pki.ParseKeyPair(w.New.Data["tls.crt"], w.New.Data["tls.key"]); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func validateSecret(w *registry.Change[Secret]) {
	old, new := w.Old, w.New
	if old != nil {
		w.Unchanged(check.At("type"), new.Type, old.Type) // before the rules of the type, as at kube-apiserver
	}
	if old != nil && isTrue(old.Immutable) {
		checkStaysImmutable(&w.Violations, new.Immutable)
		if !maps.EqualFunc(new.Data, old.Data, bytes.Equal) {
			w.Forbidden(check.At("data"), immutableMessage)
		}
	}
	size := 0
	for _, v := range new.Data {
		size += len(v)
	}
	if size > maxData {
		w.TooLong(check.At("data"), maxData)
	}
	new.checkType(&w.Violations, w.Names)
}

// checkType checks the keys that known types require.
func (s *Secret) checkType(f *check.Violations, p names.Profile) {
	switch s.Type {
	case p.Wire(wellknown.SecretServiceToken):
		account := p.Wire(wellknown.ServiceAccountName)
		if s.Annotations[account] == "" {
			f.Required(check.At("metadata", "annotations").Key(account), "names the account of the token")
		}
	case p.Wire(wellknown.SecretDockercfg):
		s.checkJSON(f, ".dockercfg")
	case p.Wire(wellknown.SecretDockerConfig):
		s.checkJSON(f, ".dockerconfigjson")
	case p.Wire(wellknown.SecretBasicAuth):
		if !s.has("username") && !s.has("password") {
			f.Required(check.At("data").Key("username"), "")
			f.Required(check.At("data").Key("password"), "")
		}
	case p.Wire(wellknown.SecretSSHAuth):
		if len(s.Data["ssh-privatekey"]) == 0 {
			f.Required(check.At("data").Key("ssh-privatekey"), "")
		}
	case p.Wire(wellknown.SecretTLS):
		for _, k := range []string{"tls.crt", "tls.key"} {
			if !s.has(k) {
				f.Required(check.At("data").Key(k), "")
			}
		}
	}
}

func (s *Secret) has(key string) bool {
	_, ok := s.Data[key]
	return ok
}

func (s *Secret) checkJSON(f *check.Violations, key string) {
	at := check.At("data").Key(key)
	value, ok := s.Data[key]
	var any map[string]any
	switch {
	case !ok:
		f.Required(at, "")
	case json.Unmarshal(value, &any) != nil:
		f.Invalid(at, "<secret contents redacted>", "must be a JSON object")
	}
}
