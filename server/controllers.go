package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/controller"
)

// builtinControllers names the controllers of the library: those of every server, of
// admission plugins and of package access. The ones that are bare are part of what an API
// server of the field does itself; the others it leaves to processes beside it, which
// envtest does not start.
var builtinControllers = []builtinController{
	{"definitions", true},  // accepts names of custom kinds, empties kinds that go
	{"ending", true},       // finishes deletions that were cut off
	{"event-expiry", true}, // removes old events
	{"flowcontrol", true},  // configures how callers share the server
	{"publisher", true},    // keeps what others find the server by
	{"apiservice-registration", true},
	{"apiservice-availability", true},
	{"namespace", false}, // empties namespaces that go
	{"garbagecollector", false},
	{"resourcequota", false},                    // counts what quotas bound
	{"validatingadmissionpolicy-status", false}, // checks the types of policies' expressions
	{"service-cidr", false},
	{"storage-version-migrator", false}, // carries out migrations, if the kind is registered
	{"pvc-protection", false},
	{"pv-protection", false},
	{"volumeattributesclass-protection", false},
	{"clusterrole-aggregation", false},
	{"serviceaccount", false}, // makes the account default of each namespace
	{"serviceaccount-token", false},
	{"root-ca-cert-publisher", false},
	{"csrapproving", false},
	{"csrsigning", false},
	{"csrcleaner", false},
	{"bootstrapsigner", false},
	{"tokencleaner", false},
}

type builtinController struct {
	name string
	bare bool
}

// ControllerNames returns the names of the built-in controllers, which
// Builder.RunControllers chooses from, those of package access among them. A server has
// those that its kinds and its access control need.
func ControllerNames() []string {
	var list []string
	for _, c := range builtinControllers {
		list = append(list, c.name)
	}
	return list
}

// The words of Builder.RunControllers that are no names.
const (
	allControllers     = "*"
	envtestControllers = "envtest"
)

// runs tells whether RunControllers lets a controller run.
func (b *Builder) runs(name string) bool {
	words := b.RunControllers
	i := slices.IndexFunc(builtinControllers, func(c builtinController) bool { return c.name == name })
	switch {
	case slices.Contains(words, "-"+name):
		return false
	case i < 0, len(words) == 0, slices.Contains(words, name), slices.Contains(words, allControllers):
		return true
	}
	return builtinControllers[i].bare && slices.Contains(words, envtestControllers)
}

// checkChoice reports the words of RunControllers that name nothing.
func (b *Builder) checkChoice() error {
	known := ControllerNames()
	for _, c := range b.Controllers {
		known = append(known, c.Name)
	}
	for _, p := range b.plugged {
		known = append(known, p.controller.Name)
	}
	var faults []error
	for _, word := range b.RunControllers {
		if word != allControllers && word != envtestControllers && !slices.Contains(known, strings.TrimPrefix(word, "-")) {
			faults = append(faults, fmt.Errorf("there is no controller %q", strings.TrimPrefix(word, "-")))
		}
	}
	return errors.Join(faults...)
}

// choose keeps of all controllers of the server those that run. One that was asked for
// by its name and is not there is a fault: nobody finds out otherwise.
func (s *Server) choose(b *Builder, all []controller.Controller) error {
	has := map[string]bool{}
	for _, c := range all {
		has[c.Name] = true
		if b.runs(c.Name) {
			s.controllers = append(s.controllers, c)
		}
	}
	for _, p := range b.plugged {
		has[p.controller.Name] = true
		if b.runs(p.controller.Name) {
			s.plugged = append(s.plugged, p)
		}
	}
	var faults []error
	for _, word := range b.RunControllers {
		if word != allControllers && word != envtestControllers && !strings.HasPrefix(word, "-") && !has[word] {
			faults = append(faults, fmt.Errorf("this server lacks what the controller %q needs", word))
		}
	}
	return errors.Join(faults...)
}
