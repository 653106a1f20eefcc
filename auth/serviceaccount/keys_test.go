package serviceaccount_test

import (
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/internal/pkitest"
)

func TestLongKeysAreRefused(t *testing.T) {
	_, err := serviceaccount.NewKey(pkitest.PublicKey(1_000_000))
	assert.ErrorContains(t, err, "an RSA key of 1000000 bits")
	key := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: pkitest.PrivateKey(8192, 16384)})
	_, err = serviceaccount.ParseKeys(key)
	assert.ErrorContains(t, err, "a factor of more than")
}
