package serving

import (
	"encoding/base64"
	"fmt"
)

// Kubeconfig returns a kubeconfig for the server at a URL, with a new client certificate of a user in groups.
func (ca *Authority) Kubeconfig(url, user string, groups ...string) ([]byte, error) {
	cert, key, err := ca.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	return Kubeconfig(url, user, ca.PEM(), cert, key), nil
}

// Kubeconfig returns a kubeconfig for the server at a URL. ca has the CA certificates that verify the server; cert and
// key are the client certificate of the user and its key. All are PEM.
func Kubeconfig(url, user string, ca, cert, key []byte) []byte {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: %[2]q
clusters:
- name: controlplane
  cluster:
    server: %[1]q
    certificate-authority-data: %[3]s
contexts:
- name: %[2]q
  context: {cluster: controlplane, user: %[2]q}
users:
- name: %[2]q
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
`, url, user, b64(ca), b64(cert), b64(key))
}
