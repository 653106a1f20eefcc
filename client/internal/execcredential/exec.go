// Package execcredential is the client side of the exec credential plugin: it runs a program that
// prints credentials.
package execcredential

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/internal/wellknown"
)

// The values of Config.InteractiveMode.
const (
	Never       = "Never"       // the program gets no terminal
	IfAvailable = "IfAvailable" // the program gets the terminal if there is one
	Always      = "Always"      // without a terminal, the program is not run
)

// maxOutput bounds the output of a program, in bytes.
const maxOutput = 1 << 20

// Config is the exec entry of a user in a kubeconfig file. The fields without JSON names are set by
// the program that reads the file.
type Config struct {
	Command            string   `json:"command"`
	APIVersion         string   `json:"apiVersion"`
	Env                []EnvVar `json:"env,omitempty"`
	Args               []string `json:"args,omitempty"`
	InstallHint        string   `json:"installHint,omitempty"`
	ProvideClusterInfo bool     `json:"provideClusterInfo,omitempty"`
	InteractiveMode    string   `json:"interactiveMode,omitempty"`

	// Dir is the directory of the file, to which a relative Command is relative.
	Dir string `json:"-"`
	// Cluster describes the server to the program if ProvideClusterInfo is set.
	Cluster *Cluster `json:"-"`
	// Terminal is the standard input if that is a terminal, and nil otherwise.
	Terminal io.Reader `json:"-"`
	// Stderr receives the standard error of the program. nil discards it.
	Stderr io.Writer `json:"-"`
	// Environ is the environment to which Env is added. nil means the environment of this process.
	Environ []string `json:"-"`
	// Timeout bounds a run. Zero means one minute, or three with a terminal.
	Timeout time.Duration `json:"-"`

	Now func() time.Time `json:"-"` // nil means time.Now
}

// EnvVar is an environment variable.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Cluster describes the server that the credentials are for.
type Cluster struct {
	Server                   string `json:"server"`
	TLSServerName            string `json:"tls-server-name,omitempty"`
	InsecureSkipTLSVerify    bool   `json:"insecure-skip-tls-verify,omitempty"`
	CertificateAuthorityData []byte `json:"certificate-authority-data,omitempty"`
	Config                   any    `json:"config,omitempty"` // arbitrary data from the kubeconfig file
}

// Source runs the program and caches its credentials. It is safe for concurrent use.
type Source struct {
	config  Config
	profile names.Profile
	lock    chan struct{} // a mutex that can be awaited with a context: holds a token while unlocked; guards current
	current *credential   // of the last successful run
}

// credential has the credentials of a run.
type credential struct {
	token   string
	cert    *tls.Certificate
	raw     string    // certificate and key as printed
	expires time.Time // zero if it does not expire
}

// New returns a Source. If c is invalid, the error joins everything that is wrong with it.
func New(c Config) (*Source, error) {
	var errs []error
	addError := func(format string, args ...any) { errs = append(errs, fmt.Errorf("exec: "+format, args...)) }
	if c.Command == "" {
		addError("no command")
	}
	gv := meta.ParseAPIVersion(c.APIVersion)
	s := &Source{lock: make(chan struct{}, 1)}
	known := false
	for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
		if gv.Group == p.Group(wellknown.GroupExec) && (gv.Version == "v1" || gv.Version == "v1beta1") {
			s.profile, known = p, true
		}
	}
	if !known {
		addError("unknown apiVersion %q", c.APIVersion)
	}
	switch c.InteractiveMode {
	case Never, IfAvailable, Always:
	case "":
		if gv.Version == "v1" {
			addError("interactiveMode is required in v1")
		}
		c.InteractiveMode = IfAvailable
	default:
		addError("unknown interactiveMode %q", c.InteractiveMode)
	}
	for _, e := range c.Env {
		if e.Name == "" || strings.ContainsAny(e.Name+e.Value, "\x00") || strings.Contains(e.Name, "=") {
			addError("invalid environment variable %q", e.Name)
		}
	}
	if c.ProvideClusterInfo && c.Cluster == nil {
		addError("provideClusterInfo without a cluster")
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Minute
		if c.Terminal != nil {
			c.Timeout = 3 * time.Minute
		}
	}
	if !filepath.IsAbs(c.Command) && filepath.Base(c.Command) != c.Command {
		c.Command = filepath.Join(c.Dir, c.Command)
	}
	s.config = c
	s.lock <- struct{}{}
	return s, nil
}

// credentials returns valid credentials. It runs the program if there are none. Concurrent callers
// wait for the same run.
func (s *Source) credentials(ctx context.Context) (*credential, error) {
	select {
	case <-s.lock:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.lock <- struct{}{} }()
	if s.current != nil && (s.current.expires.IsZero() || s.config.Now().Before(s.current.expires)) {
		return s.current, nil
	}
	c, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	if s.current != nil && s.current.cert != nil && s.current.raw == c.raw {
		c.cert = s.current.cert // unchanged: keep the connections made with it
	}
	s.current = c
	return c, nil
}

