package certificates_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth/certificates"
)

// What a node agent asks for is signed where it names the node and its group.
func ExampleCheck() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, group := range []string{"system:nodes", "admins"} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
			Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{group}},
		}, key)
		if err != nil {
			fmt.Println(err)
			return
		}
		request, err := x509.ParseCertificateRequest(der)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(certificates.Check(names.SignerClientNode, request, []string{"client auth", "digital signature", "key encipherment"}))
	}
	// Output:
	// <nil>
	// subject organization is not system:nodes
}
