// Package clientconfig reads client configuration files, which name remote
// servers and the credentials for them, and makes connections from them.
package clientconfig

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"orch.io/controlplane/clientconfig/exec"
	"orch.io/controlplane/internal/pki"
)

// maxFile bounds what is read, in bytes.
const maxFile = 4 << 20

// Config is a client configuration file.
type Config struct {
	Clusters       []NamedCluster `json:"clusters"`
	Users          []NamedUser    `json:"users"`
	Contexts       []NamedContext `json:"contexts"`
	CurrentContext string         `json:"current-context"`
	dir            string         // relative paths start here
}

// NamedCluster is an entry of the clusters list.
type NamedCluster struct {
	Name    string  `json:"name"`
	Cluster Cluster `json:"cluster"`
}

// NamedUser is an entry of the users list.
type NamedUser struct {
	Name string `json:"name"`
	User User   `json:"user"`
}

// NamedContext is an entry of the contexts list.
type NamedContext struct {
	Name    string  `json:"name"`
	Context Context `json:"context"`
}

// Context is a cluster with a user.
type Context struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace"`
}

// Cluster is a remote server.
type Cluster struct {
	Server                   string           `json:"server"`
	CertificateAuthority     string           `json:"certificate-authority"`
	CertificateAuthorityData []byte           `json:"certificate-authority-data"`
	TLSServerName            string           `json:"tls-server-name"`
	InsecureSkipTLSVerify    bool             `json:"insecure-skip-tls-verify"`
	Extensions               []NamedExtension `json:"extensions"`
}

// NamedExtension is free data of a cluster for the program of that name.
type NamedExtension struct {
	Name      string `json:"name"`
	Extension any    `json:"extension"`
}

// User is a set of credentials.
type User struct {
	ClientCertificate     string `json:"client-certificate"`
	ClientCertificateData []byte `json:"client-certificate-data"`
	ClientKey             string `json:"client-key"`
	ClientKeyData         []byte `json:"client-key-data"`
	Token                 string `json:"token"`
	TokenFile             string `json:"tokenFile"`
	Username              string `json:"username"`
	Password              string `json:"password"`

	// Exec gets the credentials from a program, instead of the others.
	Exec *exec.Config `json:"exec"`
}

// Load reads a file; relative paths in it start at its directory.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("clientconfig: %w", err)
	}
	c, err := Parse(data, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads YAML or JSON; relative paths in it start at dir. Unknown fields
// are skipped, because other programs keep theirs in the same files.
func Parse(data []byte, dir string) (*Config, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("clientconfig: more than %d bytes", maxFile)
	}
	c := &Config{dir: dir}
	if err := yaml.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("clientconfig: %w", err)
	}
	return c, nil
}

// Current returns the remote server and the credentials of the current context.
// A file without contexts must have one cluster and at most one user.
func (c *Config) Current() (*Remote, error) {
	switch {
	case c.CurrentContext == "" && len(c.Contexts) == 0 && len(c.Clusters) == 1 && len(c.Users) <= 1:
		var u User
		if len(c.Users) == 1 {
			u = c.Users[0].User
		}
		return c.Remote(c.Clusters[0].Cluster, u)
	case c.CurrentContext == "" && len(c.Contexts) == 1:
		return c.context(c.Contexts[0].Context)
	case c.CurrentContext == "":
		return nil, errors.New("clientconfig: no current-context")
	}
	for _, n := range c.Contexts {
		if n.Name == c.CurrentContext {
			return c.context(n.Context)
		}
	}
	return nil, fmt.Errorf("clientconfig: no context %q", c.CurrentContext)
}

func (c *Config) context(x Context) (*Remote, error) {
	var u User
	if x.User != "" {
		var ok bool
		if u, ok = c.User(x.User); !ok {
			return nil, fmt.Errorf("clientconfig: no user %q", x.User)
		}
	}
	for _, n := range c.Clusters {
		if n.Name == x.Cluster {
			return c.Remote(n.Cluster, u)
		}
	}
	return nil, fmt.Errorf("clientconfig: no cluster %q", x.Cluster)
}

// User returns the user of a name.
func (c *Config) User(name string) (User, bool) {
	for _, n := range c.Users {
		if n.Name == name {
			return n.User, true
		}
	}
	return User{}, false
}

// Remote loads what the credentials of u and the authorities of cluster name.
func (c *Config) Remote(cluster Cluster, u User) (*Remote, error) {
	address, err := url.Parse(cluster.Server)
	if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") || address.User != nil {
		return nil, fmt.Errorf("clientconfig: %q is no address of a server", cluster.Server)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cluster.TLSServerName, InsecureSkipVerify: cluster.InsecureSkipTLSVerify}
	ca, err := c.read(cluster.CertificateAuthority, cluster.CertificateAuthorityData)
	if err != nil {
		return nil, err
	}
	if ca != nil {
		if t.RootCAs, err = pki.ParsePool(ca); err != nil {
			return nil, fmt.Errorf("clientconfig: the certificate authority: %w", err)
		}
	}
	r := &Remote{URL: address, TLS: t, authority: ca}
	if u.Exec != nil {
		return r, c.program(r, *u.Exec, cluster)
	}
	return r, c.credentials(r, u)
}

// program makes the credentials come from a program.
func (c *Config) program(r *Remote, e exec.Config, cluster Cluster) error {
	e.Dir = c.dir
	e.Cluster = &exec.Cluster{Server: cluster.Server, TLSServerName: cluster.TLSServerName,
		InsecureSkipTLSVerify: cluster.InsecureSkipTLSVerify, CertificateAuthorityData: r.authority}
	group, _, _ := strings.Cut(e.APIVersion, "/")
	for _, x := range cluster.Extensions {
		if x.Name == group+"/exec" {
			e.Cluster.Config = x.Extension
		}
	}
	var err error
	r.program, err = exec.New(e)
	return err
}

// Credentials loads what u names; nothing of it is for a server of its own.
func (c *Config) Credentials(u User) (*Remote, error) {
	r := &Remote{TLS: &tls.Config{MinVersion: tls.VersionTLS12}}
	return r, c.credentials(r, u)
}

func (c *Config) credentials(r *Remote, u User) error {
	cert, err := c.read(u.ClientCertificate, u.ClientCertificateData)
	if err != nil {
		return err
	}
	key, err := c.read(u.ClientKey, u.ClientKeyData)
	if err != nil {
		return err
	}
	if (cert == nil) != (key == nil) {
		return errors.New("clientconfig: a client certificate needs its key and a key its certificate")
	}
	if cert != nil {
		pair, err := pki.ParseKeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("clientconfig: %w", err)
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

// read returns data, or the content of the file; nil without both.
func (c *Config) read(path string, data []byte) ([]byte, error) {
	if len(data) > 0 || path == "" {
		return data, nil
	}
	b, err := os.ReadFile(c.path(path))
	if err != nil {
		return nil, fmt.Errorf("clientconfig: %w", err)
	}
	return b, nil
}

func (c *Config) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.dir, p)
}
