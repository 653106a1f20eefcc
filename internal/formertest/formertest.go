// Package formertest lists the versions of built-in kinds that releases removed, with an object of
// each.
package formertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"embed"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Version is a resource in a removed version.
type Version struct {
	In, Last   string // the release that removed the version, and the last release that serves it
	APIVersion string
	Resource   string // prefix "~": cluster-scoped; "+": create only; "-": only subresources are served
	Fields     string // fields of the object beside its metadata, in JSON
}

//go:embed versions.txt
var files embed.FS

// Versions returns all removed versions.
func Versions(t testing.TB) (list []Version) {
	t.Helper()
	table, err := files.ReadFile("versions.txt")
	require.NoError(t, err)
	request := SigningRequest(t)
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.SplitN(strings.TrimSpace(line), " ", 5)
		require.Len(t, columns, 5, line)
		list = append(list, Version{In: columns[0], Last: columns[1], APIVersion: columns[2], Resource: columns[3],
			Fields: strings.ReplaceAll(columns[4], "REQUEST", request)})
	}
	return list
}

// Plural returns the resource as in a path.
func (v *Version) Plural() string { return strings.TrimLeft(v.Resource, "+~-") }

// Namespaced reports whether the resource is namespaced.
func (v *Version) Namespaced() bool { return !strings.Contains(v.Resource, "~") }

// OnlyCreated reports whether objects are not stored, but only answered to a create.
func (v *Version) OnlyCreated() bool { return strings.HasPrefix(v.Resource, "+") }

// OnlySubresources reports whether the version serves only subresources. The objects are created at
// Origin.
func (v *Version) OnlySubresources() bool { return strings.HasPrefix(v.Resource, "-") }

// Origin returns the path at which objects are created.
func (v *Version) Origin() string {
	if v.OnlySubresources() {
		return "/api/v1/namespaces/default/" + v.Plural()
	}
	return v.Path()
}

// Path returns the path of the resource.
func (v *Version) Path() string {
	if v.Namespaced() {
		return "/apis/" + v.APIVersion + "/namespaces/default/" + v.Plural()
	}
	return "/apis/" + v.APIVersion + "/" + v.Plural()
}

// Name returns the name of the object. It is unique among all versions, unless the kind determines
// the name.
func (v *Version) Name() string {
	switch v.Plural() {
	case "customresourcedefinitions":
		return "as.example.com"
	case "apiservices":
		return "v7.example.com"
	}
	return "a-" + strings.NewReplacer("/", "-", ".", "-").Replace(v.APIVersion)
}

// Object returns the object in JSON.
func (v *Version) Object() string {
	if v.OnlyCreated() {
		return "{" + v.Fields + "}"
	}
	return fmt.Sprintf(`{"metadata":{"name":%q},%s}`, v.Name(), v.Fields)
}

// SigningRequest returns a certificate signing request in the form of the field spec.request.
func SigningRequest(t testing.TB) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "alice"}}, key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}
