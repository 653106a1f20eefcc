package tokenfile_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
)

func TestParseReadsUsers(t *testing.T) {
	a, err := tokenfile.Parse(strings.NewReader("t1,alice,1,\"devs, ops\"\n\nt2,bob,2\nt3,carol,,g1,\"g2,g1\"\nt4,dave,4,\n"))
	require.NoError(t, err)
	for token, want := range map[string]*auth.User{
		"t1": {Name: "alice", UID: "1", Groups: []string{"devs", "ops"}},
		"t2": {Name: "bob", UID: "2"},
		"t3": {Name: "carol", Groups: []string{"g1", "g2"}},
		"t4": {Name: "dave", UID: "4"},
		"":   nil, "T1": nil, "t": nil, "t11": nil, "alice": nil,
	} {
		u, _, err := a.AuthenticateToken(context.Background(), token, nil)
		require.NoError(t, err)
		assert.Equal(t, want, u, token)
	}
}

func TestParseReportsInvalidLines(t *testing.T) {
	for in, want := range map[string]string{
		"t1,alice,1\nt2,bob\n":        "line 2: 2 columns",
		"t1,alice,1\n,bob,2\n":        "line 2: the token is empty",
		"t1,,1\n":                     "line 1: the user name is empty",
		"t1,alice,1\nx,b,2\nt1,c,3\n": "line 3: duplicate token",
		"a b,alice,1\n":               "line 1: the token contains white space",
		"t1,alice,1,\"devs\n":         "line 1",
		"t1,alice,1\nt2,b\"b,1\n":     "line 2",
		strings.Repeat("x", auth.MaxToken+1) + ",alice,1\n": "line 1: the token is longer than",
	} {
		a, err := tokenfile.Parse(strings.NewReader(in))
		assert.Nil(t, a)
		assert.ErrorContains(t, err, want)
	}
	_, err := tokenfile.Parse(strings.NewReader("a\n,b,c\n"))
	assert.ErrorContains(t, err, "line 1")
	assert.ErrorContains(t, err, "line 2", "the errors of all lines")
}

func TestTheLongestTokenIsAccepted(t *testing.T) {
	longest := strings.Repeat("x", auth.MaxToken)
	a, err := tokenfile.Parse(strings.NewReader(longest + ",alice,1\n"))
	require.NoError(t, err)
	u, _, err := a.AuthenticateToken(t.Context(), longest, nil)
	require.NoError(t, err)
	assert.Equal(t, &auth.User{Name: "alice", UID: "1"}, u)
}

func TestTooLongFileIsRefused(t *testing.T) {
	const lines, length = 1024, 64 << 10 // of a line, so that all of them are as long as a file may be
	read := func(more string) error {
		pad := strings.Repeat("x", length-len("0000,u,1\n"))
		var parts []io.Reader
		for i := range lines {
			parts = append(parts, strings.NewReader(fmt.Sprintf("%04d", i)), strings.NewReader(pad), strings.NewReader(",u,1\n"))
		}
		_, err := tokenfile.Parse(io.MultiReader(append(parts, strings.NewReader(more))...))
		return err
	}
	assert.NoError(t, read(""))
	assert.ErrorContains(t, read("\n"), "larger than 67108864 bytes")
}

func TestLoadReadsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.csv")
	_, err := tokenfile.Load(path)
	assert.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("x\n"), 0o600))
	_, err = tokenfile.Load(path)
	assert.ErrorContains(t, err, path)
	require.NoError(t, os.WriteFile(path, []byte("x,y,z\n"), 0o600))
	_, err = tokenfile.Load(path)
	assert.NoError(t, err)
}

func FuzzParse(f *testing.F) {
	f.Add("t1,alice,1,\"devs,ops\"\n")
	f.Add("t1,alice\n")
	f.Add("\"")
	f.Fuzz(func(t *testing.T, in string) {
		a, err := tokenfile.Parse(strings.NewReader(in))
		if (a == nil) != (err != nil) {
			t.Fatal(a, err)
		}
		if a != nil {
			u, _, _ := a.AuthenticateToken(context.Background(), "", nil)
			assert.Nil(t, u)
		}
	})
}

func ExampleParse() {
	a, err := tokenfile.Parse(strings.NewReader(`secret,alice,1001,"devs,ops"`))
	if err != nil {
		panic(err)
	}
	u, _, _ := a.AuthenticateToken(context.Background(), "secret", nil)
	fmt.Println(u.Name, u.UID, u.Groups)
	// Output: alice 1001 [devs ops]
}

func BenchmarkAuthenticateToken(b *testing.B) {
	var lines strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&lines, "token-%d,user-%d,%d,\"a,b\"\n", i, i, i)
	}
	a, err := tokenfile.Parse(strings.NewReader(lines.String()))
	require.NoError(b, err)
	for b.Loop() {
		a.AuthenticateToken(context.Background(), "token-5000", nil)
	}
}
