// Package etcd runs the embedded etcd.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
)

// maxSocketPath is what sockaddr_un holds on Linux, less the closing zero byte.
const maxSocketPath = 107

// connectionBuffer is how much of a connection's input etcd reads at once; requests are small.
const connectionBuffer = 4 << 10

// commitInterval is how long etcd gathers what it has written to its log for its database. Each commit waits for the disk twice and holds up
// whoever writes meanwhile, most of all on a disk that others use: at etcd's default of 100 ms, creating many objects took up to three times
// as long. The log is what makes a write durable, and after a crash the rest is taken from there.
const commitInterval = 500 * time.Millisecond

// Server is an embedded single-member etcd that is reached over a unix socket alone.
type Server struct {
	server *embed.Etcd
	// Endpoint is what --etcd-servers takes.
	Endpoint string

	closing sync.Once
}

// Close stops etcd. It may be called again.
func (e *Server) Close() { e.closing.Do(e.server.Close) }

// Start starts etcd with its data and sockets in dir, which it makes readable for the owner alone. It returns once etcd serves.
func Start(ctx context.Context, dir string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make etcd's directory: %w", err)
	}
	client, err := socketURL(dir, "client.sock")
	if err != nil {
		return nil, err
	}
	peer, err := socketURL(dir, "peer.sock")
	if err != nil {
		return nil, err
	}

	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(dir, "data")
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.LogLevel = "error"
	// The API server compacts every five minutes; the quota is what upstream recommends at most.
	cfg.QuotaBackendBytes = 8 << 30
	cfg.BackendBatchInterval = commitInterval
	// The log of writes since the last snapshot is in memory, and kept beyond that for members that are behind, of which there are none.
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 2000, 100
	// A start after a crash must not wait out a full election: there is nobody else to vote.
	cfg.TickMs, cfg.ElectionMs = 10, 100

	// The API server opens a connection for each of its resources, most of which are idle; gRPC would keep 32 KiB to read from each.
	cfg.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ReadBufferSize(connectionBuffer)}

	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("start the embedded etcd in %s: %w", dir, err)
	}
	e := &Server{server: server, Endpoint: client.String()}
	select {
	case <-server.Server.ReadyNotify():
		return e, nil
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start the embedded etcd in %s: %w", dir, err)
	case <-ctx.Done():
		server.Close()
		return nil, ctx.Err()
	}
}

// Run waits until ctx ends and stops etcd, or returns the error that etcd died of.
func (e *Server) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		e.Close()
		return nil
	case err := <-e.server.Err():
		return fmt.Errorf("embedded etcd: %w", err)
	case <-e.server.Server.StopNotify():
		return errors.New("embedded etcd stopped by itself")
	}
}

func socketURL(dir, name string) (*url.URL, error) {
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of etcd's socket, %s, has %d bytes, more than the %d that a unix socket may have: choose a shorter --data-dir",
			path, len(path), maxSocketPath)
	}
	// A process that was killed leaves its socket behind. Nobody else can be listening: the data directory is locked.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove etcd's old socket: %w", err)
	}
	return &url.URL{Scheme: "unix", Path: path}, nil
}
