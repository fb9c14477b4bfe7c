// Package tools builds the stock programs that the test clusters run: etcd, the Kubernetes control plane, kubectl, kwok and
// metrics-server; those that hold clusters against Kubernetes' own conformance specs; those that use a cluster as its users do, Helm,
// Prometheus, operators and a gateway, of which some are built only when they are asked for; and plugins that delivery runs.
//
// Each is built from the module that a go.mod in hack/tools pins, into _output/tools/bin, and only when the program there was not built
// from exactly these modules with exactly these flags. What a program was built from is read from the program itself.
package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names of the programs.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	KubeScheduler         = "kube-scheduler"
	Kubectl               = "kubectl"
	Kwok                  = "kwok"
	MetricsServer         = "metrics-server"
	Ginkgo                = "ginkgo"
	E2ETest               = "e2e.test"
	Helm                  = "helm"
	ArgoRollouts          = "argo-rollouts"
	Prometheus            = "prometheus"
	PrometheusOperator    = "prometheus-operator"
	PrometheusAdmission   = "prometheus-operator-admission-webhook"
	CertManager           = "cert-manager"
	CertManagerWebhook    = "cert-manager-webhook"
	RabbitMQ              = "rabbitmq-cluster-operator"
	KubeRay               = "kuberay-operator"
	JobSet                = "jobset"
	Fluent                = "fluent-operator"
	MPI                   = "mpi-operator"
	Postgres              = "postgres-operator"
	Redis                 = "redis-operator"
	Training              = "training-operator"
	LeaderWorkerSet       = "lws"
	Traefik               = "traefik"
	ToyPlugin             = "toy-plugin"
	ToyPluginOldest       = "toy-plugin-oldest"
	WaitsPlugin           = "waits-plugin"
	WaitsPluginOldest     = "waits-plugin-oldest"
	FluxSource            = "flux-source-controller"
	FluxKustomize         = "flux-kustomize-controller"
	FluxHelm              = "flux-helm-controller"
	Gitea                 = "gitea"
)

// program is a program to build.
type program struct {
	name string
	// module is the module that the program's version is pinned by.
	module string
	// pkg is the main package, or the one whose tests are the program.
	pkg  string
	test bool
	// tags are those that it is built with, separated by commas.
	tags string
	// folder of the go.mod that pins it, below the root of the repository.
	folder string
	// modfile is the file in the folder that pins it, where that is not go.mod.
	modfile string
	// ours says that the program is in the folder itself, made with the module.
	ours bool
}

// pinned returns the file that pins the program.
func (p program) pinned(root string) string {
	return filepath.Join(root, p.folder, cmp.Or(p.modfile, "go.mod"))
}

const kubernetesModule = "k8s.io/kubernetes"

// The folders of go.mods. What is not released together with Kubernetes has one of its own, so that one program's dependencies do not
// change what the others are built from.
const (
	toolsFolder         = "hack/tools"
	metricsServerFolder = "hack/tools/metrics-server"
	conformanceFolder   = "hack/tools/conformance"
	helmFolder          = "hack/tools/helm"
	argoRolloutsFolder  = "hack/tools/argo-rollouts"
	prometheusFolder    = "hack/tools/prometheus"
	promOperatorFolder  = "hack/tools/prometheus-operator"
	certManagerFolder   = "hack/tools/cert-manager"
	rabbitMQFolder      = "hack/tools/rabbitmq"
	kubeRayFolder       = "hack/tools/kuberay"
	jobSetFolder        = "hack/tools/jobset"
	fluentFolder        = "hack/tools/fluent-operator"
	mpiFolder           = "hack/tools/mpi-operator"
	postgresFolder      = "hack/tools/postgres-operator"
	redisFolder         = "hack/tools/redis-operator"
	trainingFolder      = "hack/tools/training-operator"
	lwsFolder           = "hack/tools/lws"
	traefikFolder       = "hack/tools/traefik"
	pluginsFolder       = "hack/tools/plugins"
	fluxSourceFolder    = "hack/tools/flux-source"
	fluxKustomizeFolder = "hack/tools/flux-kustomize"
	fluxHelmFolder      = "hack/tools/flux-helm"
	giteaFolder         = "hack/tools/gitea"
)

