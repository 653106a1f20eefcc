package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
)

// The Leases by which one of several servers over a store leads controllers of the library.
// Those that work on the same objects have one.
const (
	leaseAPIs    = "controlplane-apis"    // what is served, and by what rules
	leaseCleanup = "controlplane-cleanup" // what goes
	leaseAccess  = "controlplane-access"  // who may do what, and by what credentials
)

// everyServer stands in place of a Lease for what each server does.
const everyServer = ""

// builtinControllers names the controllers of the library: those of every server, of
// admission plugins and of package access. The ones that are bare are part of what an API
// server of the field does itself; the others it leaves to processes beside it, which
// envtest does not start.
var builtinControllers = []builtinController{
	{"definitions", true, leaseAPIs},               // accepts names of custom kinds, which no two may get at a time; empties kinds that go
	{"ending", true, leaseCleanup},                 // finishes deletions that were cut off
	{"event-expiry", true, leaseCleanup},           // removes old events
	{"reservations", true, leaseCleanup},           // removes what is reserved for nobody
	{"flowcontrol", true, everyServer},             // configures how callers share this server
	{"publisher", true, leaseAccess},               // keeps what others find the servers by: all that live, as the one that leads knows them
	{"apiservice-registration", true, leaseAPIs},   // a server that starts registers by itself
	{"apiservice-availability", true, everyServer}, // looks at other servers, which this one may reach or not
	{"namespace", false, leaseCleanup},             // empties namespaces that go
	{"garbagecollector", false, leaseCleanup},
	{"resourcequota", false, everyServer},                  // counts what quotas bound, when writes of this server changed it
	{"validatingadmissionpolicy-status", false, leaseAPIs}, // checks the types of policies' expressions
	{"service-cidr", false, leaseAPIs},
	{"storage-version-migrator", false, leaseAPIs}, // carries out migrations, if the kind is registered
	{"pvc-protection", false, leaseCleanup},
	{"pv-protection", false, leaseCleanup},
	{"volumeattributesclass-protection", false, leaseCleanup},
	{"clusterrole-aggregation", false, leaseAccess},
	{"serviceaccount", false, leaseAccess}, // makes the account default of each namespace
	{"serviceaccount-token", false, leaseAccess},
	{"root-ca-cert-publisher", false, leaseAccess},
	{"csrapproving", false, leaseAccess},
	{"csrsigning", false, leaseAccess},
	{"csrcleaner", false, leaseAccess},
	{"bootstrapsigner", false, leaseAccess},
	{"tokencleaner", false, leaseAccess},
}

type builtinController struct {
	name  string
	bare  bool
	lease string
}

// controllerAccounts names the service account in the system namespace as which a built-in
// controller writes: the one that the controller has in the field, whose rights are those of
// the role system:controller:ACCOUNT. Controllers that an API server of the field runs itself
// have none and write as auth.ServerUser.
var controllerAccounts = map[string]string{
	"namespace":                        "namespace-controller",
	"garbagecollector":                 "generic-garbage-collector",
	"resourcequota":                    "resourcequota-controller",
	"validatingadmissionpolicy-status": "validatingadmissionpolicy-status-controller",
	"service-cidr":                     "service-cidrs-controller",
	"storage-version-migrator":         "storage-version-migrator-controller",
	"pvc-protection":                   "pvc-protection-controller",
	"pv-protection":                    "pv-protection-controller",
	"volumeattributesclass-protection": "volumeattributesclass-protection-controller",
	"clusterrole-aggregation":          "clusterrole-aggregation-controller",
	"serviceaccount":                   "service-account-controller",
	"root-ca-cert-publisher":           "root-ca-cert-publisher",
	"csrapproving":                     "certificate-controller",
	"csrsigning":                       "certificate-controller",
	"csrcleaner":                       "certificate-controller",
	"bootstrapsigner":                  "bootstrap-signer",
	"tokencleaner":                     "token-cleaner",
}

// identityOf returns the user that a built-in controller writes as, or nil if it writes as the server. The
// service account token controller has no service account, because it creates the tokens of the accounts.
func (s *Server) identityOf(name string) *auth.User {
	if name == "serviceaccount-token" {
		return &auth.User{Name: s.names.Wire(names.UserControllerManager), Groups: []string{auth.Authenticated}}
	}
	account, ok := controllerAccounts[name]
	if !ok {
		return nil
	}
	namespace := s.names.SystemNamespace("system")
	return &auth.User{Name: auth.ServiceAccountUser(namespace, account), Groups: append(auth.ServiceAccountGroups(namespace), auth.Authenticated)}
}

// withIdentity offers a built-in controller its identity, see actor.Take.
func (s *Server) withIdentity(c client.Controller) client.Controller {
	user := s.identityOf(c.Name)
	if user == nil {
		return c
	}
	reconcile := c.Reconcile
	c.Reconcile = func(ctx context.Context, cl client.Client, key string) (time.Duration, error) {
		return reconcile(actor.Offer(ctx, user), cl, key)
	}
	return c
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
func (s *Server) choose(b *Builder, all []client.Controller) error {
	has := map[string]bool{}
	for _, c := range all {
		has[c.Name] = true
		if b.runs(c.Name) {
			s.controllers = append(s.controllers, s.withIdentity(c))
		}
	}
	for _, p := range b.plugged {
		has[p.controller.Name] = true
		if p.controller = s.withIdentity(p.controller); b.runs(p.controller.Name) {
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
