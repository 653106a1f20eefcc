// Package formertest has the versions of built-in kinds that releases removed, with an
// object of each.
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

// Version is a resource in a version, as clients name them.
type Version struct {
	In, Last   string // the first release that does not serve it any more, and the last that does
	APIVersion string
	Resource   string // "~" marks one of cluster scope, "+" one that is only created, "-" one with sub-resources alone
	Fields     string // of an object beside its metadata, in JSON
}

//go:embed versions.txt
var files embed.FS

// Versions returns all that releases removed.
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

// Plural is the resource in a path.
func (v *Version) Plural() string { return strings.TrimLeft(v.Resource, "+~-") }

// Namespaced reports whether the objects are in namespaces.
func (v *Version) Namespaced() bool { return !strings.Contains(v.Resource, "~") }

// OnlyCreated reports whether nothing is stored: the answer to a creation is all there is.
func (v *Version) OnlyCreated() bool { return strings.HasPrefix(v.Resource, "+") }

// OnlySubresources reports whether there are sub-resources of the objects and not these,
// which are made where Origin says.
func (v *Version) OnlySubresources() bool { return strings.HasPrefix(v.Resource, "-") }

// Origin returns where objects are created.
func (v *Version) Origin() string {
	if v.OnlySubresources() {
		return "/api/v1/namespaces/default/" + v.Plural()
	}
	return v.Path()
}

// Path returns where the resource is.
func (v *Version) Path() string {
	if v.Namespaced() {
		return "/apis/" + v.APIVersion + "/namespaces/default/" + v.Plural()
	}
	return "/apis/" + v.APIVersion + "/" + v.Plural()
}

// Name of the object, which no object of another version has unless the kind says what it
// is.
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

// SigningRequest returns a request for a certificate as JSON has it.
func SigningRequest(t testing.TB) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "alice"}}, key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}
