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

// admissionFlags choose the admission plugins by name, and configure them.
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
	set.Var(&f.enable, "enable-admission-plugins", fmt.Sprintf("admission plugins to run besides those that run by default, in any order: %s", among(off)))
	set.Var(&f.disable, "disable-admission-plugins", fmt.Sprintf("admission plugins not to run, in any order, of those that run by default: %s", among(on)))
	set.Int64Var(&f.tolerate.NotReady, "default-not-ready-toleration-seconds", 300, "how long pods that say nothing of it stay on a node that is not ready")
	set.Int64Var(&f.tolerate.Unreachable, "default-unreachable-toleration-seconds", 300, "how long pods that say nothing of it stay on a node that cannot be reached")
	set.StringVar(&f.configFile, "admission-control-config-file", "", "configuration of admission plugins, a file of kind AdmissionConfiguration")
}

// leaveOut takes plugins from what is enabled and disabled, and returns what it took, as
// flags without their dashes.
func (f *admissionFlags) leaveOut(absent []string) (taken []string) {
	for flag, names := range map[string]*list{"enable": &f.enable, "disable": &f.disable} {
		*names = slices.DeleteFunc(*names, func(name string) bool {
			if !slices.Contains(absent, name) {
				return false
			}
			taken = append(taken, flag+"-admission-plugins="+name)
			return true
		})
	}
	slices.Sort(taken)
	return slices.Compact(taken)
}

func among(names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	return strings.Join(names, ", ")
}

// configure chooses and configures the plugins of a server whose own ones are there.
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
	if _, said := config[tolerations]; !said && !slices.Contains(f.disable, tolerations) {
		config[tolerations] = f.tolerate
	}
	// This server knows no cloud, and so no labels of volumes.
	const labels = "PersistentVolumeLabel"
	if _, said := config[labels]; !said && slices.Contains(f.enable, labels) {
		config[labels] = plugins.VolumeLabels(func(context.Context, *meta.Object) (map[string]string, error) { return nil, nil })
	}
	b.AdmissionOptions = admission.Options{Enable: f.enable, Disable: f.disable, Config: config}
	return nil
}
