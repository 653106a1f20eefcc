package apiserver

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
)

// admissionFlags select admission plugins by name and configure them.
type admissionFlags struct {
	enable, disable list
	configFile      string
	tolerate        plugins.TolerationSeconds
}

func (f *admissionFlags) define(set *flag.FlagSet) {
	var on, off []string
	for _, p := range plugins.Table() {
		if p.Default == admission.Off {
			off = append(off, p.Name)
		} else {
			on = append(on, p.Name)
		}
	}
	set.Var(&f.enable, "enable-admission-plugins", fmt.Sprintf("admission plugins to enable in addition to the default ones, in any order: %s", listOrNone(off)))
	set.Var(&f.disable, "disable-admission-plugins", fmt.Sprintf("default admission plugins to disable, in any order: %s", listOrNone(on)))
	set.Int64Var(&f.tolerate.NotReady, "default-not-ready-toleration-seconds", 300, "seconds that pods without an own toleration stay on a node that is not ready")
	set.Int64Var(&f.tolerate.Unreachable, "default-unreachable-toleration-seconds", 300, "seconds that pods without an own toleration stay on a node that is unreachable")
	set.StringVar(&f.configFile, "admission-control-config-file", "", "file with the configuration of admission plugins, of kind AdmissionConfiguration")
}

// dropPlugins removes plugins from the enabled and disabled ones, and returns the removed settings as
// flags without dashes.
func (f *admissionFlags) dropPlugins(missing []string) (dropped []string) {
	for flag, names := range map[string]*list{"enable": &f.enable, "disable": &f.disable} {
		*names = slices.DeleteFunc(*names, func(name string) bool {
			if !slices.Contains(missing, name) {
				return false
			}
			dropped = append(dropped, flag+"-admission-plugins="+name)
			return true
		})
	}
	slices.Sort(dropped)
	return slices.Compact(dropped)
}

func listOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// configure selects and configures the plugins. It must be called after b.Admission is complete.
func (f *admissionFlags) configure(b *server.Builder) error {
	config := map[string]any{}
	if f.configFile != "" {
		var warnings []string
		var err error
		if config, warnings, err = admission.LoadConfig(f.configFile, plugins.Table(b.Admission...), b.Names); err != nil {
			return fmt.Errorf("--admission-control-config-file: %w", err)
		}
		for _, text := range warnings {
			b.Logger.Warn("--admission-control-config-file: " + text)
		}
	}
	const tolerations = "DefaultTolerationSeconds"
	if _, set := config[tolerations]; !set && !slices.Contains(f.disable, tolerations) {
		config[tolerations] = f.tolerate
	}
	// This server has no cloud provider, so it knows no labels of volumes.
	const labels = "PersistentVolumeLabel"
	if _, set := config[labels]; !set && slices.Contains(f.enable, labels) {
		config[labels] = plugins.VolumeLabels(func(context.Context, *meta.Object) (map[string]string, error) { return nil, nil })
	}
	b.AdmissionOptions = admission.Options{Enable: f.enable, Disable: f.disable, Config: config}
	return nil
}
