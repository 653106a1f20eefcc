package etcdtest

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReserveKeepsPort: nothing listens on a reserved port, and no other socket can be bound to it.
func TestReserveKeepsPort(t *testing.T) {
	address := reserve(t)
	_, err := net.Dial("tcp", address)
	require.Error(t, err)
	_, err = net.Listen("tcp", address)
	require.Error(t, err)
}
