package apiserver

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/names"
)

// flags are the command line, see parseFlags.
type flags struct {
	bindAddress   string
	securePort    int
	place               // of the store
	to            place // that the store moves to
	names         names.Profile
	kubeconfig    string
	verbosity     int
	tlsCert       string
	tlsKey        string
	certDir       string
	livezGrace    time.Duration
	shutdownDelay time.Duration
	limits        limitFlags
	showHidden    string // the release before this one, to show the metrics hidden since; empty: none are
	authn         authnFlags
	authz         authzFlags
	admission     admissionFlags
	audit         auditFlags
	network       networkFlags
	nodes         nodeFlags

	release       string            // whose versions are served; empty: the newest
	runtimeConfig map[string]string // what is served, see server.Serving
	features      map[string]bool   // by their gates
	otherGates    []string          // that were given and that nobody knows, see Command.Ignored
	otherVersions []string          // likewise
	ignored       []string          // those without effect that were given
}

func (c Command) parseFlags(args []string) (*flags, error) {
	f := &flags{runtimeConfig: map[string]string{}, features: map[string]bool{}}
	profile := ""
	name := cmp.Or(c.Name, "apiserver")
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.Usage = func() {
		fmt.Fprint(set.Output(), name+" [flags] serves.\n"+name+" backup, verify, restore and copy save a store in files, check those, and fill other stores.\n"+
			name+" inspect --data-dir DIR [--salvage NEW] checks the directory of a server that does not run,\n"+
			"and salvages what can be read into a new one. Each exits with 1 if anything is wrong, and has a --help.\n\nFlags:\n")
		set.PrintDefaults()
	}
	set.StringVar(&f.bindAddress, "bind-address", "127.0.0.1", "address to listen on; with 0.0.0.0 or :: others are told the first address of the machine that is no loopback")
	set.IntVar(&f.securePort, "secure-port", 6443, "port to serve HTTPS on; 0 takes a free one")
	f.place.define(set, c.Engines, "", "./controlplane-data", "directory of the data; empty means memory")
	if c.Memory != nil {
		f.memory = c.Memory
	}
	f.to.define(set, c.Engines, "to-", "", "directory that the store moves to while this server serves: with this or --to-storage it copies everything there, then\n"+
		"takes no more writes (503), says so, and is to be ended and started over that")
	set.StringVar(&profile, "names", "kubernetes", "names on the wire: kubernetes, as kubectl and client-go know them, or orch")
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "where the admin's client configuration is written, mode 0600 (default: admin.kubeconfig in the data directory)")
	set.StringVar(&f.tlsCert, "tls-cert-file", "", "certificate of the server, PEM (default: self-made)")
	set.StringVar(&f.tlsKey, "tls-private-key-file", "", "key of the certificate, PEM")
	set.StringVar(&f.certDir, "cert-dir", "", "directory with the server's apiserver.crt and apiserver.key, PEM, unless --tls-cert-file names them elsewhere (default: self-made)")
	set.StringVar(&f.release, "release", "", "release whose versions of kinds are served, such as 1.22 (default: the newest)")
	set.Func("runtime-config", "what is served, as KEY=true|false,...: a missing value is true, the most specific KEY counts. One is a version, apps/v1\n"+
		"or, of the core group, v1; a resource, apps/v1/deployments; or api/ga, api/beta, api/alpha, api/legacy or api/all", settings(f.runtimeConfig))
	set.Func("feature-gates", "which features are on, as GATE=true|false,...; there are\n"+strings.Join((*features.Set)(nil).Help(), "\n"), f.setFeatures)
	set.DurationVar(&f.livezGrace, "livez-grace-period", 0, "time after the start in which /livez does not fail")
	set.DurationVar(&f.shutdownDelay, "shutdown-delay-duration", 0, "time between a failing /readyz and the end")
	set.StringVar(&f.showHidden, "show-hidden-metrics-for-version", "", "the minor release before this one, such as 1.36: /metrics shows what was hidden since (default: it does not)")
	set.IntVar(&f.verbosity, "v", 0, "how much is logged: 0 is what is wrong, from 1 on also what happens, such as who leads the controllers, from 4 on everything")
	f.limits.define(set)
	f.authn.define(set)
	f.authz.define(set)
	f.admission.define(set)
	f.audit.define(set)
	f.network.define(set)
	f.nodes.define(set)
	c.defineIgnored(set, f)
	for name, value := range c.Defaults {
		set.Lookup(name).DefValue = value // what --help tells
	}
	if err := parse(set, args); err != nil {
		return nil, err
	}
	if err := c.setDefaults(set); err != nil {
		return nil, err
	}
	var ok bool
	if f.names, ok = names.Parse(profile); !ok {
		return nil, fmt.Errorf("--names is orch or kubernetes, not %q", profile)
	}
	if c.Ignored != nil {
		f.dropOtherGates()
		f.dropOtherVersions()
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if err := c.validate(set, f); err != nil {
		return nil, err
	}
	for _, name := range f.admission.leaveOut(c.IgnoredPlugins) {
		f.ignored = append(f.ignored, "--"+name)
	}
	f.authz.defaults(set, &f.authn)
	if err := f.findCertificate(); err != nil {
		return nil, err
	}
	if f.kubeconfig == "" && f.dataDir != "" {
		f.kubeconfig = filepath.Join(f.dataDir, "admin.kubeconfig")
	}
	return f, nil
}

