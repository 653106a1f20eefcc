package serving_test

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/serving"
)

// The certificate of the server comes from another authority; client certificates are issued by an authority
// that is kept in a directory.
func ExampleLoadAuthority() {
	dir, err := os.MkdirTemp("", "serving")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ca, err := serving.LoadAuthority(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	elsewhere, err := serving.NewAuthority("elsewhere")
	if err != nil {
		fmt.Println(err)
		return
	}
	certPEM, keyPEM, err := elsewhere.Server("lights.example")
	if err != nil {
		fmt.Println(err)
		return
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		fmt.Println(err)
		return
	}
	config := serving.TLS(cert) // for serving.Options
	fmt.Println(len(config.Certificates))

	admin, adminKey, err := ca.Client("admin", auth.Masters)
	if err != nil {
		fmt.Println(err)
		return
	}
	kubeconfig := serving.Kubeconfig("https://lights.example", "admin", elsewhere.PEM(), admin, adminKey)
	path := filepath.Join(dir, "admin.kubeconfig")
	if err := serving.WritePrivate(path, kubeconfig); err != nil {
		fmt.Println(err)
		return
	}
	file, err := os.Stat(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Mode())
	// Output:
	// 1
	// -rw-------
}

// A file that is created on the first start is not replaced.
func ExampleCreatePrivate() {
	dir, err := os.MkdirTemp("", "serving")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for _, token := range []string{"first", "second"} {
		kept, err := serving.CreatePrivate(filepath.Join(dir, "token"), []byte(token))
		fmt.Println(string(kept), err)
	}
	// Output:
	// first <nil>
	// first <nil>
}
