package server_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/builtin/storagemigration"
)

// The file declaredRequests holds, for each validation rule that kube-apiserver 1.37 declares on the
// fields of a built-in kind, a request that violates that rule only. The file declaredAnswers holds
// these requests with the answers of kube-apiserver. To record the answers again, start a
// kube-apiserver, and run
//
//	go test ./server -run TestDeclaredValidation -reference https://127.0.0.1:PORT
const (
	declaredRequests = "testdata/declared.json"
	declaredAnswers  = "testdata/declared.jsonl.gz"
)

// TestDeclaredValidation compares the answers to requests that violate declared validation rules with
// the recorded answers. It fails on a difference that testdata/differences.txt does not list, and on
// a listed difference that no longer exists.
func TestDeclaredValidation(t *testing.T) {
	if *reference != "" {
		recordDeclared(t)
	}
	compareRecorded(t, declaredAnswers, "declared", false, storagemigration.Kinds()...)
}

// recordDeclared sends the requests to the reference server and writes its answers.
func recordDeclared(t *testing.T) {
	text, err := os.ReadFile(declaredRequests)
	require.NoError(t, err)
	var scenarios []scenario
	require.NoError(t, json.Unmarshal(text, &scenarios))
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer insecure.CloseIdleConnections()
	p := &player{client: &http.Client{Transport: insecure}, base: *reference}
	for i := range scenarios {
		p.record(t, &scenarios[i])
	}
	writeScenarios(t, declaredAnswers, scenarios)
}
