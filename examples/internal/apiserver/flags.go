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

// flags holds the values of the command line, see parseFlags.
type flags struct {
	bindAddress   string
	securePort    int
	location               // location of the store
	to            location // location to which the store moves
	names         names.Profile
	kubeconfig    string
	verbosity     int
	tlsCert       string
	tlsKey        string
	certDir       string
	livezGrace    time.Duration
	shutdownDelay time.Duration
	limits        limitFlags
	showHidden    string // the previous minor release; its hidden metrics are shown; empty for none
	authn         authnFlags
	authz         authzFlags
	admission     admissionFlags
	audit         auditFlags
	network       networkFlags
	nodes         nodeFlags

	release       string            // the release whose versions are served; empty for the newest
	runtimeConfig map[string]string // enabled versions and resources, see server.Serving
	features      map[string]bool   // by feature gate
	otherGates    []string          // unknown feature gates that were given, see Command.Ignored
	otherVersions []string          // unknown versions that were given
	ignored       []string          // given flags that have no effect
}

func (c Command) parseFlags(args []string) (*flags, error) {
	f := &flags{runtimeConfig: map[string]string{}, features: map[string]bool{}}
	profile := ""
	name := cmp.Or(c.Name, "apiserver")
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.Usage = func() {
		fmt.Fprint(set.Output(), name+" [flags] runs the server.\n"+name+" backup, verify, restore and copy save a store in files, check backups, and fill other stores.\n"+
			name+" inspect --data-dir DIR [--salvage NEW] checks the data directory of a server that is not running,\n"+
			"and salvages readable data into a new directory. Each command exits with 1 on failure and has a --help flag.\n\nFlags:\n")
		set.PrintDefaults()
	}
	set.StringVar(&f.bindAddress, "bind-address", "127.0.0.1", "address to listen on; with 0.0.0.0 or ::, the server advertises the first non-loopback address of the machine")
	set.IntVar(&f.securePort, "secure-port", 6443, "HTTPS port; 0 selects a free port")
	f.location.define(set, c.Engines, "", "./controlplane-data", "data directory; empty keeps the data in memory")
	if c.Memory != nil {
		f.memory = c.Memory
	}
	f.to.define(set, c.Engines, "to-", "", "directory to which the store is moved while the server runs: with this flag or --to-storage, the server copies everything there,\n"+
		"then rejects writes (503) and prints a message; stop it then, and start a server with the new store")
	set.StringVar(&profile, "names", "kubernetes", "names in the API: kubernetes, as kubectl and client-go expect them, or orch")
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "file to which the client configuration of the administrator is written, with mode 0600 (default: admin.kubeconfig in the data directory)")
	set.StringVar(&f.tlsCert, "tls-cert-file", "", "certificate of the server, PEM (default: generated)")
	set.StringVar(&f.tlsKey, "tls-private-key-file", "", "key of --tls-cert-file, PEM")
	set.StringVar(&f.certDir, "cert-dir", "", "directory with apiserver.crt and apiserver.key of the server, PEM, used if --tls-cert-file is not set (default: generated)")
	set.StringVar(&f.release, "release", "", "Kubernetes release whose API versions are served, such as 1.22 (default: the newest)")
	set.Func("runtime-config", "enabled API versions and resources, as KEY=true|false,...; a missing value is true, and the most specific KEY applies. A KEY is a version\n"+
		"(apps/v1, or v1 for the core group), a resource (apps/v1/deployments), or api/ga, api/beta, api/alpha, api/legacy or api/all", parseSettings(f.runtimeConfig))
	set.Func("feature-gates", "feature gates, as GATE=true|false,...; available:\n"+strings.Join((*features.Set)(nil).Help(), "\n"), f.setFeatures)
	set.DurationVar(&f.livezGrace, "livez-grace-period", 0, "time after the start during which /livez does not fail")
	set.DurationVar(&f.shutdownDelay, "shutdown-delay-duration", 0, "time between the failure of /readyz and the shutdown")
	set.StringVar(&f.showHidden, "show-hidden-metrics-for-version", "", "previous minor release, such as 1.36: /metrics shows the metrics hidden since then (default: none)")
	set.IntVar(&f.verbosity, "v", 0, "log verbosity: 0 logs warnings and errors, 1 also events such as leader changes, 4 everything")
	f.limits.define(set)
	f.authn.define(set)
	f.authz.define(set)
	f.admission.define(set)
	f.audit.define(set)
	f.network.define(set)
	f.nodes.define(set)
	c.defineIgnored(set, f)
	for name, value := range c.Defaults {
		set.Lookup(name).DefValue = value // the default that --help prints
	}
	if err := parse(set, args); err != nil {
		return nil, err
	}
	if err := c.setDefaults(set); err != nil {
		return nil, err
	}
	var ok bool
	if f.names, ok = names.Parse(profile); !ok {
		return nil, fmt.Errorf("--names must be orch or kubernetes, not %q", profile)
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
	for _, name := range f.admission.dropPlugins(c.IgnoredPlugins) {
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

// logLevel returns the lowest level that is logged.
func (f *flags) logLevel() slog.Level {
	switch {
	case f.verbosity >= 4:
		return slog.LevelDebug
	case f.verbosity >= 1:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// parse parses args. It skips empty arguments, which command line templates can produce. It prints the
// help only on request: after a mistake, hundreds of lines would hide the error.
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

// setDefaults sets flags that were not given to the defaults of this command.
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

// defineIgnored defines the flags that this command accepts without effect.
func (c Command) defineIgnored(set *flag.FlagSet, f *flags) {
	for name, alone := range c.Ignored {
		take := func(string) error {
			if !slices.Contains(f.ignored, "--"+name) {
				f.ignored = append(f.ignored, "--"+name)
			}
			return nil
		}
		if alone {
			set.BoolFunc(name, "ignored", take)
		} else {
			set.Func(name, "ignored", take)
		}
	}
}

// findCertificate uses the certificate in --cert-dir if there is one.
func (f *flags) findCertificate() error {
	if f.certDir == "" || f.tlsCert != "" {
		return nil
	}
	cert, key := filepath.Join(f.certDir, "apiserver.crt"), filepath.Join(f.certDir, "apiserver.key")
	for _, path := range []string{cert, key} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil // like kube-apiserver, the server then creates one
		} else if err != nil {
			return fmt.Errorf("--cert-dir: %w", err)
		}
	}
	f.tlsCert, f.tlsKey = cert, key
	return nil
}

// requirements returns, for each flag, the flags that require it.
func requirements() map[string][]string {
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

// validate rejects flags that would have no effect, so that the user notices. If the command ignores
// flags without effect, validate only adds them to f.ignored, except for flags that are one half of a
// pair.
func (c Command) validate(set *flag.FlagSet, f *flags) error {
	given := map[string]bool{}
	set.Visit(func(x *flag.Flag) { given[x.Name] = x.Value.String() != "" || x.Name == "authorization-mode" })
	var faults []error
	var ignored []string
	for required, names := range requirements() {
		for _, name := range names {
			switch {
			case !given[name] || set.Lookup(required).Value.String() != "":
			case c.Ignored != nil && !slices.Contains(requirements()[name], required):
				ignored = append(ignored, "--"+name)
			default:
				faults = append(faults, fmt.Errorf("--%s requires --%s", name, required))
			}
		}
	}
	if given["service-account-signing-key-file"] && given["service-account-private-key-file"] {
		faults = append(faults, errors.New("--service-account-signing-key-file and --service-account-private-key-file are the same flag: set only one of them"))
	}
	if f.audit.policyFile != "" && f.audit.logPath == "" && f.audit.webhookFile == "" {
		if c.Ignored != nil {
			ignored = append(ignored, "--audit-policy-file")
		} else {
			faults = append(faults, errors.New("--audit-policy-file requires --audit-log-path or --audit-webhook-config-file"))
		}
	}
	if f.livezGrace < 0 || f.shutdownDelay < 0 {
		faults = append(faults, errors.New("--livez-grace-period and --shutdown-delay-duration must not be negative"))
	}
	faults = append(faults, f.location.validate(set)...)
	faults = append(faults, f.to.validate(set)...)
	faults = append(faults, f.limits.validate()...)
	faults = append(faults, f.nodes.validate()...)
	faults = append(faults, f.authz.validate(given["authorization-mode"])...)
	slices.Sort(ignored)
	f.ignored = append(f.ignored, ignored...)
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}
