package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"orch.io/controlplane/storage"
)

const (
	// connectTime limits one attempt to connect, unless the URL sets a limit.
	connectTime = 5 * time.Second
	// holdTime limits how long a process that stops in the middle of a commit can block the commits of
	// all others.
	holdTime = 10 * time.Second
	// lockClass is the first half of the keys of advisory locks. The second half is the OID of the
	// table state, or 0 while the tables are created.
	lockClass = 0x6f726368
)

//go:embed postgres.sql
var postgresSchema string

// postgresDB is the dialect of PostgreSQL.
type postgresDB struct {
	config *pgx.ConnConfig
	schema string
}

func newPostgres(url, schema string) (dialect, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if schema == "" {
		schema = "controlplane"
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTime
	}
	// A standby may lack acknowledged commits. The role is checked for each connection, because the
	// servers may have changed their roles since the last connection.
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	return &postgresDB{config, schema}, nil
}

func (d *postgresDB) where() string {
	return fmt.Sprintf("PostgreSQL at %s, database %q, schema %q", net.JoinHostPort(d.config.Host, fmt.Sprint(d.config.Port)), d.config.Database, d.schema)
}

// pollInterval finds commits with lost notifications: the connection may have failed, and a
// pooler may not forward notifications.
func (d *postgresDB) pollInterval() time.Duration { return time.Second }

func (d *postgresDB) exists(ctx context.Context) (there bool, err error) {
	db := d.connect(1)
	err = db.QueryRowContext(ctx, `SELECT to_regclass('records') IS NOT NULL AND to_regclass('commits') IS NOT NULL
		AND to_regclass('state') IS NOT NULL AND to_regclass('stamps') IS NOT NULL`).Scan(&there)
	return there, errors.Join(err, db.Close())
}

func (d *postgresDB) open(ctx context.Context) (p pools, err error) {
	p.reads, p.commits = d.connect(maxReaders), d.connect(1)
	p.upkeep = p.reads
	exists, err := complete(ctx, p.reads)
	if err != nil || exists {
		return p, err // the user may lack the permission to create tables
	}
	tx, err := p.commits.BeginTx(ctx, nil)
	if err != nil {
		return p, err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d, 0)`, lockClass)); err != nil {
		return p, err
	}
	// Another process may have created the tables meanwhile, and may be using them.
	if exists, err = complete(ctx, tx); err != nil || exists {
		return p, err
	}
	// A query without arguments may consist of several statements.
	_, err = tx.ExecContext(ctx, fmt.Sprintf(`CREATE SCHEMA IF NOT EXISTS %s; `, pgx.Identifier{d.schema}.Sanitize())+postgresSchema)
	if err != nil {
		return p, err
	}
	return p, tx.Commit()
}

// complete reports whether the schema has all tables and columns.
func complete(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (there bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT to_regclass('stamps') IS NOT NULL AND
		(SELECT count(*) FROM pg_attribute WHERE NOT attisdropped AND (attrelid = to_regclass('state') AND attname IN ('lost', 'history')
		OR attrelid = to_regclass('commits') AND attname = 'id')) = 3`).Scan(&there)
	return there, err
}

func (d *postgresDB) connect(connections int) *sql.DB {
	db := stdlib.OpenDB(*d.config, stdlib.OptionAfterConnect(d.configure))
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

// configure makes a connection independent of the settings of the database and the user: names refer to
// the schema, each statement sees the commits before it, a commit is on disk before it is acknowledged,
// and only the store limits the duration of calls. In particular, a timeout of PostgreSQL could end the
// wait for a synchronous standby, and PostgreSQL would then report the commit as successful.
func (d *postgresDB) configure(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT set_config('search_path', $1, false),
		set_config('default_transaction_isolation', 'read committed', false),
		set_config('idle_in_transaction_session_timeout', $2, false),
		set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false),
		(SELECT count(set_config(name, '0', false)) FROM pg_settings
		WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_session_timeout'))`,
		pgx.Identifier{d.schema}.Sanitize(), fmt.Sprint(holdTime.Milliseconds()))
	return err
}

// listen waits for the notifications that each transaction with commits sends.
func (d *postgresDB) listen(ctx context.Context, heard func(storage.Revision)) error {
	conn, err := pgx.ConnectConfig(ctx, d.config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }() // the connection may have failed
	if err := d.configure(ctx, conn); err != nil {
		return err
	}
	var channel string
	if err := conn.QueryRow(ctx, `SELECT `+channelName).Scan(&channel); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	var revision storage.Revision // there is no notification for earlier commits
	if err := conn.QueryRow(ctx, `SELECT revision FROM state`).Scan(&revision); err != nil {
		return err
	}
	heard(revision)
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if n, err := strconv.ParseInt(notification.Payload, 10, 64); err == nil {
			heard(storage.Revision(n))
		}
	}
}

// channelName is an SQL expression for the notification channel of a store. Stores in other schemas of
// the database have other channels.
const channelName = `'controlplane_' || 'state'::regclass::oid`

// lock orders the commits of all processes: the next transaction can read the row only after the
// transaction before it is committed and visible. A sequence would not guarantee that.
func (d *postgresDB) lock(ctx context.Context, tx *sql.Tx, seen marks) (st state, err error) {
	if _, err := tx.ExecContext(ctx, `SELECT FROM state FOR UPDATE`); err != nil {
		return st, err
	}
	return stateOf(ctx, d, tx, seen) // a separate statement, which sees the commits that the lock waited for
}

