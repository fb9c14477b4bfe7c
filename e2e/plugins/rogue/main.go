// Command rogue is a plugin that misbehaves, for tests. It is made without the SDK, which keeps plugins from most of this. Its configuration says
// what it does wrong; without a behaviour it is honest, and its stages end with success.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// Behaviours of the process.
const (
	// exits ends with success at once.
	exits = "exits"
	// deaf runs, and never listens.
	deaf = "deaf"
	// otherProtocol answers with text of HTTP/1.1.
	otherProtocol = "other-protocol"
	// stubborn goes on when it is asked to end.
	stubborn = "stubborn"
	// forks leaves processes behind, in sessions of their own.
	forks = "forks"
	// leaks takes memory until it has config.Bytes.
	leaks = "leaks"
	// opens opens config.Count files.
	opens = "opens"
	// floods writes to its output without end.
	floods = "floods"
)

// Behaviours of calls.
const (
	// silent answers no call.
	silent = "silent"
	// hangs answers no call while the file config.While exists.
	hangs = "hangs"
	// huge answers calls with config.Bytes.
	huge = "huge"
	// diesInStage ends the process with success when a stage begins.
	diesInStage = "dies-in-stage"
	// floodsLogs reports log lines to the host without end while a stage runs.
	floodsLogs = "floods-logs"
	// misplans answers with stages and indexes that it was not asked for.
	misplans = "misplans"
	// misends ends stages with a status that is no end.
	misends = "misends"
	// installs has the host install a tool, runs it, and says what that has said.
	installs = "installs"
	// meddles asks the host for what is others', and fails with what it got.
	meddles = "meddles"
)

type config struct {
	Behaviour string `json:"behaviour"`
	// Stages are those that it says it has, its own or others'.
	Stages []string `json:"stages"`
	Bytes  int      `json:"bytes"`
	Count  int      `json:"count"`
	While  string   `json:"while"`
}

func main() {
	flags := flag.NewFlagSet("start", flag.ExitOnError)
	host := flags.String("piped-plugin-service", "", "the address of the host")
	raw := flags.String("config", "", "the configuration, as JSON")
	for _, ignored := range []string{"grace-period", "log-level"} {
		flags.String(ignored, "", "ignored")
	}
	if len(os.Args) < 2 {
		log.Fatalln("usage: rogue start --piped-plugin-service ADDRESS --config JSON")
	}
	if os.Args[1] == "sleep" {
		time.Sleep(time.Hour)
	}
	if err := flags.Parse(os.Args[2:]); err != nil {
		log.Fatalln(err)
	}
	var given struct {
		Name   string `json:"name"`
		Port   int    `json:"port"`
		Config config `json:"config"`
	}
	if err := json.Unmarshal([]byte(*raw), &given); err != nil {
		log.Fatalln(err)
	}
	if err := run(*host, given.Name, given.Port, given.Config); err != nil {
		log.Fatalln(err)
	}
}

func run(host, name string, port int, cfg config) error {
	switch cfg.Behaviour {
	case exits:
		return nil
	case deaf:
		select {}
	case stubborn:
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	case forks:
		if err := fork(max(cfg.Count, 3)); err != nil {
			return err
		}
	case leaks:
		go leak(cmp.Or(cfg.Bytes, 1<<30))
	case opens:
		if err := open(max(cfg.Count, 1)); err != nil {
			return err
		}
	case floods:
		go flood()
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	if cfg.Behaviour == otherProtocol {
		return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, "this is no plugin")
		}))
	}
	conn, err := grpc.NewClient(host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(cfg.answer), grpc.MaxSendMsgSize(1<<30))
	deployment.RegisterDeploymentServiceServer(server, &service{name: name, cfg: cfg, host: pipedservice.NewPluginServiceClient(conn)})
	return server.Serve(listener)
}

func fork(count int) error {
	for range count {
		child := exec.Command("/proc/self/exe", "sleep")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return err
		}
	}
	return nil
}

// leaked keeps what leak has taken.
var leaked [][]byte

func leak(limit int) {
	const piece = 8 << 20
	for taken := 0; taken < limit; taken += piece {
		block := make([]byte, piece)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		leaked = append(leaked, block)
	}
}

// opened keeps what open has opened.
var opened []*os.File

func open(count int) error {
	for range count {
		file, err := os.Open("/dev/null")
		if err != nil {
			return err
		}
		opened = append(opened, file)
	}
	return nil
}

func flood() {
	line := strings.Repeat("noise ", 200)
	for {
		fmt.Println(line)
	}
}

// answer is an interceptor that answers calls, or does not.
func (c config) answer(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if c.Behaviour == silent || c.Behaviour == hangs && exists(c.While) {
		select {} // not even when the caller has given up
	}
	return next(ctx, request)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
