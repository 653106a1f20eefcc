package admission

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"sigs.k8s.io/yaml"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

// maxConfig is the maximum size of a configuration file in bytes.
const maxConfig = 3 << 20

// configuration is a file of kind AdmissionConfiguration.
type configuration struct {
	meta.TypeMeta `json:",inline"`
	Plugins       []pluginConfiguration `json:"plugins,omitempty"`
}

type pluginConfiguration struct {
	Name          string          `json:"name"`
	Path          string          `json:"path,omitempty"`
	Configuration json.RawMessage `json:"configuration,omitempty"`
}

// LoadConfig reads a file of kind AdmissionConfiguration for the plugins of a table. config is the
// configuration of plugins by name, for [Options].Config. The file contains configurations or names files
// with them, by paths relative to its directory. The error joins all errors: plugins that are not in the
// table or have no configuration, unknown fields, and wrong kinds. warnings are about deprecated kinds.
func LoadConfig(path string, table []Plugin, p names.Profile) (config map[string]any, warnings []string, err error) {
	l := &loader{names: p, dir: filepath.Dir(path), config: map[string]any{}}
	var file configuration
	data, err := readFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(data, &file)
	}
	if err == nil {
		err = l.kind(file.TypeMeta, []meta.GroupVersionKind{
			{Group: wellknown.GroupServerConfig, Version: "v1", Kind: "AdmissionConfiguration"},
			{Group: wellknown.GroupServerAlpha, Version: "v1alpha1", Kind: "AdmissionConfiguration"},
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	var faults []error
	for i, of := range file.Plugins {
		if err := l.load(of, table); err != nil {
			faults = append(faults, fmt.Errorf("%s: plugins[%d] %q: %w", path, i, of.Name, err))
		}
	}
	return l.config, l.warnings, errors.Join(faults...)
}

type loader struct {
	names    names.Profile
	dir      string
	config   map[string]any
	warnings []string
}

// load reads the configuration of a plugin.
func (l *loader) load(of pluginConfiguration, table []Plugin) error {
	i := slices.IndexFunc(table, func(p Plugin) bool { return p.Name == of.Name })
	_, twice := l.config[of.Name]
	switch {
	case i < 0:
		return errors.New("unknown admission plugin")
	case twice:
		return errors.New("configured twice")
	case of.Path != "" && len(of.Configuration) > 0:
		return errors.New("both path and configuration are set")
	case of.Path == "" && len(of.Configuration) == 0:
		return nil
	case table[i].Config == nil:
		return errors.New("the plugin has no configuration")
	}
	data := []byte(of.Configuration)
	if of.Path != "" {
		if !filepath.IsAbs(of.Path) {
			of.Path = filepath.Join(l.dir, of.Path)
		}
		var err error
		if data, err = readFile(of.Path); err != nil {
			return err
		}
	}
	config, err := l.decode(data, &table[i])
	if err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(of.Path, "configuration"), err)
	}
	l.config[of.Name] = config
	return nil
}

// decode decodes a configuration over a copy of the plugin's default.
func (l *loader) decode(data []byte, p *Plugin) (any, error) {
	if len(p.ConfigKinds) > 0 {
		var tree map[string]any
		if err := yaml.UnmarshalStrict(data, &tree); err != nil {
			return nil, err
		}
		of := meta.NewObject(tree)
		if err := l.kind(meta.TypeMeta{APIVersion: of.APIVersion(), Kind: of.Kind()}, p.ConfigKinds); err != nil {
			return nil, err
		}
		delete(tree, "apiVersion")
		delete(tree, "kind")
		var err error
		if data, err = json.Marshal(tree); err != nil {
			return nil, err
		}
	}
	config := reflect.New(reflect.TypeOf(p.Config))
	config.Elem().Set(reflect.ValueOf(p.Config))
	if err := yaml.UnmarshalStrict(data, config.Interface()); err != nil {
		return nil, err
	}
	return config.Elem().Interface(), nil
}

// kind checks that the kind of a document is one of kinds. All but the first are deprecated.
func (l *loader) kind(of meta.TypeMeta, kinds []meta.GroupVersionKind) error {
	for i, k := range kinds {
		k.Group = l.names.Group(k.Group)
		if k.APIVersion() != of.APIVersion || k.Kind != of.Kind {
			continue
		}
		if i > 0 {
			now := kinds[0]
			l.warnings = append(l.warnings, fmt.Sprintf("%s %s is deprecated; use %s/%s %s", of.APIVersion, of.Kind, l.names.Group(now.Group), now.Version, now.Kind))
		}
		return nil
	}
	return fmt.Errorf("unsupported kind: apiVersion %q, kind %q; use %s/%s %s", of.APIVersion, of.Kind, l.names.Group(kinds[0].Group), kinds[0].Version, kinds[0].Kind)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(data) > maxConfig {
		err = fmt.Errorf("file is longer than %d bytes", maxConfig)
	}
	return data, err
}