func (d *postgresDB) gone(seen marks, first int) (query string, args []any) {
	return fmt.Sprintf(`SELECT min((m ->> 0)::bigint) FROM json_array_elements($%d::json) AS m WHERE (m ->> 0)::bigint >= s.floor
		AND NOT EXISTS (SELECT FROM commits AS c WHERE c.revision = (m ->> 0)::bigint AND c.id = (m ->> 1)::bigint)`, first), []any{seen.text()}
}

func (d *postgresDB) newest(ctx context.Context, tx *sql.Tx, keys []string) (map[string]storage.Revision, error) {
	names := make([][]byte, len(keys))
	for i, key := range keys {
		names[i] = []byte(key)
	}
	rows, err := tx.QueryContext(ctx, `
		SELECT k.key, r.revision FROM unnest($1::bytea[]) AS k(key) CROSS JOIN LATERAL
		(SELECT revision, deleted FROM records WHERE key = k.key ORDER BY revision DESC LIMIT 1) AS r
		WHERE NOT r.deleted`, names)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	revisions := make(map[string]storage.Revision, len(keys))
	for rows.Next() {
		var key string
		var revision storage.Revision
		if err := rows.Scan(&key, &revision); err != nil {
			return nil, err
		}
		revisions[key] = revision
	}
	return revisions, rows.Err()
}

// insert takes one round trip, because all processes wait for it. The commits are dated by the clock of
// the database, which is the same for all processes.
func (d *postgresDB) insert(ctx context.Context, tx *sql.Tx, made batch) error {
	_, err := tx.ExecContext(ctx, `
		WITH r AS (INSERT INTO records SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::boolean[], $4::bytea[])),
		c AS (INSERT INTO commits SELECT n, `+postgresNow+`, $7::bigint FROM generate_series($5::bigint, $6::bigint) AS n),
		s AS (UPDATE state SET revision = $6)
		SELECT pg_notify(`+channelName+`, ($6::bigint)::text)`,
		append(columns(made.records), int64(made.first), int64(made.last), made.id)...)
	return err
}

// columns returns the arguments from which unnest makes rows of the table records.
func columns(records []storage.Record) []any {
	keys, values := make([][]byte, len(records)), make([][]byte, len(records))
	revisions, deleted := make([]int64, len(records)), make([]bool, len(records))
	for i, r := range records {
		keys[i], values[i], revisions[i], deleted[i] = []byte(r.Key), r.Value, int64(r.Revision), r.Value == nil
	}
	return []any{keys, revisions, deleted, values}
}

func (d *postgresDB) allowLong(ctx context.Context, tx *sql.Tx) (now int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT `+postgresNow+`, set_config('idle_in_transaction_session_timeout', '0', true)`).Scan(&now, new(string))
	return now, err
}

func (d *postgresDB) add(ctx context.Context, tx *sql.Tx, records []storage.Record) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO records SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::boolean[], $4::bytea[]) ON CONFLICT DO NOTHING`,
		columns(records)...)
	return err
}

const postgresNow = `(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`

func (d *postgresDB) lockCompaction(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1::int, 'state'::regclass::oid::int)`, lockClass)
	return err
}

func (d *postgresDB) oldest(ctx context.Context, db *sql.DB, keep time.Duration) (oldest storage.Revision, err error) {
	err = db.QueryRowContext(ctx, oldestQuery(postgresNow+` - $1::bigint`), keep.Nanoseconds()).Scan(&oldest)
	return oldest, err
}

func (d *postgresDB) size() string {
	return `SELECT pg_total_relation_size('records') + pg_total_relation_size('commits')`
}

func (d *postgresDB) storageError(err error) error {
	switch stateCode(err) {
	case "53100": // disk_full
		return storage.ErrFull
	case "54000": // program_limit_exceeded
		return storage.ErrTooLarge
	}
	return nil
}

func (d *postgresDB) problem(err error) string {
	code := stateCode(err)
	switch code {
	case "":
		return ""
	case "25006": // read_only_sql_transaction
		return "the database is a standby or read-only"
	case "40001", "40P01", "55P03":
		return "the database is busy with other transactions"
	}
	switch code[:2] {
	case "08":
		return "the connection to the database failed"
	case "28", "42", "3D", "3F":
		return "the database denies access to the tables of the store"
	case "53":
		return "the database is out of resources"
	case "57":
		return "the database is starting or stopping"
	}
	return "the database reported an error (SQLSTATE " + code + ")"
}

func (d *postgresDB) retryable(err error) bool {
	switch code := stateCode(err); code {
	case "":
	case "40001", "40P01", "55P03", // serialization_failure, deadlock_detected, lock_not_available
		"25P03", "57P05", // the server closed a connection that was idle for too long
		"53300",                   // too_many_connections
		"57P01", "57P02", "57P03": // the server is stopping or starting
		return true
	default:
		return strings.HasPrefix(code, "08") // connection exceptions
	}
	var connecting *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connecting) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded)
}

// stateCode returns the SQLSTATE of an error that the server reported, or "" for other errors.
func stateCode(err error) string {
	if fault := (*pgconn.PgError)(nil); errors.As(err, &fault) {
		return fault.Code
	}
	return ""
}
