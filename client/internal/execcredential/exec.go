// Package execcredential gets credentials from a program: it is the client side of
// the exec credential plugin.
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

// Interactive modes.
const (
	Never       = "Never"       // the program gets no terminal
	IfAvailable = "IfAvailable" // it gets one if there is one
	Always      = "Always"      // it does not run without one
)

// maxOutput bounds what a program prints, in bytes.
const maxOutput = 1 << 20

// Config is the exec entry of a user in a client configuration, with what the
// program that reads it knows.
type Config struct {
	Command            string   `json:"command"`
	APIVersion         string   `json:"apiVersion"`
	Env                []EnvVar `json:"env,omitempty"`
	Args               []string `json:"args,omitempty"`
	InstallHint        string   `json:"installHint,omitempty"`
	ProvideClusterInfo bool     `json:"provideClusterInfo,omitempty"`
	InteractiveMode    string   `json:"interactiveMode,omitempty"`

	// Dir is where a relative command starts: the directory of the file.
	Dir string `json:"-"`
	// Cluster is what the program learns with ProvideClusterInfo.
	Cluster *Cluster `json:"-"`
	// Terminal is the standard input if it is a terminal, else nil.
	Terminal io.Reader `json:"-"`
	// Stderr receives what the program says to people; nil discards it.
	Stderr io.Writer `json:"-"`
	// Environ is what the program's environment starts from; nil is that of
	// this process.
	Environ []string `json:"-"`
	// Timeout is for one run; zero is a minute, three with a terminal.
	Timeout time.Duration `json:"-"`

	Now func() time.Time `json:"-"` // nil: time.Now
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
	Config                   any    `json:"config,omitempty"` // free data
}

// Source runs the program and keeps what it gave.
type Source struct {
	config  Config
	profile names.Profile
	lock    chan struct{} // holds one token while nobody has the rest
	now     *credential
}

// credential is what one run gave.
type credential struct {
	token   string
	cert    *tls.Certificate
	raw     string    // the certificate and key as printed
	expires time.Time // zero: never
}

// New checks c; every fault is reported at once.
func New(c Config) (*Source, error) {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("exec: "+format, args...)) }
	if c.Command == "" {
		fault("no command")
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
		fault("unknown apiVersion %q", c.APIVersion)
	}
	switch c.InteractiveMode {
	case Never, IfAvailable, Always:
	case "":
		if gv.Version == "v1" {
			fault("interactiveMode is required in v1")
		}
		c.InteractiveMode = IfAvailable
	default:
		fault("unknown interactiveMode %q", c.InteractiveMode)
	}
	for _, e := range c.Env {
		if e.Name == "" || strings.ContainsAny(e.Name+e.Value, "\x00") || strings.Contains(e.Name, "=") {
			fault("bad name %q of a variable", e.Name)
		}
	}
	if c.ProvideClusterInfo && c.Cluster == nil {
		fault("provideClusterInfo without a cluster")
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

// credentials returns what is good now, running the program if nothing is. One
// run serves all who wait.
func (s *Source) credentials(ctx context.Context) (*credential, error) {
	select {
	case <-s.lock:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.lock <- struct{}{} }()
	if s.now != nil && (s.now.expires.IsZero() || s.config.Now().Before(s.now.expires)) {
		return s.now, nil
	}
	c, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	if s.now != nil && s.now.cert != nil && s.now.raw == c.raw {
		c.cert = s.now.cert // the same: connections stay
	}
	s.now = c
	return c, nil
}

// reject makes the next request run the program again, unless somebody else has
// since c was given.
func (s *Source) reject(ctx context.Context, c *credential) {
	select {
	case <-s.lock:
	case <-ctx.Done():
		return
	}
	defer func() { s.lock <- struct{}{} }()
	if s.now == c {
		old := *c
		old.expires = s.config.Now()
		s.now = &old
	}
}

// wire is an ExecCredential.
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

func (s *Source) run(ctx context.Context) (*credential, error) {
	c := &s.config
	in := wire{Kind: "ExecCredential", APIVersion: c.APIVersion}
	in.Spec.Interactive = c.Terminal != nil && c.InteractiveMode != Never
	if c.InteractiveMode == Always && c.Terminal == nil {
		return nil, fmt.Errorf("exec: %s needs a terminal and there is none", c.Command)
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

// explain adds where to get a program that is missing.
func (c *Config) explain(err error) error {
	if !errors.Is(err, exec.ErrNotFound) && !isMissing(err) {
		return fmt.Errorf("exec: %s: %w", c.Command, err)
	}
	if c.InstallHint == "" {
		return fmt.Errorf("exec: %s is not installed: %w", c.Command, err)
	}
	return fmt.Errorf("exec: %s is not installed: %w\n\n%s", c.Command, err, c.InstallHint)
}

// boundedBuffer keeps what fits and swallows the rest.
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

// parse reads what a program printed.
func parse(data []byte, version string) (*credential, error) {
	var out wire
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, errors.New("exec: what the program printed is no ExecCredential")
	}
	st := out.Status
	switch {
	case out.APIVersion != version || out.Kind != "ExecCredential":
		return nil, fmt.Errorf("exec: the program printed %q, Kind=%q instead of %q", out.APIVersion, out.Kind, version)
	case st == nil:
		return nil, errors.New("exec: the program printed no status")
	case st.Token == "" && st.ClientCertificateData == "" && st.ClientKeyData == "":
		return nil, errors.New("exec: the program gave neither a token nor a certificate")
	case (st.ClientCertificateData == "") != (st.ClientKeyData == ""):
		return nil, errors.New("exec: the program gave a certificate without its key or a key without its certificate")
	case strings.ContainsAny(st.Token, "\r\n\x00"):
		return nil, errors.New("exec: the token does not fit into a header")
	}
	c := &credential{token: st.Token}
	if st.ExpirationTimestamp != nil {
		c.expires = *st.ExpirationTimestamp
	}
	if st.ClientCertificateData != "" {
		pair, err := pki.ParseKeyPair([]byte(st.ClientCertificateData), []byte(st.ClientKeyData))
		if err != nil {
			return nil, errors.New("exec: the certificate and its key do not fit or cannot be read")
		}
		c.cert, c.raw = &pair, st.ClientCertificateData+"\n"+st.ClientKeyData
	}
	return c, nil
}
