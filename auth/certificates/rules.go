package certificates

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/auth/node"
	"orch.io/controlplane/internal/wellknown"
)

// Key usages that the rules of the built-in signers refer to.
const (
	clientAuth       = "client auth"
	serverAuth       = "server auth"
	digitalSignature = "digital signature"
	keyEncipherment  = "key encipherment"
)

// check returns an error if a request violates the rules of a built-in signer. signer
// is its spec name; usages is spec.usages of the request.
func check(signer string, r *x509.CertificateRequest, usages []string) error {
	switch signer {
	case wellknown.SignerClient:
		return checkClient(usages)
	case wellknown.SignerClientNode:
		if err := checkNode(r, usages, clientAuth); err != nil {
			return err
		}
		if len(r.DNSNames)+len(r.IPAddresses)+len(r.EmailAddresses)+len(r.URIs) > 0 {
			return errors.New("subject alternative names are not allowed")
		}
		return nil
	case wellknown.SignerNodeServing:
		if err := checkNode(r, usages, serverAuth); err != nil {
			return err
		}
		if len(r.EmailAddresses)+len(r.URIs) > 0 {
			return errors.New("email and URI subject alternative names are not allowed")
		}
		if len(r.DNSNames)+len(r.IPAddresses) == 0 {
			return errors.New("at least one DNS or IP subject alternative name is required")
		}
		return nil
	case wellknown.SignerLegacyUnknown:
		return nil
	}
	return fmt.Errorf("signer %q is not built in", signer)
}

func checkClient(usages []string) error {
	for _, u := range usages {
		if u != clientAuth && u != digitalSignature && u != keyEncipherment {
			return fmt.Errorf("usage %q is not allowed for this signer", u)
		}
	}
	if !slices.Contains(usages, clientAuth) {
		return fmt.Errorf("usage %q is required by this signer", clientAuth)
	}
	return nil
}

func checkNode(r *x509.CertificateRequest, usages []string, purpose string) error {
	if len(r.Subject.Organization) != 1 || r.Subject.Organization[0] != node.Group {
		return fmt.Errorf("subject organization is not %s", node.Group)
	}
	if name, ok := strings.CutPrefix(r.Subject.CommonName, node.UserPrefix); !ok || name == "" {
		return fmt.Errorf("subject common name does not begin with %s", node.UserPrefix)
	}
	have := slices.Sorted(slices.Values(usages))
	want := []string{purpose, digitalSignature, keyEncipherment}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		return fmt.Errorf("usages are not exactly %q", want)
	}
	return nil
}

// usage is the meaning of an entry of spec.usages in a certificate.
type usage struct {
	key x509.KeyUsage
	ext []x509.ExtKeyUsage
}

// usageTable returns the usages by their names in spec.usages.
func usageTable() map[string]usage {
	ext := func(u ...x509.ExtKeyUsage) usage { return usage{ext: u} }
	key := func(u x509.KeyUsage) usage { return usage{key: u} }
	return map[string]usage{
		"signing":            key(x509.KeyUsageDigitalSignature),
		digitalSignature:     key(x509.KeyUsageDigitalSignature),
		"content commitment": key(x509.KeyUsageContentCommitment),
		keyEncipherment:      key(x509.KeyUsageKeyEncipherment),
		"data encipherment":  key(x509.KeyUsageDataEncipherment),
		"key agreement":      key(x509.KeyUsageKeyAgreement),
		"cert sign":          key(x509.KeyUsageCertSign),
		"crl sign":           key(x509.KeyUsageCRLSign),
		"encipher only":      key(x509.KeyUsageEncipherOnly),
		"decipher only":      key(x509.KeyUsageDecipherOnly),
		"any":                ext(x509.ExtKeyUsageAny),
		serverAuth:           ext(x509.ExtKeyUsageServerAuth),
		clientAuth:           ext(x509.ExtKeyUsageClientAuth),
		"code signing":       ext(x509.ExtKeyUsageCodeSigning),
		"email protection":   ext(x509.ExtKeyUsageEmailProtection),
		"s/mime":             ext(x509.ExtKeyUsageEmailProtection),
		"ipsec end system":   ext(x509.ExtKeyUsageIPSECEndSystem),
		"ipsec tunnel":       ext(x509.ExtKeyUsageIPSECTunnel),
		"ipsec user":         ext(x509.ExtKeyUsageIPSECUser),
		"timestamping":       ext(x509.ExtKeyUsageTimeStamping),
		"ocsp signing":       ext(x509.ExtKeyUsageOCSPSigning),
		"microsoft sgc":      ext(x509.ExtKeyUsageMicrosoftServerGatedCrypto),
		"netscape sgc":       ext(x509.ExtKeyUsageNetscapeServerGatedCrypto),
	}
}

// keyUsages converts spec.usages. The result is sorted and has no duplicates.
func keyUsages(words []string) (x509.KeyUsage, []x509.ExtKeyUsage, error) {
	table := usageTable()
	var key x509.KeyUsage
	var ext []x509.ExtKeyUsage
	for _, w := range words {
		u, ok := table[w]
		if !ok {
			return 0, nil, fmt.Errorf("unknown usage %q", w)
		}
		key |= u.key
		for _, e := range u.ext {
			if !slices.Contains(ext, e) {
				ext = append(ext, e)
			}
		}
	}
	slices.Sort(ext)
	return key, ext, nil
}
