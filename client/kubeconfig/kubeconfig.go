// Package kubeconfig reads kubeconfig files and connects to the servers in them with their
// credentials.
package kubeconfig

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"orch.io/controlplane/client/internal/execcredential"
	"orch.io/controlplane/internal/pki"
)

// maxFile is the largest accepted file, in bytes.
const maxFile = 4 << 20

// Config is a kubeconfig file. It is immutable and safe for concurrent use.
type Config struct {
	file file
	dir  string // base of relative paths
}

type file struct {
	Clusters []struct {
		Name    string  `json:"name"`
		Cluster cluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User user   `json:"user"`
	} `json:"users"`
	Contexts []struct {
		Name    string     `json:"name"`
		Context contextRef `json:"context"`
	} `json:"contexts"`
	CurrentContext string `json:"current-context"`
}

// contextRef names a cluster and a user of the same file.
type contextRef struct {
	Cluster string `json:"cluster"`
	User    string `json:"user"`
}

type cluster struct {
	Server                   string      `json:"server"`
	CertificateAuthority     string      `json:"certificate-authority"`
	CertificateAuthorityData []byte      `json:"certificate-authority-data"`
	TLSServerName            string      `json:"tls-server-name"`
	InsecureSkipTLSVerify    bool        `json:"insecure-skip-tls-verify"`
	Extensions               []extension `json:"extensions"`
}

// extension is arbitrary data for the program with the given name.
type extension struct {
	Name      string `json:"name"`
	Extension any    `json:"extension"`
}

type user struct {
	ClientCertificate     string `json:"client-certificate"`
	ClientCertificateData []byte `json:"client-certificate-data"`
	ClientKey             string `json:"client-key"`
	ClientKeyData         []byte `json:"client-key-data"`
	Token                 string `json:"token"`
	TokenFile             string `json:"tokenFile"`
	Username              string `json:"username"`
	Password              string `json:"password"`

	// Exec is the credential plugin. It replaces all other credentials.
	Exec *execcredential.Config `json:"exec"`
}

// Load reads a file. Relative paths in the file are relative to its directory.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	c, err := Parse(data, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse parses YAML or JSON. Relative paths are relative to dir. Unknown fields are ignored,
// because other programs store their own settings in the same files.
func Parse(data []byte, dir string) (*Config, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("kubeconfig: file exceeds %d bytes", maxFile)
	}
	c := &Config{dir: dir}
	if err := yaml.Unmarshal(data, &c.file); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return c, nil
}

// Current returns the server and the credentials of the current context. Without a
// current-context, the file must have exactly one context, or one cluster and at most one
// user.
func (c *Config) Current() (*Remote, error) {
	f := &c.file
	switch {
	case f.CurrentContext == "" && len(f.Contexts) == 0 && len(f.Clusters) == 1 && len(f.Users) <= 1:
		var u user
		if len(f.Users) == 1 {
			u = f.Users[0].User
		}
		return c.remote(f.Clusters[0].Cluster, u)
	case f.CurrentContext == "" && len(f.Contexts) == 1:
		return c.context(f.Contexts[0].Context)
	case f.CurrentContext == "":
		return nil, errors.New("kubeconfig: current-context is not set")
	}
	for _, n := range f.Contexts {
		if n.Name == f.CurrentContext {
			return c.context(n.Context)
		}
	}
	return nil, fmt.Errorf("kubeconfig: context %q not found", f.CurrentContext)
}

func (c *Config) context(x contextRef) (*Remote, error) {
	u, ok := c.user(x.User)
	if !ok && x.User != "" {
		return nil, fmt.Errorf("kubeconfig: user %q not found", x.User)
	}
	for _, n := range c.file.Clusters {
		if n.Name == x.Cluster {
			return c.remote(n.Cluster, u)
		}
	}
	return nil, fmt.Errorf("kubeconfig: cluster %q not found", x.Cluster)
}

// user returns the user with the given name.
func (c *Config) user(name string) (user, bool) {
	for _, n := range c.file.Users {
		if n.Name == name {
			return n.User, true
		}
	}
	return user{}, false
}

