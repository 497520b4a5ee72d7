// Command devserver is a Temporal server for tests and for trying things out: one process over
// SQLite, in memory or in a file. It is not for production.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/testing/freeport"
	schema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7233", "address of the frontend; only loopback")
	db := flag.String("db", "", "file of the database; empty: in memory")
	namespaces := flag.String("namespaces", "default", "namespaces to make, separated by commas")
	level := flag.String("log", "error", "log level")
	flag.Parse()
	if err := serve(*listen, *db, strings.Split(*namespaces, ","), *level); err != nil {
		fmt.Fprintln(os.Stderr, "devserver:", err)
		os.Exit(1)
	}
}

func serve(listen, db string, namespaces []string, level string) error {
	c, err := configure(listen, db)
	if err != nil {
		return err
	}
	if err := prepare(c, db, namespaces); err != nil {
		return err
	}
	logger := log.NewZapLogger(log.BuildZapLogger(log.Config{Level: level}))
	s, err := temporal.NewServer(
		temporal.WithConfig(c),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		// One that was killed would stay a member for a minute, and get a part of the work.
		temporal.WithStaticHosts(hosts(c)),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{
			// The one shard of this server would read its queue 20 times a second, which makes every step
			// of a workflow wait for up to 50 ms. A cluster has hundreds of shards.
			dynamicconfig.TransferProcessorMaxPollRPS.Key(): 200,
			dynamicconfig.TimerProcessorMaxPollRPS.Key():    200,
		}),
	)
	if err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	<-ctx.Done()
	return s.Stop()
}

// configure is the whole configuration: every service on loopback, on ports that are free.
func configure(listen, db string) (*config.Config, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, err
	}
	frontend, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, errors.New("listens on loopback addresses only")
	}
	c := &config.Config{
		Persistence: config.Persistence{
			DefaultStore: sqlite.PluginName, VisibilityStore: sqlite.PluginName, NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{sqlite.PluginName: {SQL: database(db)}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: "active", CurrentClusterName: "active",
			ClusterInformation: map[string]cluster.ClusterInformation{
				"active": {Enabled: true, InitialFailoverVersion: 1, RPCAddress: listen},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            map[string]config.Service{},
		PublicClient:        config.PublicClient{HostPort: listen},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
	}
	for _, name := range temporal.DefaultServices {
		rpc := config.RPC{BindOnLocalHost: true, GRPCPort: frontend}
		if name != string(primitives.FrontendService) {
			rpc.GRPCPort = freeport.MustGetFreePort()
		}
		c.Services[name] = config.Service{RPC: rpc}
	}
	return c, nil
}

func hosts(c *config.Config) map[primitives.ServiceName]static.Hosts {
	all := map[primitives.ServiceName]static.Hosts{}
	for name, service := range c.Services {
		all[primitives.ServiceName(name)] = static.SingleLocalHost(fmt.Sprint("127.0.0.1:", service.RPC.GRPCPort))
	}
	return all
}

func database(path string) *config.SQL {
	if path == "" {
		return &config.SQL{
			PluginName: sqlite.PluginName, DatabaseName: fmt.Sprint("devserver", os.Getpid()),
			ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
		}
	}
	return &config.SQL{
		PluginName: sqlite.PluginName, DatabaseName: path,
		ConnectAttributes: map[string]string{"mode": "rwc", "_journal_mode": "wal", "_synchronous": "2"},
	}
}

// prepare makes tables, unless the file has them, and namespaces with the search attributes of sessions.
func prepare(c *config.Config, db string, namespaces []string) error {
	sql := c.Persistence.DataStores[sqlite.PluginName].SQL
	if db != "" {
		if _, err := os.Stat(db); errors.Is(err, fs.ErrNotExist) {
			if err := schema.SetupSchema(sql); err != nil {
				return err
			}
		}
	}
	var all []*schema.NamespaceConfig
	for _, name := range namespaces {
		n, err := schema.NewNamespaceConfig("active", name, false, map[string]enumspb.IndexedValueType{
			"InspanStanding": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "InspanTenant": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		})
		if err != nil {
			return err
		}
		all = append(all, n)
	}
	return schema.CreateNamespaces(sql, all...)
}
