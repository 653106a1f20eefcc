package apiserver

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeUntilRefused creates ConfigMaps until the server says that it takes no more, and returns the
// versions of those that it took.
func (p *process) writeUntilRefused(writer int) (taken map[string]uint64, err error) {
	taken = map[string]uint64{}
	for i := 0; ; i++ {
		name := fmt.Sprintf("w%d-%d", writer, i)
		res, err := p.client.Post(p.url+mapsPath, "application/json", strings.NewReader(fmt.Sprintf(`{"metadata":{"name":%q}}`, name)))
		if err != nil {
			return taken, err
		}
		text, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			return taken, err
		}
		var o object
		switch res.StatusCode {
		case 201:
			if err := json.Unmarshal(text, &o); err != nil {
				return taken, err
			}
			taken[name] = o.version()
		case 503:
			if after := res.Header.Get("Retry-After"); after != "1" || !strings.Contains(string(text), "store of this server") {
				return taken, fmt.Errorf("Retry-After %q: %s", after, text)
			}
			return taken, nil
		default:
			return taken, fmt.Errorf("%d %s", res.StatusCode, text)
		}
	}
}

// versions are those of all ConfigMaps of the default namespace that have a name like that.
func (p *process) versions(prefix string) map[string]uint64 {
	p.Helper()
	code, body := p.call("GET", mapsPath, "")
	require.Equal(p, 200, code, body)
	var list struct {
		Items []object `json:"items"`
	}
	require.NoError(p, json.Unmarshal([]byte(body), &list))
	found := map[string]uint64{}
	for _, o := range list.Items {
		if strings.HasPrefix(o.Metadata.Name, prefix) {
			found[o.Metadata.Name] = o.version()
		}
	}
	return found
}

// printed waits for a line that the program prints.
func (p *process) printed(prefix string) string {
	p.Helper()
	for {
		line, err := p.stdout.ReadString('\n')
		require.NoError(p, err)
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
}

// TestMove: a server moves its directory while 8 clients write. None loses what it was told, writes
// are refused in the end and reads are not, and the old directory cannot be served by mistake.
func TestMove(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	p := startProcess(t, dir)
	for i := range 20 {
		code, body := p.call("POST", mapsPath, fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"text":%q}}`, i, strings.Repeat("x", 500<<10)))
		require.Equal(t, 201, code, body)
	}
	require.NoError(t, p.end(syscall.SIGTERM))
	p = startProcess(t, dir, "--to-data-dir", to)
	var writers sync.WaitGroup
	all := make([]map[string]uint64, 8)
	for i := range all {
		writers.Go(func() {
			var err error
			all[i], err = p.writeUntilRefused(i)
			assert.NoError(t, err)
		})
	}
	require.Contains(t, p.printed("moved to "), "watches go on. This server takes no more writes")
	writers.Wait()
	taken := map[string]uint64{}
	for _, some := range all {
		for name, version := range some {
			taken[name] = version
		}
	}
	require.Equal(t, taken, p.versions("w"))
	code, body := p.call("DELETE", mapsPath+"/large-1", "")
	require.Equal(t, 503, code, body)
	code, body = p.call("GET", "/readyz", "")
	require.NotEqual(t, 200, code, body)
	code, body = p.call("GET", "/livez", "")
	require.Equal(t, 200, code, body)
	require.NoError(t, p.end(syscall.SIGTERM))
	refuses(t, "has moved to "+to, "--secure-port", "0", "--data-dir", dir)
	refuses(t, "has moved to "+to, "backup", "--data-dir", dir, filepath.Join(t.TempDir(), "file"))

	again := startProcess(t, to)
	again.client = p.client
	require.Equal(t, taken, again.versions("w"))
	require.Len(t, again.versions("large"), 20)
	after := again.make("after")
	for _, version := range taken {
		require.Greater(t, after, version)
	}
	require.NoError(t, again.end(syscall.SIGTERM))
}

// TestMoveFails: a server whose store cannot move says so, and takes writes.
func TestMoveFails(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), t.TempDir()
	p := startProcess(t, to)
	require.NoError(t, p.end(syscall.SIGTERM))
	p = startProcess(t, dir, "--to-data-dir", to)
	p.printed("not moved to ")
	p.make("first")
	require.NoError(t, p.end(syscall.SIGTERM))
	require.Contains(t, p.stderr.String(), "storage is not empty")
	p = startProcess(t, dir)
	require.Len(t, p.versions("first"), 1)
	require.NoError(t, p.end(syscall.SIGTERM))
	refuses(t, "only the store in a directory", "--secure-port", "0", "--data-dir", "", "--to-data-dir", to)
}

// killed is how often TestKilledCommands kills one: go test -run TestKilledCommands -killed 200.
var killed = flag.Int("killed", 3, "how often a command is killed")

// TestKilledCommands: a restore or a copy that is killed at any moment leaves nothing that is taken
// for the whole, and can be begun again.
func TestKilledCommands(t *testing.T) {
	t.Parallel()
	dir, saved, spare := t.TempDir(), filepath.Join(t.TempDir(), "saved"), t.TempDir()
	p := startProcess(t, dir)
	for i := range 20 {
		code, body := p.call("POST", mapsPath, fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"text":%q}}`, i, strings.Repeat("x", 500<<10)))
		require.Equal(t, 201, code, body)
	}
	require.NoError(t, p.end(syscall.SIGTERM))
	does(t, "backup", "--data-dir", dir, saved)
	_, want, _ := strings.Cut(does(t, "verify", saved), "whole: ")
	want, _, _ = strings.Cut(want, ",")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	usual, whole := 2*time.Second, 0
	for round := range *killed {
		to, file := filepath.Join(spare, fmt.Sprint("to", round)), filepath.Join(spare, fmt.Sprint("file", round))
		args := []string{"restore", "--data-dir", to, saved}
		if round%2 == 1 {
			args = []string{"copy", "--data-dir", dir, "--to-data-dir", to}
		}
		cmd := command(args...)
		begun := time.Now()
		require.NoError(t, cmd.Start())
		killer := time.AfterFunc(time.Duration(r.Int64N(int64(usual))), func() { _ = cmd.Process.Kill() })
		if cmd.Wait() == nil {
			usual = time.Since(begun)
		}
		killer.Stop()
		if out, err := command("backup", "--data-dir", to, file).CombinedOutput(); err == nil {
			whole++
			require.Contains(t, string(out), want)
			refuses(t, "storage is not empty", args...)
		} else {
			does(t, args...)
			require.Contains(t, does(t, "backup", "--data-dir", to, file), want)
		}
		require.NoError(t, errors.Join(os.RemoveAll(to), os.Remove(file)))
	}
	t.Logf("%d of %d were whole", whole, *killed)
}