// logLevel is from which level on messages are logged.
func (f *flags) logLevel() slog.Level {
	switch {
	case f.verbosity >= 4:
		return slog.LevelDebug
	case f.verbosity >= 1:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// parse passes over empty words, which templates of command lines leave. Help is printed
// to those who ask for it; a mistake is one line, which hundreds would hide.
func parse(set *flag.FlagSet, args []string) error {
	out := set.Output()
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	for err == nil && set.NArg() > 0 && set.Arg(0) == "" {
		err = set.Parse(set.Args()[1:])
	}
	set.SetOutput(out)
	if errors.Is(err, flag.ErrHelp) {
		set.Usage()
	}
	return err
}

// setDefaults gives flags that were not given the values of this command.
func (c Command) setDefaults(set *flag.FlagSet) error {
	given := map[string]bool{}
	set.Visit(func(x *flag.Flag) { given[x.Name] = true })
	for name, value := range c.Defaults {
		if given[name] {
			continue
		}
		if err := set.Lookup(name).Value.Set(value); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	return nil
}

// defineIgnored defines the flags of this command that have no effect.
func (c Command) defineIgnored(set *flag.FlagSet, f *flags) {
	for name, alone := range c.Ignored {
		take := func(string) error {
			if !slices.Contains(f.ignored, "--"+name) {
				f.ignored = append(f.ignored, "--"+name)
			}
			return nil
		}
		if alone {
			set.BoolFunc(name, "taken without effect", take)
		} else {
			set.Func(name, "taken without effect", take)
		}
	}
}

// findCertificate looks for the server's certificate in --cert-dir.
func (f *flags) findCertificate() error {
	if f.certDir == "" || f.tlsCert != "" {
		return nil
	}
	cert, key := filepath.Join(f.certDir, "apiserver.crt"), filepath.Join(f.certDir, "apiserver.key")
	for _, path := range []string{cert, key} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil // as with the field's, the server makes one
		} else if err != nil {
			return fmt.Errorf("--cert-dir: %w", err)
		}
	}
	f.tlsCert, f.tlsKey = cert, key
	return nil
}

// needed says which flags mean nothing without another one.
func needed() map[string][]string {
	return map[string][]string{
		"tls-cert-file":        {"tls-private-key-file"},
		"tls-private-key-file": {"tls-cert-file"},
		"requestheader-client-ca-file": {"requestheader-allowed-names", "requestheader-username-headers", "requestheader-uid-headers",
			"requestheader-group-headers", "requestheader-extra-headers-prefix"},
		"oidc-issuer-url": {"oidc-client-id", "oidc-username-claim", "oidc-username-prefix", "oidc-groups-claim", "oidc-groups-prefix",
			"oidc-required-claim", "oidc-signing-algs", "oidc-ca-file"},
		"proxy-client-cert-file":                   {"proxy-client-key-file"},
		"proxy-client-key-file":                    {"proxy-client-cert-file"},
		"oidc-client-id":                           {"oidc-issuer-url"},
		"oidc-groups-claim":                        {"oidc-groups-prefix"},
		"authentication-token-webhook-config-file": {"authentication-token-webhook-version", "authentication-token-webhook-cache-ttl"},
		"authorization-webhook-config-file": {"authorization-webhook-version", "authorization-webhook-cache-authorized-ttl",
			"authorization-webhook-cache-unauthorized-ttl"},
		"service-account-issuer":        {"service-account-jwks-uri"},
		"cluster-signing-cert-file":     {"cluster-signing-key-file"},
		"cluster-signing-key-file":      {"cluster-signing-cert-file"},
		"kubelet-certificate-authority": {"kubelet-client-certificate", "kubelet-preferred-address-types"},
		"kubelet-client-certificate":    {"kubelet-client-key"},
		"kubelet-client-key":            {"kubelet-client-certificate"},
		"audit-policy-file":             {"audit-log-path", "audit-webhook-config-file"},
		"audit-log-path":                {"audit-log-maxsize", "audit-log-maxbackup", "audit-log-maxage"},
	}
}

// validate refuses flags that would be ignored: nobody finds out otherwise that the
// server does not do what it was told. A command that takes flags without effect takes
// these too; half of a pair is a mistake there as well.
func (c Command) validate(set *flag.FlagSet, f *flags) error {
	given := map[string]bool{}
	set.Visit(func(x *flag.Flag) { given[x.Name] = x.Value.String() != "" || x.Name == "authorization-mode" })
	var faults []error
	var idle []string
	for other, names := range needed() {
		for _, name := range names {
			switch {
			case !given[name] || set.Lookup(other).Value.String() != "":
			case c.Ignored != nil && !slices.Contains(needed()[name], other):
				idle = append(idle, "--"+name)
			default:
				faults = append(faults, fmt.Errorf("--%s means nothing without --%s", name, other))
			}
		}
	}
	if given["service-account-signing-key-file"] && given["service-account-private-key-file"] {
		faults = append(faults, errors.New("--service-account-signing-key-file and --service-account-private-key-file are the same: give one of them"))
	}
	if f.audit.policyFile != "" && f.audit.logPath == "" && f.audit.webhookFile == "" {
		if c.Ignored != nil {
			idle = append(idle, "--audit-policy-file")
		} else {
			faults = append(faults, errors.New("--audit-policy-file records nowhere: it needs --audit-log-path or --audit-webhook-config-file"))
		}
	}
	if f.livezGrace < 0 || f.shutdownDelay < 0 {
		faults = append(faults, errors.New("--livez-grace-period and --shutdown-delay-duration must not be negative"))
	}
	faults = append(faults, f.place.validate(set)...)
	faults = append(faults, f.to.validate(set)...)
	faults = append(faults, f.limits.validate()...)
	faults = append(faults, f.nodes.validate()...)
	faults = append(faults, f.authz.validate(given["authorization-mode"])...)
	slices.Sort(idle)
	f.ignored = append(f.ignored, idle...)
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}
