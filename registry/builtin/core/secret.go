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
	"orch.io/controlplane/registry"
)

// Secret holds confidential data, for pods and for the server's own programs.
type Secret struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Data is the secret, base64 in JSON. Keys consist of letters, digits, '-',
	// '_' and '.'; all values together have at most 1 MiB.
	Data map[string][]byte `json:"data,omitempty" protobuf:"2" schema:"keyFormat=config-key"`

	// Type says what the secret is for. Some types ask for certain keys. It
	// cannot change; unset it becomes Opaque.
	Type string `json:"type,omitempty" protobuf:"3" schema:"default=Opaque"`

	// StringData is data as text, for convenience on writes: it is merged into
	// data, where it wins, and never returned.
	StringData map[string]string `json:"stringData,omitempty" protobuf:"4"`

	// Immutable, once true, fixes data, type and itself; only metadata can
	// change then.
	Immutable *bool `json:"immutable,omitempty" protobuf:"5"`
}

func secrets() *registry.Kind {
	return registry.Of(registry.Definition[Secret]{
		Version: version,
		Columns: []registry.Column{
			registry.Text("Type", "What the secret is for.", "type"),
			{Name: "Data", Type: "string", Doc: "How many keys there are.", Cell: func(o *meta.Object) any {
				return int64(len(o.Map("data")))
			}},
			registry.Age(),
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

// mergeStringData moves stringData into data, before the fields get their
// owners.
func mergeStringData(w *registry.Change[meta.Object]) {
	for k, v := range w.New.Map("stringData") {
		text, _ := v.(string)
		w.New.Set(base64.StdEncoding.EncodeToString([]byte(text)), "data", k)
	}
	w.New.Delete("stringData")
}

// warnOfSecret tells what is wrong with the certificate and key of a secret for
// TLS.
func warnOfSecret(w *registry.Change[Secret]) []string {
	if w.New.Type != w.Names.Wire(names.SecretTLS) {
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
		w.Unchanged(check.At("type"), new.Type, old.Type) // clients know it before what the type asks for
	}
	if old != nil && is(old.Immutable) {
		fixed(&w.Faults, new.Immutable)
		if !maps.EqualFunc(new.Data, old.Data, bytes.Equal) {
			w.Forbidden(check.At("data"), whyFixed)
		}
	}
	size := 0
	for _, v := range new.Data {
		size += len(v)
	}
	if size > maxData {
		w.TooLong(check.At("data"), maxData)
	}
	new.needs(&w.Faults, w.Names)
}

// needs checks what the known types ask for.
func (s *Secret) needs(f *check.Faults, p names.Profile) {
	switch s.Type {
	case p.Wire(names.SecretServiceToken):
		account := p.Wire(names.ServiceAccountName)
		if s.Annotations[account] == "" {
			f.Required(check.At("metadata", "annotations").Key(account), "names the account of the token")
		}
	case p.Wire(names.SecretDockercfg):
		s.needsJSON(f, ".dockercfg")
	case p.Wire(names.SecretDockerConfig):
		s.needsJSON(f, ".dockerconfigjson")
	case p.Wire(names.SecretBasicAuth):
		if !s.has("username") && !s.has("password") {
			f.Required(check.At("data").Key("username"), "")
			f.Required(check.At("data").Key("password"), "")
		}
	case p.Wire(names.SecretSSHAuth):
		if len(s.Data["ssh-privatekey"]) == 0 {
			f.Required(check.At("data").Key("ssh-privatekey"), "")
		}
	case p.Wire(names.SecretTLS):
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

func (s *Secret) needsJSON(f *check.Faults, key string) {
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
