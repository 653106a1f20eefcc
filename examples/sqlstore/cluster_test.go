package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/sqlstore"
)

// cluster is a PostgreSQL server in a directory of its own, whose processes can be killed and started
// again. It listens only on a socket in that directory.
type cluster struct {
	dir  string
	args []string
	cmd  *exec.Cmd
	exit chan struct{} // closed after cmd has exited
}

// programs returns the directory of the PostgreSQL programs: found in PATH, or else where Debian
// installs them.
var programs = sync.OnceValues(func() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.Join(errors.New("no PostgreSQL is installed: apt-get install postgresql"), err)
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
})

// needPostgres skips the test if PostgreSQL is not installed, unless all tests are required to run.
func needPostgres(t testing.TB) {
	t.Helper()
	if _, err := programs(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// unprivileged makes a command run as an unprivileged user, because PostgreSQL refuses to run as root.
func unprivileged(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		return nil
	}
	id, err := account()
	if err == nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id, NoSetGroups: true}
	}
	return err
}

func account() (uint32, error) {
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			id, err := strconv.ParseUint(u.Uid, 10, 32)
			return uint32(id), err
		}
	}
	return 0, errors.New("neither postgres nor nobody is a user")
}

// command runs a program of PostgreSQL.
func command(name string, args ...string) error {
	bin, err := programs()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Dir = "/"
	if err := unprivileged(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// newDir creates a directory for a server, with a path that is short enough for a socket.
func newDir() (string, error) {
	dir, err := os.MkdirTemp("", "pg")
	if err != nil || os.Geteuid() != 0 {
		return dir, err
	}
	id, err := account()
	if err != nil {
		return dir, err
	}
	return dir, os.Chown(dir, int(id), int(id))
}

// newCluster creates and starts a server. It runs without fsync, which is faster and safe unless the
// machine crashes.
func newCluster(settings ...string) (*cluster, error) {
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, args: settings}
	if err := command("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"); err != nil {
		return c, err
	}
	return c, c.start()
}

// standby creates a server that replicates this one.
func (c *cluster) standby() (*cluster, error) {
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	s := &cluster{dir: dir, args: []string{"fsync=off"}}
	if err := command("pg_basebackup", "-h", c.dir, "-U", "postgres", "-D", s.data(), "-R", "-c", "fast", "--no-sync"); err != nil {
		return s, err
	}
	return s, s.start()
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

// url returns the connection string of the default database.
func (c *cluster) url() string { return "host=" + c.dir + " user=postgres dbname=postgres" }

// start starts the server and returns when it answers.
func (c *cluster) start() error {
	deadline := time.Now().Add(time.Minute)
	for {
		err := c.run()
		for err == nil {
			var conn *pgx.Conn
			if conn, err = pgx.Connect(context.Background(), c.url()); err == nil {
				return conn.Close(context.Background())
			}
			select {
			case <-c.exit: // it exits while processes of the previous server are running
			case <-time.After(20 * time.Millisecond):
				if time.Now().Before(deadline) {
					err = nil
				}
			}
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
			return fmt.Errorf("PostgreSQL did not start: %w\n%s", err, log)
		}
	}
}

func (c *cluster) run() error {
	bin, err := programs()
	if err != nil {
		return err
	}
	args := []string{"-D", c.data(), "-k", c.dir, "-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=32MB"}
	for _, setting := range c.args {
		args = append(args, "-c", setting)
	}
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(bin, "postgres"), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	if err := unprivileged(cmd); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	exit := make(chan struct{})
	c.cmd, c.exit = cmd, exit
	go func() {
		defer close(exit)
		_ = cmd.Wait() // killed at the end of the test
	}()
	return nil
}

// kill kills all processes of the server with SIGKILL.
func (c *cluster) kill() {
	if c.cmd != nil {
		c.signal(syscall.SIGKILL)
		<-c.exit
	}
}

// signal sends a signal to the processes of the server, to the main process first. It misses processes
// that are started meanwhile; these end together with the main process.
func (c *cluster) signal(sig syscall.Signal) {
	pid := c.cmd.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	_ = c.cmd.Process.Signal(sig) // it may have exited
	for child := range strings.FieldsSeq(string(children)) {
		if id, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(id, sig)
		}
	}
}

func (c *cluster) remove() error {
	c.kill()
	return os.RemoveAll(c.dir)
}

// ownCluster returns a server for one test.
func ownCluster(t testing.TB, settings ...string) *cluster {
	needPostgres(t)
	c, err := newCluster(settings...)
	if c != nil {
		t.Cleanup(func() { require.NoError(t, c.remove()) })
	}
	require.NoError(t, err)
	return c
}

// commonCluster returns the server shared by all tests that do not disturb it, each in a schema of its
// own.
var commonCluster = sync.OnceValues(func() (*cluster, error) {
	started.Store(true)
	return newCluster("fsync=off")
})

var (
	started atomic.Bool // common
	schemas atomic.Int64
)

// empty returns options for an unused database.
func empty(t testing.TB) sqlstore.Options {
	needPostgres(t)
	c, err := commonCluster()
	require.NoError(t, err)
	schema := fmt.Sprint("Test-", schemas.Add(1))
	return sqlstore.Options{Postgres: c.url() + " application_name=" + schema, Schema: schema, Retain: forever}
}

// query executes a statement without a store.
func query(t testing.TB, o sqlstore.Options, statement string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), o.Postgres)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	_, err = conn.Exec(t.Context(), `SELECT set_config('search_path', $1, false)`, pgx.Identifier{o.Schema}.Sanitize())
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}