func programs() []program {
	return []program{
		{name: Etcd, module: "go.etcd.io/etcd/server/v3", pkg: "go.etcd.io/etcd/server/v3", folder: toolsFolder},
		{name: KubeAPIServer, module: kubernetesModule, pkg: "k8s.io/kubernetes/cmd/kube-apiserver", folder: toolsFolder},
		{name: KubeControllerManager, module: kubernetesModule, pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", folder: toolsFolder},
		{name: KubeScheduler, module: kubernetesModule, pkg: "k8s.io/kubernetes/cmd/kube-scheduler", folder: toolsFolder},
		// Manifold links kubectl without Go plugins, see the Makefile. What is compiled for one of them serves the other.
		{
			name: Kubectl, module: kubernetesModule, pkg: "k8s.io/kubernetes/cmd/kubectl", folder: toolsFolder,
			tags: "kustomize_disable_go_plugin_support",
		},
		{name: Kwok, module: "sigs.k8s.io/kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok", folder: toolsFolder},
		{
			name: MetricsServer, module: "sigs.k8s.io/metrics-server", pkg: "sigs.k8s.io/metrics-server/cmd/metrics-server",
			folder: metricsServerFolder,
		},
	}
}

func conformancePrograms() []program {
	return []program{
		{name: Ginkgo, module: "github.com/onsi/ginkgo/v2", pkg: "github.com/onsi/ginkgo/v2/ginkgo", folder: conformanceFolder},
		{
			name: E2ETest, module: kubernetesModule, pkg: "github.com/manifold-dev/manifold/hack/tools/conformance", test: true,
			folder: conformanceFolder,
		},
	}
}

func clientPrograms() []program {
	const (
		rollouts     = "github.com/argoproj/argo-rollouts"
		prometheus   = "github.com/prometheus/prometheus"
		promOperator = "github.com/prometheus-operator/prometheus-operator"
		// Releases after v1.11 have their programs in modules that cannot be had from a proxy.
		certManager = "github.com/cert-manager/cert-manager"
	)
	return []program{
		{name: Helm, module: "helm.sh/helm/v4", pkg: "helm.sh/helm/v4/cmd/helm", folder: helmFolder},
		{name: ArgoRollouts, module: rollouts, pkg: rollouts + "/cmd/rollouts-controller", folder: argoRolloutsFolder},
		// What discovers targets at clouds is most of what there is to compile; the tests name theirs.
		{name: Prometheus, module: prometheus, pkg: prometheus + "/cmd/prometheus", tags: "remove_all_sd", folder: prometheusFolder},
		{name: PrometheusOperator, module: promOperator, pkg: promOperator + "/cmd/operator", folder: promOperatorFolder},
		{name: PrometheusAdmission, module: promOperator, pkg: promOperator + "/cmd/admission-webhook", folder: promOperatorFolder},
		{name: CertManager, module: certManager, pkg: certManager + "/cmd/controller", folder: certManagerFolder},
		{name: CertManagerWebhook, module: certManager, pkg: certManager + "/cmd/webhook", folder: certManagerFolder},
	}
}

// pluginPrograms are plugins for delivery, made with the newest SDK that plugins of PipeCD are released with, and with the oldest. The proxy
// has none of the plugins that are released with it.
func pluginPrograms() []program {
	const (
		sdk    = "github.com/pipe-cd/piped-plugin-sdk-go"
		toy    = "github.com/manifold-dev/manifold/hack/tools/plugins/toy"
		waits  = "github.com/manifold-dev/manifold/hack/tools/plugins/waits"
		oldest = "oldest.mod"
	)
	return []program{
		{name: ToyPlugin, module: sdk, pkg: toy, folder: pluginsFolder, ours: true},
		{name: ToyPluginOldest, module: sdk, pkg: toy, folder: pluginsFolder, modfile: oldest, ours: true},
		{name: WaitsPlugin, module: sdk, pkg: waits, folder: pluginsFolder, ours: true},
		{name: WaitsPluginOldest, module: sdk, pkg: waits, folder: pluginsFolder, modfile: oldest, ours: true},
	}
}

// operatorPrograms are the operators that take too long to build for every run of the end-to-end tests.
func operatorPrograms() []program {
	const (
		rabbitMQ = "github.com/rabbitmq/cluster-operator/v2"
		kubeRay  = "github.com/ray-project/kuberay/ray-operator"
		jobSet   = "sigs.k8s.io/jobset"
		fluent   = "github.com/fluent/fluent-operator/v3"
		mpi      = "github.com/kubeflow/mpi-operator"
		postgres = "github.com/zalando/postgres-operator"
		redis    = "github.com/spotahome/redis-operator"
		training = "github.com/kubeflow/training-operator"
		lws      = "sigs.k8s.io/lws"
	)
	return []program{
		{name: RabbitMQ, module: rabbitMQ, pkg: rabbitMQ, folder: rabbitMQFolder},
		{name: KubeRay, module: kubeRay, pkg: kubeRay, folder: kubeRayFolder},
		{name: JobSet, module: jobSet, pkg: jobSet, folder: jobSetFolder},
		{name: Fluent, module: fluent, pkg: fluent + "/cmd/fluent-manager", folder: fluentFolder},
		{name: MPI, module: mpi, pkg: mpi + "/cmd/mpi-operator", folder: mpiFolder},
		{name: Postgres, module: postgres, pkg: postgres + "/cmd", folder: postgresFolder},
		{name: Redis, module: redis, pkg: redis + "/cmd/redisoperator", folder: redisFolder},
		{name: Training, module: training, pkg: training + "/cmd/training-operator.v1", folder: trainingFolder},
		{name: LeaderWorkerSet, module: lws, pkg: lws + "/cmd", folder: lwsFolder},
	}
}

// gatewayPrograms are those that lead requests from outside into a cluster. They take as long to build as all others together.
func gatewayPrograms() []program {
	const traefik = "github.com/traefik/traefik/v3"
	return []program{{name: Traefik, module: traefik, pkg: traefik + "/cmd/traefik", folder: traefikFolder}}
}

// gitopsPrograms are what pipelines stand between: the controllers of Flux, which bring to a cluster what a repository says, and a forge, where people
// merge what a pipeline proposes. Together they take as long to build as Kubernetes.
func gitopsPrograms() []program {
	const (
		source    = "github.com/fluxcd/source-controller"
		kustomize = "github.com/fluxcd/kustomize-controller"
		// It is built with a newer patch of fluxcd/pkg/chartutil than it was released with, which cannot be had from a proxy.
		helm = "github.com/fluxcd/helm-controller"
		// Releases after v1.26.0 have another path, by which they cannot be had from a proxy.
		gitea = "code.gitea.io/gitea"
	)
	return []program{
		{name: FluxSource, module: source, pkg: source, folder: fluxSourceFolder},
		{name: FluxKustomize, module: kustomize, pkg: kustomize, folder: fluxKustomizeFolder},
		{name: FluxHelm, module: helm, pkg: helm, folder: fluxHelmFolder},
		{name: Gitea, module: gitea, pkg: gitea, tags: "sqlite,sqlite_unlock_notify", folder: giteaFolder},
	}
}

// asked are the programs that are built one by one.
func asked() []program {
	return slices.Concat(clientPrograms(), pluginPrograms(), operatorPrograms(), gatewayPrograms(), gitopsPrograms())
}

// SourceOf returns the folder with the sources of the module that a program of BuildClient is built from, where operators keep their
// CustomResourceDefinitions.
func SourceOf(ctx context.Context, root, name string) (string, error) {
	for _, p := range asked() {
		if p.name == name {
			return SourceOfModule(ctx, root, name, p.module)
		}
	}
	return "", fmt.Errorf("get the sources of %s: no such program is known", name)
}

// SourceOfModule returns the folder with the sources of a module that such a program is built with.
func SourceOfModule(ctx context.Context, root, name, module string) (string, error) {
	for _, p := range asked() {
		if p.name != name {
			continue
		}
		pins, err := readPins(ctx, p.pinned(root))
		if err != nil {
			return "", fmt.Errorf("read the pinned versions in %s: %w", p.folder, err)
		}
		raw, err := goCommand(ctx, pins.dir, "mod", "download", "-json", module+"@"+pins.version(module))
		if err != nil {
			return "", fmt.Errorf("get the sources of %s: %w", module, err)
		}
		var downloaded struct{ Dir string }
		if err := json.Unmarshal(raw, &downloaded); err != nil {
			return "", fmt.Errorf("parse the output of go mod download: %w", err)
		}
		return downloaded.Dir, nil
	}
	return "", fmt.Errorf("get the sources of %s: no such program is known", name)
}

// Root returns the root of the repository that the working directory is in. The error says where it looked.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the root of the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack", "tools", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the root of the repository: no hack/tools/go.mod in %s or above it", start)
		}
	}
}

