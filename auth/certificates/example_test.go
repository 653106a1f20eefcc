package certificates_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/certificates"
	"orch.io/controlplane/client"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/serving"
)

// A server with the controllers that approve, sign and delete
// CertificateSigningRequests.
func ExampleSigner() {
	ca, err := serving.NewAuthority("lights")
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := ca.KeyPEM()
	if err != nil {
		fmt.Println(err)
		return
	}
	authority, err := certificates.NewAuthority(ca.PEM(), key)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := names.Kubernetes
	b := &server.Builder{Names: p, Authorizer: auth.AllowAll, Controllers: []client.Controller{
		certificates.Approver(auth.AllowAll, p),
		certificates.Signer{Authority: authority, MaxDuration: 24 * time.Hour}.Controller(p),
		certificates.Cleaner(p, nil),
	}}
	for _, c := range b.Controllers {
		fmt.Println(c.Name)
	}
	// Output:
	// csrapproving
	// csrsigning
	// csrcleaner
}

// An Authority signs a request without a server.
func ExampleAuthority() {
	ca, err := serving.NewAuthority("lights")
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := ca.KeyPEM()
	if err != nil {
		fmt.Println(err)
		return
	}
	authority, err := certificates.NewAuthority(ca.PEM(), key)
	if err != nil {
		fmt.Println(err)
		return
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "lamp-1"}}, own)
	if err != nil {
		fmt.Println(err)
		return
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		fmt.Println(err)
		return
	}
	signed, err := authority.Sign(request, []string{"client auth"}, time.Hour, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	block, _ := pem.Decode(signed)
	cert, err := x509.ParseCertificate(block.Bytes)
	fmt.Println(cert.Subject, cert.Issuer, err)
	// Output: CN=lamp-1 CN=lights <nil>
}
