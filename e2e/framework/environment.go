package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/e2e/framework/liar"
	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/logical"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// Options say what Environment to start.
type Options struct {
	// Clusters are the names of the stock clusters, each of which joins under its name. None is fine.
	Clusters []string
	// Cluster are the options of every stock cluster. Name, Dir and BinDir are filled in.
	Cluster stock.Options
	// AuditPolicy is an audit policy for the logical cluster, whose log is then AuditLog. Without one there is none.
	AuditPolicy string
	// ManifoldArgs are further arguments of "manifold start".
	ManifoldArgs []string
	// JoinArgs are further arguments of "manifold cluster join" for the clusters that join at the start.
	JoinArgs []string
	// KeepApart leaves the clusters unjoined.
	KeepApart bool
	// Spare are the names of further stock clusters, which do not join.
	Spare []string
	// Liars are the names of the clusters that join by way of a proxy, which tests have say what is not true.
	Liars []string
}

// Environment is a logical cluster, and physical ones that joined it.
type Environment struct {
	// Dir holds everything that the processes write, their logs included.
	Dir string
	// Manifold is the process of the logical cluster.
	Manifold *logical.Server
	// Clusters are the stock clusters by name.
	Clusters map[string]*stock.Cluster
	// Liars are the proxies before stock clusters, by their names.
	Liars map[string]*liar.Server

	// Logical reaches the logical cluster, and Physical the stock ones by name.
	Logical  *API
	Physical map[string]*API
}

// Start starts an environment: all clusters and manifold at once, then it joins them. Stop ends it. On an error nothing is left
// running, and the logs stay in the folder that the error names.
func Start(ctx context.Context, options Options) (_ *Environment, err error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "manifold-e2e-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the processes: %w", err)
	}
	e := &Environment{Dir: dir, Clusters: map[string]*stock.Cluster{}, Liars: map[string]*liar.Server{}, Physical: map[string]*API{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start what the tests need, logs are in %s: %w", dir, err), e.Stop())
		}
	}()
	if err := e.startClusters(ctx, bin, options); err != nil {
		return nil, err
	}
	for _, name := range options.Liars {
		if e.Liars[name], err = liar.Start(dir, name, e.Physical[name].Config); err != nil {
			return nil, err
		}
	}
	args, err := e.auditArgs(options.AuditPolicy)
	if err != nil {
		return nil, err
	}
	if e.Manifold, err = startManifold(ctx, logical.Options{
		Binary: bin.manifold, Dir: filepath.Join(dir, "manifold"), Args: append(args, options.ManifoldArgs...),
	}); err != nil {
		return nil, err
	}
	if e.Logical, err = newAPI("logical", bin, e.Manifold.Kubeconfig()); err != nil {
		return nil, err
	}
	if options.KeepApart {
		return e, nil
	}
	for _, name := range options.Clusters {
		if err := e.Join(ctx, name, options.JoinArgs...); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *Environment) startClusters(ctx context.Context, bin programs, options Options) error {
	var all []stock.Options
	for _, name := range slices.Concat(options.Clusters, options.Spare) {
		o := options.Cluster
		o.Name, o.Dir, o.BinDir = name, filepath.Join(e.Dir, name), bin.tools
		// The tests keep the processors busy. Collections of garbage are a tenth of what clusters take, and there is memory for fewer.
		o.Env = append(slices.Clip(o.Env), "GOGC=400")
		all = append(all, o)
	}
	clusters, err := stock.StartAll(ctx, all...)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		e.Clusters[c.Name()] = c
	}
	for name, c := range e.Clusters {
		if e.Physical[name], err = newAPI(name, bin, c.Kubeconfig()); err != nil {
			return err
		}
	}
	return nil
}

// startDeadline is generous: tests may share the machine with builds.
const startDeadline = 5 * time.Minute

func startManifold(ctx context.Context, options logical.Options) (*logical.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	return logical.Start(ctx, options)
}

// AuditLog is the file that requests are recorded in.
func (e *Environment) AuditLog() string { return filepath.Join(e.Dir, "audit.log") }