// BinDir returns the folder that holds the programs of the repository at root.
func BinDir(root string) string {
	return filepath.Join(root, "_output", "tools", "bin")
}

// Build makes sure that every program is in BinDir(root) as pinned, and returns that folder. It tells its progress on out, one line
// when nothing is to do. Several processes may call it at once: one builds, the others wait. The error names the program and holds
// what the compiler said.
func Build(ctx context.Context, root string, out io.Writer) (string, error) {
	return buildAll(ctx, root, programs(), out)
}

// BuildWithoutMetrics does the same for all but metrics-server, which shares nothing with the others and takes as long to build as all of
// them. It reports whether that is there as pinned all the same.
func BuildWithoutMetrics(ctx context.Context, root string, out io.Writer) (dir string, metrics bool, err error) {
	var others []program
	for _, p := range programs() {
		if p.name != MetricsServer {
			others = append(others, p)
			continue
		}
		pins, err := readPins(ctx, p.pinned(root))
		if err != nil {
			return "", false, fmt.Errorf("read the pinned versions in %s: %w", p.folder, err)
		}
		metrics = pins.stale(p, filepath.Join(BinDir(root), p.name)) == ""
	}
	dir, err = buildAll(ctx, root, others, out)
	return dir, metrics, err
}

// BuildConformance does the same for what runs Kubernetes' conformance specs.
func BuildConformance(ctx context.Context, root string, out io.Writer) (string, error) {
	return buildAll(ctx, root, conformancePrograms(), out)
}

