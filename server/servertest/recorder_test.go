package servertest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/servertest"
)

func TestRecorderHasMatchingRequests(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.RBAC)
	jane, admin := s.As("jane").Client(), s.As("admin", "system:masters").Client()
	all := s.Record()
	writes := s.Record(servertest.On("write", "*", "*"))
	s.Fail(servertest.On("delete", "configmaps").Named("lost").Times(1).With(servertest.LoseResponse))

	outcome(t, admin, "GET", s.Host()+"/version", "")
	outcome(t, admin, "GET", s.Host()+maps+"/x", "")
	outcome(t, admin, "POST", s.Host()+maps, `{"metadata":{"name":"x"}}`)
	for range 3 {
		outcome(t, admin, "GET", s.Host()+maps+"/x", "")
	}
	outcome(t, jane, "PUT", s.Host()+"/apis/apps/v1/namespaces/default/deployments/x/status", `{}`)
	outcome(t, s.Client(), "GET", s.Host()+"/api/v1/nodes/n", "")
	outcome(t, &http.Client{Transport: s.Transport()}, "GET", s.Host()+"/api/v1/nodes", "")
	outcome(t, admin, "POST", s.Host()+maps, `{"data":{},"metadata":{"generateName":"x-"}}`)
	outcome(t, admin, "DELETE", s.Host()+maps+"/lost", "")
	outcome(t, admin, "PATCH", s.Host()+"/api/v1/namespaces/default", `{}`)
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.Host()+maps, strings.NewReader(string(configMapProto("proto"))))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/vnd.kubernetes.protobuf")
	r.Header.Set("Impersonate-User", "jane")
	r.Header.Set("Impersonate-Group", "system:masters")
	res, err := admin.Do(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	bad, err := http.NewRequestWithContext(t.Context(), "GET", s.Host()+maps, nil)
	require.NoError(t, err)
	bad.Header.Set("Authorization", "Bearer guessed")
	res, err = s.Client().Do(bad)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	writes.Stop()
	watch := send(t, t.Context(), admin, "GET", s.Host()+maps+"?watch=1", "")
	outcome(t, admin, "DELETE", s.Host()+maps+"/x", "")

	assert.Equal(t, `admin get configmaps default/x → 404
admin create configmaps default/x → 201
admin get configmaps default/x → 200
jane update deployments.apps/status default/x → 403
system:anonymous get nodes n → 403
system:anonymous list nodes → 403
admin create configmaps default/x-* → 201
admin delete configmaps default/lost → cut
admin patch namespaces default → 415
jane create configmaps default/proto → 201
nobody list configmaps default/ → 401
admin watch configmaps default/ → 200
admin delete configmaps default/x → 200
`, all.String())
	assert.Equal(t, `admin create configmaps default/x → 201
jane update deployments.apps/status default/x → 403
admin create configmaps default/x-* → 201
admin delete configmaps default/lost → cut
admin patch namespaces default → 415
jane create configmaps default/proto → 201
`, writes.String())
	require.NoError(t, watch.Body.Close())
}

// configMapProto returns a ConfigMap with a name in Protobuf.
func configMapProto(name string) []byte {
	metadata := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
	return codec.Envelope(nil, "v1", "ConfigMap", protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), metadata))
}
