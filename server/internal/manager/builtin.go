package manager

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
	"orch.io/controlplane/internal/wellknown"
)

// The Leases of the built-in controllers. Controllers that write the same objects share a Lease.
const (
	leaseAPIs    = "controlplane-apis"    // the served types and the policies for them
	leaseCleanup = "controlplane-cleanup" // deletions
	leaseAccess  = "controlplane-access"  // roles, accounts and certificates
)

// everyServer, instead of a Lease, marks a controller that runs in every server.
const everyServer = ""

// builtin describes a built-in controller.
type builtin struct {
	name    string
	core    bool   // kube-apiserver runs it itself; it runs in envtest
	lease   string // name of its Lease, or everyServer
	account string // service account in the system namespace as which it writes, see identity
}

// builtins are the built-in controllers: the controllers of every server, of admission plugins and of package access.
// A controller with an account writes as that service account, whose rights are defined by the role
// system:controller:ACCOUNT. The others write as auth.ServerUser.
var builtins = []builtin{
	{"definitions", true, leaseAPIs, ""},               // accepts the names of custom kinds, and deletes the objects of deleted definitions
	{"ending", true, leaseCleanup, ""},                 // finishes interrupted deletions
	{"event-expiry", true, leaseCleanup, ""},           // deletes old events
	{"reservations", true, leaseCleanup, ""},           // deletes orphaned reservations
	{"flowcontrol", true, everyServer, ""},             // configures flow control in this server
	{"publisher", true, leaseAccess, ""},               // publishes the addresses of the live servers
	{"apiservice-registration", true, leaseAPIs, ""},   // creates APIServices for the types that are served here
	{"apiservice-availability", true, everyServer, ""}, // probes extension servers; each server may reach different ones
	{"namespace", false, leaseCleanup, "namespace-controller"},
	{"garbagecollector", false, leaseCleanup, "generic-garbage-collector"},
	{"resourcequota", false, everyServer, "resourcequota-controller"}, // recounts after writes through this server
	{"validatingadmissionpolicy-status", false, leaseAPIs, "validatingadmissionpolicy-status-controller"},
	{"service-cidr", false, leaseAPIs, "service-cidrs-controller"},
	{"storage-version-migrator", false, leaseAPIs, "storage-version-migrator-controller"},
	{"pvc-protection", false, leaseCleanup, "pvc-protection-controller"},
	{"pv-protection", false, leaseCleanup, "pv-protection-controller"},
	{"volumeattributesclass-protection", false, leaseCleanup, "volumeattributesclass-protection-controller"},
	{"clusterrole-aggregation", false, leaseAccess, "clusterrole-aggregation-controller"},
	{"serviceaccount", false, leaseAccess, "service-account-controller"},
	{tokenController, false, leaseAccess, ""},
	{"root-ca-cert-publisher", false, leaseAccess, "root-ca-cert-publisher"},
	{"csrapproving", false, leaseAccess, "certificate-controller"},
	{"csrsigning", false, leaseAccess, "certificate-controller"},
	{"csrcleaner", false, leaseAccess, "certificate-controller"},
	{"bootstrapsigner", false, leaseAccess, "bootstrap-signer"},
	{"tokencleaner", false, leaseAccess, "token-cleaner"},
}

// tokenController has no service account because it creates the tokens of service accounts.
const tokenController = "serviceaccount-token"

// BuiltinNames returns the names of the built-in controllers.
func BuiltinNames() []string {
	var list []string
	for _, c := range builtins {
		list = append(list, c.name)
	}
	return list
}

// builtinOf returns the built-in controller with a name, and whether it exists.
func builtinOf(name string) (builtin, bool) {
	i := slices.IndexFunc(builtins, func(c builtin) bool { return c.name == name })
	if i < 0 {
		return builtin{}, false
	}
	return builtins[i], true
}

// identity returns the user as which a built-in controller writes, or nil if it writes as the server.
func identity(p names.Profile, name string) *auth.User {
	if name == tokenController {
		return &auth.User{Name: p.Wire(wellknown.UserControllerManager), Groups: []string{auth.Authenticated}}
	}
	c, _ := builtinOf(name)
	if c.account == "" {
		return nil
	}
	namespace := p.SystemNamespace("system")
	return &auth.User{Name: auth.ServiceAccountUser(namespace, c.account), Groups: append(auth.ServiceAccountGroups(namespace), auth.Authenticated)}
}

// withIdentity returns a built-in controller that gets its identity in the context of Reconcile, see actor.Take.
func withIdentity(p names.Profile, c client.Controller) client.Controller {
	user := identity(p, c.Name)
	if user == nil {
		return c
	}
	reconcile := c.Reconcile
	c.Reconcile = func(ctx context.Context, cl client.Client, key string) (time.Duration, error) {
		return reconcile(actor.Offer(ctx, user), cl, key)
	}
	return c
}

// Selection selects controllers by name: "*" selects all controllers, "NAME" a controller, "envtest" the controllers
// that kube-apiserver runs itself, and "-NAME" excludes a controller. An empty Selection selects all controllers.
type Selection []string

const (
	selectAll     = "*"
	selectEnvtest = "envtest"
)

// Selects reports whether a controller runs. A controller that is not built in runs unless it is excluded.
func (s Selection) Selects(name string) bool {
	c, ok := builtinOf(name)
	switch {
	case slices.Contains(s, "-"+name):
		return false
	case !ok, len(s) == 0, slices.Contains(s, name), slices.Contains(s, selectAll):
		return true
	}
	return c.core && slices.Contains(s, selectEnvtest)
}

// Check returns an error if the selection has names that are neither built-in controllers nor in others.
func (s Selection) Check(others ...string) error {
	known := append(BuiltinNames(), others...)
	var errs []error
	for _, word := range s {
		if name := strings.TrimPrefix(word, "-"); word != selectAll && word != selectEnvtest && !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("there is no controller %q", name))
		}
	}
	return errors.Join(errs...)
}

// missing returns an error if the selection names controllers that are not in has.
func (s Selection) missing(has map[string]bool) error {
	var errs []error
	for _, word := range s {
		if word != selectAll && word != selectEnvtest && !strings.HasPrefix(word, "-") && !has[word] {
			errs = append(errs, fmt.Errorf("controller %q cannot run: the server lacks the kinds or parts that it needs", word))
		}
	}
	return errors.Join(errs...)
}
