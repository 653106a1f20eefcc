package apiserver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
)

// backupPath is the path at which a running server serves backups.
const backupPath = "/backup"

// backupHandler returns a handler that serves backups of a store to the group system:masters only. A backup
// contains all secrets, so permission to read all paths is not sufficient.
func backupHandler(store storage.Backend) http.Handler {
	all := backup.Handler(store)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := meta.UserFrom(r.Context()); u == nil || !u.InGroup(auth.Masters) {
			http.Error(w, "backups are for the group "+auth.Masters, http.StatusForbidden)
			return
		}
		all.ServeHTTP(w, r)
	})
}

// backup implements the command that saves a store to a file.
func (c Command) backup(ctx context.Context, args []string, out io.Writer) error {
	var from location
	set := c.flagSet("backup", "[flags] FILE", "saves the content and history of a store in a new file. With --kubeconfig it saves the store of a running server, otherwise\n"+
		"a directory that no server has open, or the store of another engine. Keys and certificates (*.pem) are not included.")
	from.define(set, c.Engines, "", "./controlplane-data", "data directory of a server that is not running")
	kubeconfig := set.String("kubeconfig", "", "client configuration of an administrator of a running server; its store is saved while it serves")
	earlier := set.String("since", "", "earlier backup file, which may itself be made with --since: the new file contains only later changes, and a restore needs both files")
	files, err := parseCommand(set, args, &from)
	if err != nil {
		return err
	}
	set.Visit(func(x *flag.Flag) {
		if *kubeconfig != "" && x.Name != "kubeconfig" && x.Name != "since" {
			err = errors.Join(err, fmt.Errorf("--%s cannot be used with --kubeconfig", x.Name))
		}
	})
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return fmt.Errorf("expected one file name, got %d", len(files))
	}
	var since backup.Position
	if *earlier != "" {
		report, err := verifyFiles(ctx, []string{*earlier})
		if err != nil {
			return fmt.Errorf("--since %s: %w", *earlier, err)
		}
		since = report.Position
	}
	removeUnfinished(filepath.Dir(files[0]))
	var report *backup.Report
	err = save(files[0], func(w io.Writer) (err error) {
		if *kubeconfig != "" {
			report, err = fetch(ctx, *kubeconfig, since, w)
		} else {
			report, err = from.backup(ctx, since, w)
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", files[0], describe(report))
	return nil
}

// backup saves the store of a server that is not running, or of an engine that several processes may
// open.
func (p *location) backup(ctx context.Context, since backup.Position, w io.Writer) (*backup.Report, error) {
	store, err := p.openFilled(ctx, newLogger(slog.LevelWarn))
	if err != nil {
		return nil, adviseInUse(err, "use --kubeconfig to save the store of a running server")
	}
	shown := newProgress()
	defer shown.end()
	report, err := backup.Backup(ctx, store, w, backup.Options{Base: since, Progress: shown.report})
	return report, errors.Join(err, store.Close())
}

// fetch saves the store of a running server. It verifies the backup while it arrives.
func fetch(ctx context.Context, file string, since backup.Position, w io.Writer) (*backup.Report, error) {
	config, err := kubeconfig.Load(file)
	if err != nil {
		return nil, err
	}
	remote, err := config.Current()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	client := &http.Client{Transport: remote.Transport()}
	defer client.CloseIdleConnections()
	body, err := backup.Fetch(ctx, client, remote.URL.JoinPath(backupPath).String(), since)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	shown := newProgress()
	defer shown.end()
	report, err := backup.Verify(ctx, backup.Options{Progress: shown.report}, io.TeeReader(body, w))
	if err == nil && report.Base != since {
		err = fmt.Errorf("the server sent a backup based on revision %d, not on %d", report.Base.Revision, since.Revision)
	}
	return report, err
}

// save writes a new file, which gets its name only when it is complete and on the disk. It does not
// replace an existing file.
func save(path string, write func(io.Writer) error) (err error) {
	exists := fmt.Errorf("%s already exists", path)
	switch _, err := os.Lstat(path); { // an early check; os.Link makes the decision
	case err == nil:
		return exists
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+partMark) // readable by the owner only
	if err != nil {
		return err
	}
	defer f.Close() // the second Close has no effect
	if err := lockFile(f); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Link(f.Name(), path)
		if errors.Is(err, fs.ErrExist) {
			err = exists
		}
	}
	if err = errors.Join(err, os.Remove(f.Name()), f.Close()); err != nil {
		return err
	}
	return syncDir(dir)
}

// partMark precedes the random number in the name of an incomplete backup file.
const partMark = ".part-"

// backupBegin is the prefix of every backup.
const backupBegin = "cpbackup"

// removeUnfinished removes the incomplete files that killed backups left in a directory. These are
// files with partMark in their names that begin with backupBegin and are not locked by a process.
func removeUnfinished(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*"+partMark+"*")) // only a bad pattern is an error
	for _, path := range paths {
		number := path[strings.LastIndex(path, partMark)+len(partMark):]
		if _, err := strconv.ParseUint(number, 10, 64); err != nil {
			continue
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if err := removeUnlocked(path); err != nil {
			fmt.Fprintf(os.Stderr, "cannot remove %s, which an interrupted backup left: %v\n", path, err)
		}
	}
}

// removeUnlocked removes an incomplete backup unless a process writes it.
func removeUnlocked(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if lockFile(f) != nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 && time.Since(info.ModTime()) < time.Minute {
		return nil // its process may not have locked it yet
	}
	begin := make([]byte, len(backupBegin))
	if _, err := io.ReadFull(f, begin); err == nil && string(begin) != backupBegin || err != nil && info.Size() > 0 {
		return nil // not a backup
	}
	return os.Remove(path)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
