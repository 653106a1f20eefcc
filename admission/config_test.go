package admission_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// attic is the configuration of a test plugin.
type attic struct {
	Rooms []string `json:"rooms"`
	Most  int      `json:"most"`
}

func configurable() []admission.Plugin {
	kinds := []meta.GroupVersionKind{{Group: "attic.example.com", Version: "v1", Kind: "Attic"}, {Group: "attic.example.com", Version: "v1alpha1", Kind: "OldAttic"}}
	return []admission.Plugin{{Name: "Attic", Config: attic{Most: 3}, ConfigKinds: kinds}, {Name: "Plain", Config: attic{}}, {Name: "Fixed"}}
}

// TestLoadConfig checks configurations in the file and in other files, and that errors name the plugin.
func TestLoadConfig(t *testing.T) {
	const head, inline = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n", "{apiVersion: attic.example.com/v1, kind: Attic"
	for _, tc := range []struct {
		file, want string // want is an error
		config     map[string]any
		warnings   []string
	}{
		{file: head + `plugins: [{name: Attic, configuration: ` + inline + `, rooms: [a]}}, {name: Plain, path: plain.yaml}, {name: Fixed}]`,
			config: map[string]any{"Attic": attic{[]string{"a"}, 3}, "Plain": attic{[]string{"b"}, 5}}},
		{file: "apiVersion: apiserver.k8s.io/v1alpha1\nkind: AdmissionConfiguration\n" + `plugins: [{name: Attic, configuration: {apiVersion: attic.example.com/v1alpha1, kind: OldAttic, most: 1}}]`,
			config: map[string]any{"Attic": attic{nil, 1}}, warnings: []string{
				"apiserver.k8s.io/v1alpha1 AdmissionConfiguration is deprecated; use apiserver.config.k8s.io/v1 AdmissionConfiguration",
				"attic.example.com/v1alpha1 OldAttic is deprecated; use attic.example.com/v1 Attic"}},
		{file: head, config: map[string]any{}},
		{file: ``, want: `unsupported kind: apiVersion "", kind ""; use apiserver.config.k8s.io/v1 AdmissionConfiguration`},
		{file: "apiVersion: apiserver.config.k8s.io/v1\nkind: Other", want: `unsupported kind: apiVersion "apiserver.config.k8s.io/v1", kind "Other"; use`},
		{file: head + `plugin: []`, want: `unknown field "plugin"`},
		{file: head + `plugins: [{name: Cellar}]`, want: `plugins[0] "Cellar": unknown admission plugin`},
		{file: head + `plugins: [{name: Fixed, configuration: {a: b}}]`, want: `plugins[0] "Fixed": the plugin has no configuration`},
		{file: head + `plugins: [{name: Plain, configuration: {a: b}}]`, want: `plugins[0] "Plain": configuration: error unmarshaling JSON: while decoding JSON: json: unknown field "a"`},
		{file: head + `plugins: [{name: Plain, path: none.yaml}]`, want: `none.yaml: no such file`},
		{file: head + `plugins: [{name: Plain, path: plain.yaml, configuration: {most: 1}}]`, want: `both path and configuration are set`},
		{file: head + `plugins: [{name: Plain, path: plain.yaml}, {name: Plain, path: plain.yaml}]`, want: `plugins[1] "Plain": configured twice`},
		{file: head + `plugins: [{name: Attic, configuration: {most: 1}}]`, want: `plugins[0] "Attic": configuration: unsupported kind: apiVersion "", kind ""; use attic.example.com/v1 Attic`},
		{file: head + `plugins: [{name: Attic, configuration: ` + inline + `, most: many}}]`, want: `cannot unmarshal string`},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "admission.yaml")
		require.NoError(t, os.WriteFile(path, []byte(tc.file), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "plain.yaml"), []byte("rooms: [b]\nmost: 5"), 0o600))
		config, warnings, err := admission.LoadConfig(path, configurable(), names.Kubernetes)
		if tc.want != "" {
			assert.ErrorContains(t, err, tc.want)
			continue
		}
		require.NoError(t, err, tc.file)
		assert.Equal(t, tc.config, config)
		assert.Equal(t, tc.warnings, warnings)
	}
}
