package main

import (
	"flag"
	"fmt"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
)

// admissionFlags choose the admission plugins by name.
type admissionFlags struct{ enable, disable list }

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
}

func among(names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	return strings.Join(names, ", ")
}

func (f *admissionFlags) options() admission.Options {
	return admission.Options{Enable: f.enable, Disable: f.disable}
}