// For returns the server at a URL, with the credentials of the user that is named after its
// host: "example.com:8443", "example.com" (port 443), "*.com:8443", "*.com" (port 443) or "*".
// The longest matching name wins; without a match, the user of the current context is used.
// authority is the PEM bundle of the server's certificate authorities; nil means the system's.
func (c *Config) For(server *url.URL, authority []byte) (*Remote, error) {
	return c.remote(cluster{Server: server.String(), CertificateAuthorityData: authority}, c.userForHost(server.Host))
}

func (c *Config) userForHost(host string) user {
	candidates := []string{host}
	if bare, port, err := net.SplitHostPort(host); err == nil && port == "443" {
		candidates = append(candidates, bare)
	}
	all := candidates
	for _, name := range candidates {
		for {
			_, rest, more := strings.Cut(name, ".")
			if !more {
				break
			}
			name, all = rest, append(all, "*."+rest)
		}
	}
	for _, name := range append(all, "*") {
		if u, ok := c.user(name); ok {
			return u
		}
	}
	for _, n := range c.file.Contexts {
		if n.Name == c.file.CurrentContext {
			u, _ := c.user(n.Context.User)
			return u
		}
	}
	return user{}
}

// remote loads the certificates and credentials that a cluster and a user refer to.
func (c *Config) remote(cl cluster, u user) (*Remote, error) {
	address, err := url.Parse(cl.Server)
	if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") || address.User != nil {
		return nil, fmt.Errorf("kubeconfig: invalid server URL %q", cl.Server)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cl.TLSServerName, InsecureSkipVerify: cl.InsecureSkipTLSVerify}
	ca, err := c.read(cl.CertificateAuthority, cl.CertificateAuthorityData)
	if err != nil {
		return nil, err
	}
	if ca != nil {
		if t.RootCAs, err = pki.ParsePool(ca); err != nil {
			return nil, fmt.Errorf("kubeconfig: certificate authority: %w", err)
		}
	}
	r := &Remote{URL: address, TLS: t, authority: ca}
	if u.Exec != nil {
		return r, c.plugin(r, *u.Exec, cl)
	}
	return r, c.credentials(r, u)
}

// plugin sets the exec credential plugin of a Remote.
func (c *Config) plugin(r *Remote, e execcredential.Config, cl cluster) error {
	e.Dir = c.dir
	e.Cluster = &execcredential.Cluster{Server: cl.Server, TLSServerName: cl.TLSServerName,
		InsecureSkipTLSVerify: cl.InsecureSkipTLSVerify, CertificateAuthorityData: r.authority}
	group, _, _ := strings.Cut(e.APIVersion, "/")
	for _, x := range cl.Extensions {
		if x.Name == group+"/exec" {
			e.Cluster.Config = x.Extension
		}
	}
	var err error
	r.plugin, err = execcredential.New(e)
	return err
}

// credentials sets the static credentials of a Remote.
func (c *Config) credentials(r *Remote, u user) error {
	cert, err := c.read(u.ClientCertificate, u.ClientCertificateData)
	if err != nil {
		return err
	}
	key, err := c.read(u.ClientKey, u.ClientKeyData)
	if err != nil {
		return err
	}
	if (cert == nil) != (key == nil) {
		return errors.New("kubeconfig: client certificate and client key must be set together")
	}
	if cert != nil {
		pair, err := pki.ParseKeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("kubeconfig: %w", err)
		}
		r.TLS.Certificates = []tls.Certificate{pair}
	}
	switch {
	case u.Token != "":
		r.authorization = "Bearer " + u.Token
	case u.TokenFile != "":
		r.tokenFile = c.path(u.TokenFile)
	case u.Username != "":
		r.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username+":"+u.Password))
	}
	return nil
}

// read returns data, or the content of the file if data is empty; nil if neither is set.
func (c *Config) read(path string, data []byte) ([]byte, error) {
	if len(data) > 0 || path == "" {
		return data, nil
	}
	b, err := os.ReadFile(c.path(path))
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return b, nil
}

func (c *Config) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.dir, p)
}