// reject makes the next call of credentials run the program, unless it has run since c was
// returned.
func (s *Source) reject(ctx context.Context, c *credential) {
	select {
	case <-s.lock:
	case <-ctx.Done():
		return
	}
	defer func() { s.lock <- struct{}{} }()
	if s.current == c {
		old := *c
		old.expires = s.config.Now()
		s.current = &old
	}
}

// wire is the JSON of an ExecCredential.
type wire struct {
	Kind       string  `json:"kind"`
	APIVersion string  `json:"apiVersion"`
	Spec       spec    `json:"spec"`
	Status     *status `json:"status,omitempty"`
}

type spec struct {
	Cluster     *Cluster `json:"cluster,omitempty"`
	Interactive bool     `json:"interactive"`
}

type status struct {
	ExpirationTimestamp   *time.Time `json:"expirationTimestamp,omitempty"`
	Token                 string     `json:"token,omitempty"`
	ClientCertificateData string     `json:"clientCertificateData,omitempty"`
	ClientKeyData         string     `json:"clientKeyData,omitempty"`
}

// run runs the program and parses its output. s.lock must be held.
func (s *Source) run(ctx context.Context) (*credential, error) {
	c := &s.config
	in := wire{Kind: "ExecCredential", APIVersion: c.APIVersion}
	in.Spec.Interactive = c.Terminal != nil && c.InteractiveMode != Never
	if c.InteractiveMode == Always && c.Terminal == nil {
		return nil, fmt.Errorf("exec: %s requires a terminal, but there is none", c.Command)
	}
	if c.ProvideClusterInfo {
		in.Spec.Cluster = c.Cluster
	}
	info, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Command, c.Args...)
	cmd.WaitDelay = time.Second
	cmd.Env = slices.Clone(c.Environ)
	if c.Environ == nil {
		cmd.Env = cmd.Environ()
	}
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.Env = append(cmd.Env, s.profile.Wire(wellknown.ExecInfoEnv)+"="+string(info))
	if in.Spec.Interactive {
		cmd.Stdin = c.Terminal
	}
	out := &boundedBuffer{}
	cmd.Stdout, cmd.Stderr = out, c.Stderr
	if err := cmd.Run(); err != nil {
		return nil, c.explain(err)
	}
	if out.full {
		return nil, fmt.Errorf("exec: %s printed more than %d bytes", c.Command, maxOutput)
	}
	return parse(out.kept.Bytes(), c.APIVersion)
}

// explain wraps an error of running the program. If the program is missing, it adds the install
// hint.
func (c *Config) explain(err error) error {
	if !errors.Is(err, exec.ErrNotFound) && !isMissing(err) {
		return fmt.Errorf("exec: %s: %w", c.Command, err)
	}
	if c.InstallHint == "" {
		return fmt.Errorf("exec: %s is not installed: %w", c.Command, err)
	}
	return fmt.Errorf("exec: %s is not installed: %w\n\n%s", c.Command, err, c.InstallHint)
}

// boundedBuffer keeps up to maxOutput bytes and discards the rest.
type boundedBuffer struct {
	kept bytes.Buffer
	full bool
}

// Write implements io.Writer.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > maxOutput {
		b.full = true
		return len(p), nil
	}
	return b.kept.Write(p)
}

// parse parses the output of a program. Its errors do not quote the output, which may contain
// secrets.
func parse(data []byte, version string) (*credential, error) {
	var out wire
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, errors.New("exec: the output of the program is not an ExecCredential")
	}
	st := out.Status
	switch {
	case out.APIVersion != version || out.Kind != "ExecCredential":
		return nil, fmt.Errorf("exec: the program printed apiVersion %q, kind %q, instead of apiVersion %q", out.APIVersion, out.Kind, version)
	case st == nil:
		return nil, errors.New("exec: the program printed no status")
	case st.Token == "" && st.ClientCertificateData == "" && st.ClientKeyData == "":
		return nil, errors.New("exec: the program printed neither a token nor a certificate")
	case (st.ClientCertificateData == "") != (st.ClientKeyData == ""):
		return nil, errors.New("exec: the program printed a certificate without its key or a key without its certificate")
	case strings.ContainsAny(st.Token, "\r\n\x00"):
		return nil, errors.New("exec: the token has characters that a header cannot have")
	}
	c := &credential{token: st.Token}
	if st.ExpirationTimestamp != nil {
		c.expires = *st.ExpirationTimestamp
	}
	if st.ClientCertificateData != "" {
		pair, err := pki.ParseKeyPair([]byte(st.ClientCertificateData), []byte(st.ClientKeyData))
		if err != nil {
			return nil, errors.New("exec: the certificate and key are invalid or do not match")
		}
		c.cert, c.raw = &pair, st.ClientCertificateData+"\n"+st.ClientKeyData
	}
	return c, nil
}
