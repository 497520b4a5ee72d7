package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/store"
)

// cluster is the server of all tests of this package; nil if there is none.
var cluster *testkit.Cluster

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(asDriver), "\n"); len(args) == 3 {
		if err := driver(args[0], args[1], args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if args := strings.Split(os.Getenv(asTaker), "\n"); len(args) == 2 {
		fmt.Fprintln(os.Stderr, taker(args[0], args[1]))
		os.Exit(1)
	}
	var err error
	if cluster, err = testkit.Start("/tmp"); errors.Is(err, testkit.ErrNone) {
		fmt.Fprintln(os.Stderr, "engine/postgres: SKIPPED all tests against a server ("+err.Error()+")")
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if cluster != nil {
		if err := cluster.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

var schemas atomic.Int64

// fresh is the config of a store without sessions.
func fresh(t testing.TB) postgres.Config {
	t.Helper()
	if cluster == nil {
		t.Skip("SKIPPED: " + testkit.ErrNone.Error())
	}
	schema := fmt.Sprintf("Test %d", schemas.Add(1))
	t.Cleanup(func() {
		if err := cluster.Exec(context.Background(), "postgres", `DROP SCHEMA IF EXISTS "`+schema+`" CASCADE`); err != nil {
			t.Error(err)
		}
	})
	return postgres.Config{URL: cluster.URL("postgres"), Schema: schema, Lease: time.Hour, Conns: 4}
}

func open(t testing.TB, c postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sql runs a statement in the schema of a store.
func sql(t testing.TB, c postgres.Config, statement string, args ...any) {
	t.Helper()
	conn, err := connect(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	configs := map[store.Store]postgres.Config{}
	harnesstest.TestStore(t, harnesstest.Stores{
		Open: func(t *testing.T) store.Store {
			c := fresh(t)
			s := open(t, c)
			configs[s] = c
			return s
		},
		Reopen: func(t *testing.T, s store.Store) store.Store { return open(t, configs[s]) },
		LoseLease: func(t *testing.T, s store.Store, l store.Log) {
			sql(t, configs[s], "UPDATE sessions SET held_until = clock_timestamp() - interval '1 second' WHERE id = $1", l.ID())
		},
		Replace: func(t *testing.T, s store.Store, l store.Log) { replace(t, configs[s], l.ID()) },
	})
}