func (e *Environment) auditArgs(policy string) ([]string, error) {
	if policy == "" {
		return nil, nil
	}
	file := filepath.Join(e.Dir, "audit-policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	return []string{"--audit-policy-file", file, "--audit-log-path", e.AuditLog(), "--audit-log-mode=blocking"}, nil
}

// Join joins a stock cluster under its name and with the label "cluster", whose value is its name. It returns once it is ready.
func (e *Environment) Join(ctx context.Context, name string, args ...string) error {
	kubeconfig := e.Clusters[name].Kubeconfig()
	if proxy := e.Liars[name]; proxy != nil {
		kubeconfig = proxy.Kubeconfig()
	}
	args = append([]string{
		"cluster", "join", name, "--cluster-kubeconfig", kubeconfig, "--kubeconfig", e.Manifold.Kubeconfig(),
		"--label", "cluster=" + name,
	}, args...)
	result := run(exec.CommandContext(ctx, e.Manifold.Binary(), args...))
	if result.Code != 0 {
		return fmt.Errorf("join cluster %q: %s", name, result)
	}
	return nil
}

// Stop ends every process and waits until they are gone. The folder stays.
func (e *Environment) Stop() error {
	var errs []error
	if e.Manifold != nil {
		errs = append(errs, e.Manifold.Stop(), lackedRights(e.Manifold.LogFile()))
	}
	for _, proxy := range e.Liars {
		errs = append(errs, proxy.Stop())
	}
	var clusters []*stock.Cluster
	for _, c := range e.Clusters {
		clusters = append(clusters, c)
	}
	return errors.Join(append(errs, stock.StopAll(clusters))...)
}

// lacksRight is what manifold logs when one of its controllers asks for what it has no right to: identity.LacksRight.
const lacksRight = "A controller of Manifold asks for what it has no right to"

// lackedRights returns what a log says of rights that controllers lack. What they could not do may be something that no test looks at.
func lackedRights(log string) error {
	content, err := os.ReadFile(log)
	if err != nil {
		return fmt.Errorf("read what manifold logged: %w", err)
	}
	var errs []error
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, lacksRight) {
			errs = append(errs, errors.New(strings.TrimSpace(line)))
		}
	}
	return errors.Join(errs...)
}

// programs are where the programs under test are.
type programs struct {
	manifold string
	tools    string
}

func (p programs) kubectl() string { return filepath.Join(p.tools, tools.Kubectl) }

// findPrograms returns the programs of this repository. The error says how to build what is missing.
func findPrograms() (programs, error) {
	root, err := tools.Root()
	if err != nil {
		return programs{}, err
	}
	p := programs{manifold: filepath.Join(root, "bin", "manifold"), tools: tools.BinDir(root)}
	for _, file := range []string{
		p.manifold, p.kubectl(),
		filepath.Join(p.tools, tools.Etcd), filepath.Join(p.tools, tools.KubeAPIServer), filepath.Join(p.tools, tools.Kwok),
		filepath.Join(p.tools, tools.KubeControllerManager), filepath.Join(p.tools, tools.KubeScheduler),
		filepath.Join(p.tools, tools.MetricsServer),
	} {
		if _, err := os.Stat(file); err != nil {
			return programs{}, fmt.Errorf("find what the end-to-end tests run: %w; run \"make build tools\"", err)
		}
	}
	return p, nil
}

// Cleanup runs kubectl against the logical cluster when a test has ended, and with it what a Side has. Its failure is only logged.
func (e *Environment) Cleanup(t *testing.T, args ...string) {
	t.Helper()
	e.CleanupIn(t, e.Logical, args...)
}

// CleanupIn is Cleanup in a cluster.
func (e *Environment) CleanupIn(t *testing.T, a *API, args ...string) {
	t.Helper()
	clean(t, a, (*Side).Try, args)
}

// cleanupInput is Cleanup with standard input.
func (e *Environment) cleanupInput(t *testing.T, stdin string, args ...string) {
	t.Helper()
	clean(t, e.Logical, func(s *Side, args ...string) Result { return s.TryInput(stdin, args...) }, args)
}

// CleanupCLI is Cleanup with the manifold command.
func (e *Environment) CleanupCLI(t *testing.T, args ...string) {
	t.Helper()
	clean(t, e.Logical, (*Side).TryCLI, args)
}

func clean(t *testing.T, a *API, try func(*Side, ...string) Result, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	if result := try(&Side{API: a, Namespace: "default", ctx: ctx}, args...); result.Code != 0 {
		t.Logf("clean up: %s", result)
	}
}
