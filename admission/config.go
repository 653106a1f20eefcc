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
)

// maxConfig bounds a file of configuration, in bytes.
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

// LoadConfig reads a file of kind AdmissionConfiguration for the plugins of a table: by
// their names what [Options].Config takes. It holds configurations or names files with
// them, by paths that start at its directory. The error joins all faults: a plugin that
// is not in the table or has nothing to configure, a field that its configuration does
// not have, another kind than its own. Warnings tell of kinds that newer ones replaced.
func LoadConfig(path string, table []Plugin, p names.Profile) (config map[string]any, warnings []string, err error) {
	l := &loader{names: p, dir: filepath.Dir(path), config: map[string]any{}}
	var file configuration
	data, err := readFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(data, &file)
	}
	if err == nil {
		err = l.kind(file.TypeMeta, []meta.GroupVersionKind{
			{Group: names.GroupServerConfig, Version: "v1", Kind: "AdmissionConfiguration"},
			{Group: names.GroupServerAlpha, Version: "v1alpha1", Kind: "AdmissionConfiguration"},
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

// load reads the configuration of one plugin.
func (l *loader) load(of pluginConfiguration, table []Plugin) error {
	i := slices.IndexFunc(table, func(p Plugin) bool { return p.Name == of.Name })
	_, twice := l.config[of.Name]
	switch {
	case i < 0:
		return errors.New("there is no admission plugin of that name")
	case twice:
		return errors.New("it is configured twice")
	case of.Path != "" && len(of.Configuration) > 0:
		return errors.New("it has both a path and a configuration")
	case of.Path == "" && len(of.Configuration) == 0:
		return nil
	case table[i].Config == nil:
		return errors.New("the plugin has nothing to configure")
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

// decode reads what a plugin is configured with over what it is by default.
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

// kind checks that a document is of one of some kinds; all but the first are old.
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
	return fmt.Errorf("it is %s %s, not %s/%s %s", cmp.Or(of.APIVersion, "of no version"), of.Kind, l.names.Group(kinds[0].Group), kinds[0].Version, kinds[0].Kind)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(data) > maxConfig {
		err = fmt.Errorf("it is longer than %d bytes", maxConfig)
	}
	return data, err
}