// BuildClients does the same for Helm, Prometheus, the operators and the plugins that the end-to-end tests run against the logical cluster.
func BuildClients(ctx context.Context, root string, out io.Writer) (string, error) {
	return buildAll(ctx, root, slices.Concat(clientPrograms(), pluginPrograms()), out)
}

// BuildOperators does the same for the operators that are tested only when asked for.
func BuildOperators(ctx context.Context, root string, out io.Writer) (string, error) {
	return buildAll(ctx, root, operatorPrograms(), out)
}

// BuildGateway does the same for the gateway that tests send requests through when they are asked to.
func BuildGateway(ctx context.Context, root string, out io.Writer) (string, error) {
	return buildAll(ctx, root, gatewayPrograms(), out)
}

// BuildGitOps does the same for the controllers of Flux and the forge that pipelines are tested with when that is asked for.
func BuildGitOps(ctx context.Context, root string, out io.Writer) (string, error) {
	return buildAll(ctx, root, gitopsPrograms(), out)
}

// BuildClient does the same for one program of BuildClients, BuildOperators, BuildGateway or BuildGitOps.
func BuildClient(ctx context.Context, root string, out io.Writer, name string) (string, error) {
	wanted := slices.DeleteFunc(asked(), func(p program) bool { return p.name != name })
	if len(wanted) == 0 {
		return "", fmt.Errorf("build %s: no such program is known", name)
	}
	return buildAll(ctx, root, wanted, out)
}

func buildAll(ctx context.Context, root string, programs []program, out io.Writer) (string, error) {
	dir := BinDir(root)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of the tools: %w", err)
	}
	unlock, err := lock(filepath.Join(dir, ".lock"))
	if err != nil {
		return "", fmt.Errorf("lock the folder of the tools: %w", err)
	}
	defer unlock()

	want := map[string]*pins{}
	var stale []program
	for _, p := range programs {
		file := p.pinned(root)
		if want[file] == nil {
			if want[file], err = readPins(ctx, file); err != nil {
				return "", fmt.Errorf("read the pinned versions in %s: %w", p.folder, err)
			}
		}
		if why := want[file].stale(p, filepath.Join(dir, p.name)); why != "" {
			fmt.Fprintf(out, "tools: %s: %s\n", p.name, why)
			stale = append(stale, p)
		}
	}
	if len(stale) == 0 {
		fmt.Fprintf(out, "tools: %d programs are up to date\n", len(programs))
		return dir, nil
	}
	for i, p := range stale {
		label := fmt.Sprintf("tools: %d/%d %s %s", i+1, len(stale), p.name, want[p.pinned(root)].version(p.module))
		if err := build(ctx, want[p.pinned(root)], p, filepath.Join(dir, p.name), label, out); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// build compiles one program beside its target and renames it, so that an interrupted build leaves the old program whole.
func build(ctx context.Context, pins *pins, p program, target, label string, out io.Writer) error {
	scratch := target + ".new"
	defer os.Remove(scratch)
	args := []string{"build", "-C", pins.dir}
	if p.test {
		args = []string{"test", "-C", pins.dir, "-c"} // -C comes first
	}
	if p.modfile != "" {
		args = append(args, "-modfile", p.modfile)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "-tags", pins.tags(p), "-ldflags", pins.ldflags(p), "-o", scratch, p.pkg)...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output

	start := time.Now()
	fmt.Fprintf(out, "%s: building\n", label)
	err := runWithProgress(cmd, func() {
		fmt.Fprintf(out, "%s: building, %s so far\n", label, time.Since(start).Round(time.Second))
	})
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", p.pkg, errors.Join(err, ctx.Err()), output.String())
	}
	if err := os.Rename(scratch, target); err != nil {
		return fmt.Errorf("put %s in place: %w", p.name, err)
	}
	fmt.Fprintf(out, "%s: built in %s\n", label, time.Since(start).Round(time.Second))
	return nil
}

// progressInterval is how often a build that takes long says that it is still at it.
const progressInterval = 15 * time.Second

func runWithProgress(cmd *exec.Cmd, progress func()) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			progress()
		}
	}
}
